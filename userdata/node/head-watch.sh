#!/bin/bash
# usage: head-watch.sh AFTER_S POLL_S
# The dead man's switch: a node that has heard nothing from slurmctld for AFTER_S seconds and runs no
# step powers itself off, and so ends: nobody would ever let it go. Busy nodes stay, also those whose
# step has ended and still tries to tell slurmctld so (slurmstepd does, for an hour at least).
#
# Heard counts what either side begins: an answer to a ping from here, or a message of slurmctld to
# slurmd, which comes where the head's name cannot be resolved here. Time is counted poll by poll and
# by the machine's own clock: a clock that is set, or a machine that stood still, makes no silence. What
# was counted is in a file, so a watcher that is killed and started again goes on from there.
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/.." || exit 1
# shellcheck source=/dev/null
source ./lib.sh

# Three polls without a step, in which nobody sees a prolog's end or a job's next step come.
readonly AFTER=$(($1 * 100)) POLL_S=$2 COUNTED=$RUN_DIR/silence IDLE_POLLS=3
said_to_slurmd=

# Hundredths of a second since the machine was started.
uptime_cs() {
    local up
    read -r up _ </proc/uptime
    echo $((10#${up/./}))
}

hears() {
    local before=$said_to_slurmd
    [[ $(timeout 10 scontrol ping 2>/dev/null) != *' is UP'* ]] || return 0
    said_to_slurmd=$(timeout 10 scontrol show slurmd 2>/dev/null | grep -F 'Last slurmctld msg time')
    [[ -n $before && -n $said_to_slurmd && $said_to_slurmd != "$before" ]]
}

# Slurm's own place-holder in cgroup v2 runs no job. A process that has ended has no words.
is_busy() {
    local comm words
    while read -r comm; do
        words=$(tr '\0' ' ' 2>/dev/null <"${comm%/comm}/cmdline")
        [[ -z $words || $words == *'slurmstepd infinity'* ]] || return 0
    done < <(grep -lsx slurmstepd /proc/[0-9]*/comm)
    return 1
}

silence=$(cat "$COUNTED" 2>/dev/null) || silence=0
[[ $silence =~ ^[0-9]{1,9}$ ]] || silence=0
idle=0 last=$(uptime_cs)
while sleep "$POLL_S"; do
    if hears; then
        silence=0 last=$(uptime_cs)
    else
        now=$(uptime_cs) most=$((POLL_S * 100 + 6000))
        ((silence += now - last < most ? now - last : most))
        last=$now
    fi
    echo "$silence" >"$COUNTED"
    if ((silence < AFTER)) || is_busy; then
        idle=0
    elif ((++idle >= IDLE_POLLS)); then
        console "nothing heard of slurmctld for $((silence / 6000)) min, and no step runs: powers off"
        # Else its end looks as if AWS had taken the node back.
        put_event NodeOrphaned "\"silent_s\": $((silence / 100))" || true
        systemctl poweroff
    fi
done
