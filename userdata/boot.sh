#!/bin/bash
# Runs this bundle's stages as a graph, each as soon as what it needs is done.
#
#   boot.sh start         all of them, as the unit tidegate-boot; `restart` when they changed
#   boot.sh               all of them
#   boot.sh stage NAME    one, with its tries, for who bakes an image
#   boot.sh try NAME      one try of one; `look` only asks whether it holds
#
# A stage is a file with `apply`, and with `check` where one can tell that there is nothing to
# do. After an `apply` the `check` must hold. A stage that exits with 78 is wrong by
# configuration and is not tried again. A node that cannot become ready never idles for money:
# it says why, on the console and on the bus, and powers off, which terminates it. The head
# stays up, so that someone can look at it, and its unit tries again.
set -euo pipefail
umask 022
cd "${BASH_SOURCE[0]%/*}"

# The runner hears of ended stages by `wait -p`, which came with bash 5.1: Amazon Linux 2 and Ubuntu 20.04
# have an older one, and would fail in words that nobody understands.
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 501)); then
    echo "tidegate stage runner failed (exit 78): the image has bash $BASH_VERSION, a boot needs 5.1" >>/dev/console
    ! grep -qx ROLE=node /etc/tidegate/boot.env || systemctl poweroff
    exit 78
fi

# shellcheck source=/dev/null
source ./lib.sh

declare -A needs=() time_limit_s=() wait_s=() only_with=() is_done=() is_started=() running=()
order=()

read_graph() {
    local name limit wait with all
    while read -r name limit wait with all; do
        order+=("$name") only_with[$name]=$with
        # A number, or the name of the setting that holds it.
        time_limit_s[$name]=$((limit)) wait_s[$name]=$((wait)) needs[$name]=$all
    done <"graph.$ROLE"
}

is_free() {
    local other
    for other in ${needs[$1]}; do
        [[ -n ${is_done[$other]:-} ]] || return 1
    done
}

start_free_ones() {
    local name
    for name in "${order[@]}"; do
        if [[ -z ${is_started[$name]:-} ]] && is_free "$name"; then
            is_started[$name]=1
            run_stage "$name" &
            running[$!]=$name
        fi
    done
}

