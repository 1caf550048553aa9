#!/bin/bash
# usage: data-sets.sh ask PLACE...   they are wanted on this disk
#        data-sets.sh prolog         so are those in the comment of Slurm's job, while it runs
#        data-sets.sh epilog
#        data-sets.sh load           the service, which loads what is wanted, one after the other
# Data sets of S3 on the node's own disk. A PLACE is s3://BUCKET/PREFIX, and what lies under it becomes
# $SETS/BUCKET+PREFIX/files, each / a +. Beside `files` there is `complete` when all of it is there, or
# `failed` with the reason, and then no file. What is there is not loaded again. A tag and a comment say
# what anybody likes: only what the cluster file's `prefetch` names is taken, by characters that mean
# nothing to a shell or a path.
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/.." || exit 1
# shellcheck source=/dev/null
source ./lib.sh

readonly ALLOWED=/etc/tidegate/data-sets ASKED=$RUN_DIR/data-sets SETS=/scratch/tidegate-data
# Of files that small, listing and loading would take hours; a comment names a few.
readonly OBJECTS_MAX=100000 PLACES_MAX=8
# Tries, and how long one may take.
readonly TRIES=3 TRY_S=21600
# A part of the disk, in percent, stays free for jobs.
readonly MARGIN_PERCENT=5

