#!/bin/bash -p
# usage: tidegate-import get URI     prints the path of a squashfs of the image
#        tidegate-import release     pyxis is done with what this step was given
#        tidegate-import share URI   the head's root imports it for all users
# pyxis' importer (NVIDIA/pyxis, importers/README.md), which pyxis runs as the job's user. An image is
# imported once, by whichever node comes first, into a folder in the user's own home, and found there
# by its repository and digest. Before, it is looked for in what root shared, and nowhere else.
#
# A record for each image, `sha256-...`, holds the name and size of its squashfs, or `failed`; whoever
# imports holds its lock. Both lie on NFS. There a lock ends with its process, and some time after its
# machine. A file that is opened is asked for anew, but a name that was missing may be taken for missing
# for a minute: so each squashfs has a name of its own, which its record tells when all of it is there.
#
# -p: no function that a job hands on is taken for a command here, nor is the file read that its BASH_ENV
# names, by this or by enroot: of both the first line is taken for what was asked.
set -uo pipefail
unset BASH_ENV
export LC_ALL=C
umask 077
# pyxis takes the first line of standard output.
exec 3>&1 >&2

# SHARED: of root, empty where there is no cache.
readonly SETTINGS=/etc/tidegate/container-cache
DISK=/var/lib/enroot SHARED='' UNUSED_DAYS=14 MAX_GIB=200
# shellcheck source=/dev/null
[[ ! -r $SETTINGS ]] || source "$SETTINGS"
# WAIT_S: for another's import. FAILED_S: after a failed one nobody waits. STEP_S: all nodes of a step
# take the digest that one of them asked for. SPARED_MIN: a squashfs may be read before it goes.
readonly WAIT_S=1200 FAILED_S=600 STEP_S=600 SPARED_MIN=60
readonly DIGEST='^sha256:[0-9a-f]{64}$'
readonly STEP=${SLURM_JOB_ID:-0}.${SLURM_STEP_ID:-0}
# Jobs bring the HOSTNAME of where they were sent from.
read -r HOST </proc/sys/kernel/hostname
readonly HOST PART=$STEP.$HOST.$$.part
CACHE=${HOME:-~}/.cache/tidegate-containers

# say TEXT: pyxis shows standard error where all fails; else it is in the node's journal.
say() {
    echo "tidegate: $*"
    logger -t tidegate-import -- "$*" 2>/dev/null
}

# own_folder: of this node, for a step's squashfs. Nobody else may have made it.
own_folder() {
    local folder
    for folder in "$DISK/images-$UID" "${PYXIS_RUNTIME_PATH:-/run/pyxis}/$UID"; do
        [[ ! -d $folder || -L $folder || ! -O $folder ]] || { echo "$folder"; return; }
    done
    say "no folder for images on this node is yours, like $folder"
    return 1
}

# What is started holds no lock, and says nothing to pyxis.
enroot_quietly() {
    enroot "$@" 3>&- 9>&-
}

