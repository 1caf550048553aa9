# shellcheck shell=bash
# Runs stages one after the other. A node that cannot become ready never idles for money:
# whatever ends this script before `ready` is named on the console and powers the node off,
# which terminates it. The head stays up, so that someone can look at it.

readonly LOG_DIR=/var/log/tidegate
# Made right before Slurm's daemon is started, which starts only where it is: the packages enable
# their units, and /run is empty after a reboot.
# shellcheck disable=SC2034  # the last stages use it
readonly MAY_START=/run/tidegate/may-start
stage=start

# Appends: where /dev/console is a file, `>` would cut it.
console() {
    printf 'tidegate %s %s\n' "$(date -u +%FT%T.%3NZ)" "$*" >>/dev/console
}

give_up() {
    if [[ $ROLE == node ]]; then
        systemctl poweroff
    fi
    exit 1
}

on_exit() {
    local code=$?
    trap - EXIT
    if [[ $stage == ready ]]; then
        exit "$code"
    fi
    console "stage $stage failed (exit $code): $(tail -n 3 "$LOG_DIR/$stage.log" | tr '\n' ' ')"
    give_up
}

# Nothing may hang for ever either. cloud-init leaves this child alone when it is done.
start_dead_man() {
    setsid bash -c "sleep $BOOT_BOUND_S
        echo 'tidegate not ready after $BOOT_BOUND_S s' >>/dev/console
        [[ $ROLE == head ]] || systemctl poweroff" </dev/null >/dev/null 2>&1 &
    dead_man=$!
}

# retry SECONDS COMMAND...: until it succeeds, for at most SECONDS. The pauses double up to
# 20 s with full jitter: a hundred nodes that boot together must not ask together.
retry() {
    local deadline=$((SECONDS + $1)) pause_ms=1000 wait_ms
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        wait_ms=$((RANDOM * pause_ms / 32768 + 50))
        sleep "$((wait_ms / 1000)).$(printf '%03d' $((wait_ms % 1000)))"
        pause_ms=$((pause_ms * 2 > 20000 ? 20000 : pause_ms * 2))
    done
}

run_stages() {
    mkdir -p "$LOG_DIR" /run/tidegate
    trap on_exit EXIT
    start_dead_man
    for stage in "$@"; do
        exec >>"$LOG_DIR/$stage.log" 2>&1 </dev/null
        "stage_$stage"
    done
    stage=ready
    kill -- "-$dead_man" || true
    console "ready after $SECONDS s"
}
