#!/bin/bash
# usage: health-watch.sh
# Drains this node as soon as the kernel's log says that a GPU, a Neuron device, an instance store or an
# EFA device is of no use, and when a check of Slurm's health program or epilog finds it sick: those
# write what they saw into $SICK, since Slurm advises against its own commands in them. Nothing is
# killed: the jobs that run go on, and whose they are reads it in their output. What was judged once is
# not judged again, so a person who mends a node can open it.
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/.." || exit 1
# shellcheck source=/dev/null
source ./lib.sh
# shellcheck source=/dev/null
source files/findings.sh

readonly SICK=$RUN_DIR/sick JUDGED=$RUN_DIR/judged
# A device that fails may say so ten times a second, and Slurm is to hear it once.
readonly NOT_AGAIN_S=60
declare -A SEEN=() DRAINED_S=()
verdict='' subject='' finding='' source='' # by `judge`

# Whether the node is drained by somebody who must keep it: a person, or who saves its jobs from a
# reclaim. Slurm says in brackets who drained it; nobody works as the user slurm, as which our agent
# does. A gang's gate has no reason.
is_kept() {
    local shown reason
    shown=$(timeout 10 scontrol -o show node "$INSTANCE_ID") || return
    [[ $shown == *' State='*DRAIN* && $shown =~ ' Reason='(.*) ]] || return
    reason=${BASH_REMATCH[1]}
    [[ $reason != *'[slurm@'* || $reason == *' (reclaim) ['* ]]
}

# Below which of EC2's network nodes it is, where Slurm knows a topology (stage topology): EC2 names no host.
below() {
    [[ ! ${PLACE:-} =~ :(nn-[0-9a-z]+):[^:]+$ ]] || echo "; below ${BASH_REMATCH[1]}"
}

drain() {
    console "health: $1"
    [[ $1 != *', then a test)' ]] || { mkdir -p "${TO_TEST%/*}" && echo "$1" >"$TO_TEST"; }
    until is_kept; do
        timeout 10 scontrol update nodename="$INSTANCE_ID" state=drain reason="tidegate-health: ${1%)}$(below))" || {
            sleep 1
            continue
        }
        # Beside the watch: a Slurm that is slow must not delay the next drain.
        tell "$1" &
        return
    done
}

# tell SENTENCE: in the output of the jobs that run here. A job that has just ended is no mistake.
tell() {
    local job
    for job in $(timeout 10 squeue -h -w "$INSTANCE_ID" -t R -o %A); do
        timeout 10 scontrol notify "$job" \
            "Tidegate: node $INSTANCE_ID was found sick, and no new job starts there: $1"
    done
} 2>/dev/null

# A line of the log begins with the time since the start of the machine, and comes again when this
# watcher is started again. What is only told is told once for each number, or device and words. No
# processes for a line that is not new: a storm must not delay what is fatal.
take() {
    local key=$1 drained_s
    judge "$1"
    [[ $verdict != ignore ]] || return 0
    drained_s=${DRAINED_S[$subject]:-}
    [[ $verdict != tell ]] || key="told $subject"
    [[ -z ${SEEN[$key]:-} ]] || return 0
    if [[ $verdict == tell ]]; then
        console "health: $finding; the node goes on"
    elif [[ -z $drained_s ]] || ((SECONDS < drained_s || SECONDS - drained_s >= NOT_AGAIN_S)); then
        drain "$source: $finding"
        DRAINED_S[$subject]=$SECONDS
    fi
    SEEN[$key]=1
    echo "$key" >>"$JUDGED"
}

take_sick() {
    [[ -s $SICK ]] || return 0
    drain "$(head -n 1 "$SICK")"
    rm -f "$SICK"
}

log() {
    journalctl -k -b -f -n all -o short-monotonic | grep --line-buffered -F "$SIGNS"
}

read_findings
touch "$JUDGED"
while IFS= read -r line; do SEEN[$line]=1; done <"$JUDGED"
exec {log}< <(log)
line=
while :; do
    code=0
    IFS= read -r -t 1 -u "$log" part || code=$?
    line+=$part
    # More than 128 says that the line's end has not come in time; else the log has ended, and
    # systemd starts this anew.
    ((code == 0 || code > 128)) || exit 1
    ((code)) || { take "$line"; line=; }
    take_sick
done