run_all() {
    local ended code name
    start_free_ones
    while ((${#running[@]} > 0)); do
        code=0
        wait -n -p ended || code=$?
        name=${running[$ended]}
        unset "running[$ended]"
        if ((code != 0)); then
            give_up "$name" "$code"
        fi
        is_done[$name]=1
        start_free_ones
    done
}

# What a stage said of it would stand on the same disk.
is_full() {
    (($(df --output=avail / | sed 1d) < 1024))
}

# give_up STAGE CODE
give_up() {
    local pid tail
    trap - EXIT
    # By a stage's own reboot, which says nothing against the machine: the next boot speaks for it.
    [[ ! -e $RUN_DIR/reboots ]] || exit 1
    for pid in "${!running[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    tail=$(tail -n 3 "$LOG_DIR/$1.log" 2>/dev/null | tr '\n' ' ')
    ! is_full || tail="the root disk is full: it needs more GiB (root_gib), or less on it. $tail"
    console "stage $1 failed (exit $2): $tail"
    # Of a node that takes jobs by now they go on; its unit tries again.
    [[ $ROLE != node || ! -e $RUN_DIR/ready ]] || exit 1
    put_event BootstrapFailed "\"stage\": $(quoted "$1"), \"tail\": $(quoted "$tail")" || true
    if [[ $ROLE == node ]]; then
        systemctl poweroff
    fi
    exit 1
}

run_stage() {
    local name=$1 limit=${time_limit_s[$1]} try=1 code now_ms started_ms how deadline
    set_now_ms
    started_ms=$now_ms
    deadline=$((SECONDS + ${wait_s[$name]}))
    if ! is_wanted "${only_with[$name]}"; then
        echo skip >"$RUN_DIR/how.$name"
        note_stage "$name" skip "$started_ms" 1
        tell_time "stage $name skip" "$started_ms" ', try 1'
        return
    fi
    until timeout --kill-after=5 "$limit" "$PWD/boot.sh" try "$name" >>"$LOG_DIR/$name.log" 2>&1; do
        code=$?
        ((code != 124)) || echo "cut after $limit s" >>"$LOG_DIR/$name.log"
        if ((code == WRONG_CONFIGURATION || SECONDS >= deadline)) || is_full; then
            # What came in the last moment has come: a node that has joined may have a job already.
            ((code == WRONG_CONFIGURATION)) || ! has_come "$name" || break
            note_stage "$name" failed "$started_ms" "$try" || true
            exit "$code"
        fi
        pause "$try"
        try=$((try + 1))
    done
    read -r how <"$RUN_DIR/how.$name"
    note_stage "$name" "$how" "$started_ms" "$try"
    tell_time "stage $name $how" "$started_ms" ", try $try"
}

# has_come NAME: one last look, when the time for tries is over.
has_come() {
    timeout --kill-after=5 60 "$PWD/boot.sh" look "$1" >>"$LOG_DIR/$1.log" 2>&1
}

# is_wanted NAME: whether the setting, or the fact that an earlier stage found out, says anything.
is_wanted() {
    [[ $1 != - ]] || return 0
    # shellcheck source=/dev/null
    [[ ! -e $RUN_DIR/facts ]] || source "$RUN_DIR/facts"
    [[ -n ${!1} && ${!1} != 0 ]]
}

# tell_time TEXT SINCE_MS MORE
tell_time() {
    local now_ms s
    set_now_ms
    printf -v s '%d.%03d' $(((now_ms - $2) / 1000)) $(((now_ms - $2) % 1000))
    console "$1 $s s${3:-}"
}

note_stage() {
    local now_ms
    set_now_ms
    printf '{"stage": "%s", "how": "%s", "at_ms": %s, "ms": %s, "tries": %s}\n' \
        "$1" "$2" "$(($3 - boot_started_ms))" "$((now_ms - $3))" "$4" >>"$LOG_DIR/stages.jsonl"
}

look() {
    # shellcheck disable=SC1090,SC1091
    source "./stages/$1.sh"
    declare -F check >/dev/null && check
}

# One try. `set -e` is off in whatever is asked by `if`, so checks are chains of `&&`.
try_stage() {
    # shellcheck disable=SC1090,SC1091
    source "./stages/$1.sh"
    echo skip >"$RUN_DIR/how.$1"
    if declare -F check >/dev/null; then
        ! check || return 0
    fi
    echo apply >"$RUN_DIR/how.$1"
    apply
    if declare -F check >/dev/null && ! check; then
        echo "$1 was applied and does not hold"
        return 1
    fi
}

main() {
    local now_ms
    trap 'give_up runner $?' EXIT
    # Stages of a runner that was killed live on and hold this lock until they end.
    exec 9>"$RUN_DIR/lock"
    flock -w 300 9
    set_now_ms
    boot_started_ms=$now_ms
    # Without one each question asks for its own.
    IMDS_TOKEN=$(imds_token || true)
    export IMDS_TOKEN
    : >"$LOG_DIR/stages.jsonl"
    run_all
    trap - EXIT
    tell_time 'ready after' "$boot_started_ms"
    : >"$RUN_DIR/ready"
    # It is not loaded any more where this is not the first run since the machine came up.
    if [[ $ROLE == node ]] && systemctl is-active --quiet tidegate-dead-man.timer; then
        systemctl stop tidegate-dead-man.timer
    fi
    put_event NodeReady "\"stages\": [$(paste -sd, "$LOG_DIR/stages.jsonl")]" || true
}

# The unit; without waiting, since it may come after the one that runs user data.
enter() {
    # The head comes by each minute.
    if ! cmp -s tidegate-boot.service /etc/systemd/system/tidegate-boot.service; then
        install -m 644 tidegate-boot.service /etc/systemd/system
        systemctl daemon-reload
    fi
    systemctl --no-block "$1" tidegate-boot
}

boot_started_ms=0
[[ -d $LOG_DIR && -d $RUN_DIR ]] || mkdir -p "$LOG_DIR" "$RUN_DIR"
[[ ${1:-all} == @(try|look) ]] || read_graph
case ${1:-all} in
    start | restart) enter "$1" ;;
    all) main ;;
    stage) run_stage "$2" ;;
    try) try_stage "$2" ;;
    look) ! look "$2" || exit 0; exit 1 ;;
esac