# digest_of URI. The registry's word becomes part of a path.
digest_of() {
    local digest=${1##*@}
    [[ $digest =~ $DIGEST ]] || digest=$(enroot_quietly digest "$1") || return
    [[ $digest =~ $DIGEST ]] || { say "the registry tells no digest of $1"; return 1; }
    echo "$digest"
}

# key_of URI DIGEST: enroot proves layers by their digests, but not what lists them, so a registry may
# give any image any digest: one counts for its repository alone.
key_of() {
    local name=${1#docker://} sum
    name=${name%@sha256:*}
    [[ $name != *@* || ${name%%@*} == *[/#]* ]] || name=${name#*@}
    [[ ${name##*:} == *[/#]* ]] || name=${name%:*}
    read -r sum _ < <(sha256sum <<<"${name//#//}")
    echo "${2/:/-}.$(uname -m).${sum:0:16}"
}

# found FOLDER KEY: sets `image`. Half a line is none, and half a squashfs has another size.
found() {
    local file size
    { read -r file size <"$1/$2"; } 2>/dev/null && [[ $file == "$2".*.sqsh && $file != */* ]] &&
        [[ $(stat -c %s "$1/$file" 2>/dev/null) == "$size" ]] && image=$1/$file
}

# is_over KEY: there is nothing to wait for.
is_over() {
    local word at_s
    found "$CACHE" "$1" && return
    { read -r word at_s _ <"$CACHE/$1"; } 2>/dev/null && [[ $word == failed && $at_s =~ ^[0-9]{1,11}$ ]] &&
        ((at_s > EPOCHSECONDS - FAILED_S))
}

# hold RECORD TEST...: until its lock is held (0), TEST holds (1), or neither can be had (2). A blocked
# NFS client asks for a lock every 30 s alone, and EFS keeps no waiters, so it is tried again and again.
hold() {
    local record=$1 until_s=$((SECONDS + WAIT_S)) code
    { exec 9<>"$record"; } 2>/dev/null || { say "$record cannot be written"; return 2; }
    until "${@:2}"; do
        code=0
        flock -n -E 75 9 || code=$?
        if ((code == 0)); then
            "${@:2}" || return 0
            break
        elif ((code != 75)); then
            say "there are no locks in ${record%/*}"
            return 2
        elif ((SECONDS >= until_s)); then
            say "somebody else imports since more than $WAIT_S s"
            return 2
        fi
        sleep "$((RANDOM % 2)).$((RANDOM % 9 + 1))"
    done
    exec 9>&-
    return 1
}

# is_resolved RECORD: sets `digest`.
is_resolved() {
    { read -r digest <"$1"; } 2>/dev/null && [[ $digest =~ $DIGEST ]] &&
        (($(stat -c %Y "$1") > EPOCHSECONDS - STEP_S))
}

# resolve URI: sets `digest`. Registries count how often they are asked, and while a tag moves all nodes
# of a step run the same image.
resolve() {
    local record sum code=0
    read -r sum _ < <(sha256sum <<<"$1")
    record=$CACHE/steps/$STEP.${SLURM_RESTART_COUNT:-0}.${sum:0:16}
    hold "$record" is_resolved "$record" || code=$?
    ((code != 1)) || return 0
    digest=$(digest_of "$1") || return
    ((code != 0)) || { echo "$digest" >"$record"; } 2>/dev/null
}

# keep KEY: the step's squashfs, for others; all of it or nothing. Sets `image`.
keep() {
    local file=$1.$HOST.$$.$EPOCHSECONDS.sqsh size
    size=$(stat -c %s "$LOCAL") && cp -- "$LOCAL" "$CACHE/$PART" 3>&- 9>&- && sync -- "$CACHE/$PART" &&
        mv -- "$CACHE/$PART" "$CACHE/$file" && echo "$file $size" >"$CACHE/$1" && image=$CACHE/$file
}

# is_exact URI: imports it, and whether that is what `digest` names. Not all registries give a list by a
# digest (enroot's pull request 263): there it is the tag's, if that is the same before and after. Sets
# `image` where enroot came to its end: what a failed import leaves has a size as well.
is_exact() {
    local name=$1
    [[ $1 == *"@$digest" ]] || name=$1@$digest
    rm -f "$LOCAL"
    enroot_quietly import --output "$LOCAL" "$name" && image=$LOCAL && return
    [[ $name != "$1" ]] || return
    rm -f "$LOCAL"
    enroot_quietly import --output "$LOCAL" "$1" && image=$LOCAL || return
    [[ $(digest_of "$1") == "$digest" ]] || { say "$1 moved while it was imported"; return 1; }
}

# fetch URI KEY: by the one who holds the record's lock. Sets `image`, when enroot can import it.
fetch() {
    local why words=$LOCAL.words
    image=
    if ! is_exact "$1"; then
        why="the import failed or is of another image"
    elif keep "$2" 2>"$words"; then
        return
    else
        why=$(tail -n 1 "$words" | tr -dc '[:print:]')
    fi
    rm -f "$CACHE/$PART"
    say "$1 is not kept for other nodes: $why"
    { echo "failed $EPOCHSECONDS $why" >"$CACHE/$2"; } 2>/dev/null
    [[ -n $image ]]
}

# records: of images that are there, what was used longest ago first: time, name, squashfs, bytes.
records() {
    local at_s key file size
    find "$CACHE" -maxdepth 1 -name 'sha256-*' ! -name '*.sqsh' -size +0 -printf '%T@ %f\n' | sort -n |
        while read -r at_s key; do
            read -r file size <"$CACHE/$key" && [[ $file != failed && $size =~ ^[0-9]+$ ]] &&
                echo "${at_s%.*} $key $file $size"
        done
}

# make_room KEY: what nobody used for days, and beyond the limit what was used longest ago. It is taken
# from its record first, and goes when whoever was given it just before has read it.
make_room() {
    local at_s key file size sum bytes
    sum=$(records | awk '{sum += $4} END {printf "%.0f", sum}')
    bytes=$((MAX_GIB << 30))
    while read -r at_s key file size; do
        [[ $key != "$1" ]] && ((at_s < EPOCHSECONDS - UNUSED_DAYS * 86400 || sum > bytes)) &&
            flock -n "$CACHE/$key" truncate -s 0 "$CACHE/$key" && touch -c "$CACHE/$file" &&
            sum=$((sum - size))
    done < <(records)
    find "$CACHE" -maxdepth 1 \( -name '*.sqsh' -o -name '*.part' \) -mmin +"$SPARED_MIN" |
        grep -vxFf <(records | awk -v at="$CACHE/" '{print at $3}'; echo -) |
        xargs -rd '\n' rm -f
    find "$CACHE" -mindepth 1 \( -path '*/steps/*' -o -size 0 \) -type f -mtime +1 -delete
}

# alone URI: what pyxis does without an importer.
alone() {
    exec 9>&-
    rm -f "$LOCAL"
    enroot_quietly import --output "$LOCAL" "$1" && image=$LOCAL
}

# is_closed UID FOLDER: it is that user's, and nobody else can write in it.
is_closed() {
    [[ $(stat -Lc '%u %A' "$2" 2>/dev/null) == "$1 "d????-??-? ]]
}

# is_roots FOLDER
is_roots() {
    [[ ! -L $1 ]] && is_closed 0 "$1"
}

# cached URI: sets `image`, unless it has to come without the cache.
cached() {
    local digest key code=0
    [[ -n $SHARED && $1 == docker://* ]] || return
    mkdir -p "$CACHE/steps"
    if ! is_closed "$UID" "$CACHE" || ! is_closed "$UID" "$CACHE/steps"; then
        say "$CACHE or its folder steps is not there, or others than you can write in it"
        return 1
    fi
    resolve "$1" || { say "the registry tells no digest of $1"; return 1; }
    key=$(key_of "$1" "$digest")
    ! is_roots "$SHARED" || ! found "$SHARED" "$key" || return 0
    hold "$CACHE/$key" is_over "$key" || code=$?
    if ((code == 1)) && found "$CACHE" "$key"; then
        touch -c "$CACHE/$key"
    else
        # What enroot could not import by the tag it cannot by another try.
        ((code == 0)) || return
        fetch "$1" "$key" || exit
        make_room "$key"
    fi
}

get() {
    local image=''
    LOCAL=$(own_folder) || exit
    LOCAL+=/$STEP.sqsh
    rm -f "$LOCAL"
    cached "$1" || alone "$1" || exit
    echo "$image" >&3
}

release() {
    LOCAL=$(own_folder) && rm -f "$LOCAL/$STEP.sqsh" "$LOCAL/$STEP.sqsh.words"
    rm -f "$CACHE/$STEP.$HOST".*.part
}

share() {
    local digest key folder image='' code=0
    [[ $UID == 0 ]] || { say "this is for root of the head"; exit 1; }
    is_roots "$SHARED" || { say "no folder ${SHARED:-for shared images} of root's is there"; exit 1; }
    command -v enroot >/dev/null || { say "the head's image lacks enroot"; exit 1; }
    umask 022
    CACHE=$SHARED
    folder=$(mktemp -d -p /var/tmp) || exit
    # shellcheck disable=SC2064 # it is known now
    trap "rm -rf '$folder'" EXIT
    LOCAL=$folder/image.sqsh
    digest=$(digest_of "$1") || exit
    key=$(key_of "$1" "$digest")
    hold "$CACHE/$key" found "$CACHE" "$key" || code=$?
    ((code != 0)) || fetch "$1" "$key"
    [[ $image == "$CACHE"/* ]] || exit 1
    say "$1 is there for all users: $image"
}

case ${1:-} in
    get) get "$2" ;;
    release) release ;;
    share) share "$2" ;;
    *) say "unknown command: ${1:-}"; exit 1 ;;
esac
