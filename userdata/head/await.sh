# shellcheck shell=bash
# await WORDS COMMAND...: half a minute.
await() {
    local words=$1 try
    shift
    for ((try = 0; try < 150; try++)); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.2
    done
    echo "$words"
    return 1
}