# is_allowed PLACE
is_allowed() {
    local place=${1#s3://} allowed
    [[ $1 =~ ^s3://[a-z0-9][a-z0-9.-]+(/[A-Za-z0-9_.=@-]+)*$ ]] && ((${#place} <= 240)) &&
        ! [[ /$place/ =~ /\.{1,2}/ ]] || return 1
    while read -r allowed; do
        [[ $place/ != "$allowed"/* ]] || return 0
    done <"$ALLOWED"
    return 1
}

# name_of PLACE: its folder.
name_of() {
    local place=${1#s3://}
    echo "${place//\//+}"
}

ask() {
    local place
    for place in "$@"; do
        if is_allowed "$place"; then
            touch "$ASKED/asked/$(name_of "$place")"
        else
            console "data: $(printf %q "${place:0:200}") is not loaded: the cluster file's prefetch does not allow it"
        fi
    done
}

# What the job's comment names.
places() {
    grep -oE 'tidegate:data=[^[:space:],;]*' <<<"${SLURM_JOB_COMMENT:-}" |
        sed 's/^tidegate:data=//; s|/*$||' | head -n "$PLACES_MAX"
}

prolog() {
    local place
    local -a wanted
    mapfile -t wanted < <(places)
    for place in "${wanted[@]}"; do
        ! is_allowed "$place" || name_of "$place"
    done >"$ASKED/used/$SLURM_JOB_ID"
    ask "${wanted[@]}"
}

# last_words FILE: of a program, in one line.
last_words() {
    grep -v '^[[:space:]]*$' "$1" | tail -n 1 | tr -d '\r' | cut -c1-300
}

free() {
    df -B1 --output="$1" "$SETS" | sed 1d
}

# make_room BYTES NAME
make_room() {
    local margin
    margin=$(($(free size) * MARGIN_PERCENT / 100))
    until (($(free avail) >= $1 + margin)); do
        evict "$2" || {
            echo "it needs $((($1 >> 20) + 1)) MiB, and $((($(free avail) - margin) / 1048576)) MiB are left of" \
                "/scratch beside a margin of $MARGIN_PERCENT % and what others use"
            return 1
        }
    done
}

# evict NAME: what was used longest ago, that neither a job has nor NAME is nor anybody waits for.
evict() {
    local name
    while read -r _ name; do
        [[ $name != "$1" && ! -e $ASKED/asked/$name ]] || continue
        ! grep -qsxF -e "$name" "$ASKED"/used/* || continue
        console "data: $name makes room, it was used longest ago"
        rm -f "$SETS/$name/complete"
        rm -rf "${SETS:?}/$name"
        return 0
    done < <(cd "$SETS" && find . -mindepth 2 -maxdepth 2 -name complete -printf '%T@ %h\n' |
        sed 's|\./||' | sort -n)
    return 1
}

# counted: of a list of sizes, how many there are, and their sum.
counted() {
    awk '/^[0-9]+$/ {n++; sum += $1} END {printf "%d %.0f\n", n, sum}'
}

# fetch NAME FOLDER WORDS: prints why it is not whole, and WORDS is what programs said.
fetch() {
    local place=s3://${1//+//}/ bucket=${1%%+*} objects bytes came has try words
    command -v aws >/dev/null || { echo "the image has no AWS CLI (aws)"; return 1; }
    # Names that end with a slash are folders of a console, which no file becomes.
    aws s3api list-objects-v2 --bucket "$bucket" --prefix "${place#s3://*/}" --output text \
        --max-items $((OBJECTS_MAX + 1)) --query "Contents[?!ends_with(Key, '/')].[Size]" >"$3.sizes" 2>"$3" ||
        { last_words "$3"; return 1; }
    read -r objects bytes < <(counted <"$3.sizes")
    ((objects > 0)) || { echo "no object lies under $place: name what the keys begin with, up to a slash"; return 1; }
    ((objects <= OBJECTS_MAX)) ||
        { echo "more than $OBJECTS_MAX objects lie under $place: pack them into fewer"; return 1; }
    drop_unfinished "$2"
    read -r _ has < <(stored "$2")
    make_room $((bytes - has)) "$1" || return 1
    for ((try = 1; try <= TRIES; try++)); do
        ((try == 1)) || { pause "$((try + 2))"; drop_unfinished "$2"; }
        timeout "$TRY_S" aws s3 sync --only-show-errors --exclude '' --exclude '*/' "$place" "$2" >"$3" 2>&1 &&
            [[ $(stored "$2") == "$objects $bytes" ]] && return 0
        # That another try does not make room.
        ! grep -qF 'No space left' "$3" || break
    done
    read -r came _ < <(stored "$2")
    words=$(last_words "$3")
    echo "$came of $objects objects came: ${words:-what lies there is not what was listed before}"
    return 1
}

# drop_unfinished FOLDER: what the AWS CLI was writing as it was killed, NAME.XXXXXXXX until it is whole
# (s3transfer, utils.py). An object that has such a name is loaded once more.
drop_unfinished() {
    find "$1" -type f -regextype posix-extended -regex '.*\.[0-9A-Fa-f]{8}' -delete
}

stored() {
    find "$1" -type f -printf '%s\n' | counted
}

# load NAME
load() {
    local name=$1 folder=$SETS/$1 words=$ASKED/words objects bytes why began_ms now_ms
    if [[ -e $folder/complete ]]; then
        touch "$folder/complete"
        return
    fi
    set_now_ms
    began_ms=$now_ms
    mkdir -p "$folder/files" && rm -f "$folder/failed" || return
    : >"$words"
    if why=$(fetch "$name" "$folder/files" "$words"); then
        read -r objects bytes < <(stored "$folder/files")
        set_now_ms
        why="$objects objects, $bytes bytes, in $((now_ms - began_ms)) ms"
        console "data: s3://${name//+//} is complete: $why"
        put_file "$folder/complete" 644 <<<"$why"
    else
        console "data: s3://${name//+//} is not loaded: $why"
        rm -rf "$folder/files"
        put_file "$folder/failed" 644 <<<"$why"
    fi
}

next() {
    find "$ASKED/asked" -type f -printf '%T@ %f\n' | sort -n | sed -n '1s/^[^ ]* //p'
}

# What was begun before the machine was started again, and nobody asks for any more.
sweep() {
    local folder
    for folder in "$SETS"/*/; do
        folder=${folder%/}
        [[ ! -d $folder || -e $folder/complete || -e $ASKED/asked/${folder##*/} ]] || rm -rf "$folder"
    done
}

# load_wanted [once]: until the machine is off.
load_wanted() {
    local name
    sweep
    export AWS_REGION AWS_DEFAULT_REGION=$AWS_REGION
    # The CLI asks the metadata service once, for a second, and has no credentials then: in a boot, in
    # which all ask at once, that may be too short. Source: AWS SDKs guide, "IMDS credential provider".
    export AWS_METADATA_SERVICE_TIMEOUT=5 AWS_METADATA_SERVICE_NUM_ATTEMPTS=5
    while :; do
        name=$(next)
        if [[ -n $name ]]; then
            load "$name"
            rm -f "$ASKED/asked/$name"
        elif [[ -n ${1:-} ]]; then
            return
        else
            sleep 1
        fi
    done
}

case $1 in
    ask) ask "${@:2}" ;;
    prolog) prolog ;;
    epilog) rm -f "$ASKED/used/$SLURM_JOB_ID" ;;
    load) load_wanted "${@:2}" ;;
esac
