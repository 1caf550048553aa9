# shellcheck shell=bash disable=SC2153
# Scripts of the site's own (hooks). A line each: seconds, checksum or -, source, arguments; with
# tabs between them. One that fails is not tried again: nobody knows what a second run would do.

# Not below /run, from which Ubuntu runs nothing (noexec).
readonly SCRIPTS=/var/lib/tidegate/scripts

# run_hooks NAME FOLDER: the lines on standard input; FOLDER: remembers those that have run.
run_hooks() {
    local name=$1 done_in=$2 line number=0 mark
    install -d -m 700 "$SCRIPTS" "$done_in"
    while IFS= read -r line; do
        [[ -n $line ]] || continue
        number=$((number + 1))
        mark=$done_in/$name.$(sha256sum <<<"$number $line" | cut -c 1-16)
        if [[ ! -e $mark ]]; then
            # The runner of stages reads nothing, and no more may a script.
            run_hook "$name" "$number" "$line" </dev/null || return
            touch "$mark"
        fi
    done
}

# all_ran NAME FOLDER: whether each of the lines on standard input has.
all_ran() {
    local line number=0
    while IFS= read -r line; do
        [[ -n $line ]] || continue
        number=$((number + 1))
        [[ -e $2/$1.$(sha256sum <<<"$number $line" | cut -c 1-16) ]] || return 1
    done
}

# run_hook NAME NUMBER LINE
run_hook() {
    local -a fields
    IFS=$'\t' read -r -a fields <<<"$3"
    local limit_s=${fields[0]} sha256=${fields[1]} source=${fields[2]}
    local file=$SCRIPTS/$1.$2 log=$LOG_DIR/$1.$2.log told="$1 hook $2 (${fields[2]})" code=0 seen
    [[ $source != inline:* ]] || told="$1 hook $2 (inline)"
    # Only to fetch it may be tried again.
    if ! fetch_hook "$source" "$file"; then
        echo "$told could not be fetched: $(tail -n 1 "$file" 2>/dev/null | tr -d '\000' | cut -c 1-200)"
        return 1
    fi
    if [[ $sha256 != - ]]; then
        seen=$(sha256sum <"$file")
        [[ ${seen%% *} == "$sha256" ]] || refuse "$told has checksum ${seen%% *}, not $sha256"
    fi
    chmod 700 "$file"
    (
        export TIDEGATE_ROLE=$ROLE TIDEGATE_POOL=${POOL:-} TIDEGATE_SHARED_DIR=$SHARED_DIR AWS_REGION
        # The runner's lock stays its own: a script may leave something running.
        exec 9>&-
        cd /
        exec timeout --kill-after=10 "$limit_s" "$file" "${fields[@]:3}"
    ) >"$log" 2>&1 || code=$?
    ((code != 0)) || return 0
    if ((code == 124 || code == 137)); then
        refuse "$told was ended after $limit_s s: $(last_line "$log")"
    fi
    refuse "$told exited with $code: $(last_line "$log")"
}

last_line() {
    grep -v '^[[:space:]]*$' "$1" | tail -n 1 | cut -c 1-200
}

# fetch_hook SOURCE FILE
fetch_hook() {
    rm -f "$2"
    case $1 in
        inline:*) base64 -d <<<"${1#inline:}" >"$2" ;;
        s3://*) signed s3 -m 60 -o "$2" "$(endpoint s3)/${1#s3://}" ;;
        *) curl -fsSL -m 60 --retry 2 -o "$2" "$1" ;;
    esac
}
