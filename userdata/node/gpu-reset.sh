#!/bin/bash
# usage: gpu-reset.sh
# What Slurm's order to reboot starts on this node (slurm.conf's RebootProgram), which is drained and
# empty by then. Where the reason asks for a reset of the GPUs that comes first: they are reset, all at
# once, and set up again, and the health gate asks all that it asks after a reboot. Where it passes the
# node opens itself. In any other case the machine reboots, at once; what hangs, systemd ends and reboots.
# Source: nvidia-smi(1), --gpu-reset: nothing may have a GPU open; GPUs that NVLink joins are reset
# together, with the fabric manager or without; persistence mode counts as open (NVIDIA/NVSentinel issue
# 1690); whether they are well has to be seen afterwards.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."
# shellcheck source=/dev/null
source ./lib.sh
# shellcheck source=/dev/null
source files/checks.sh

readonly RESET_LIMIT_S=${RESET_LIMIT_S:-120} LOG=$LOG_DIR/gpu-reset.log KERNEL=${KERNEL:-/dev/kmsg}
# In the order in which they start again. slurmd too: it begins a health check every five minutes.
readonly CLIENTS="nvidia-persistenced nvidia-fabricmanager nvidia-imex $MONITORS nvidia-dcgm-exporter tidegate-gpu-metrics tidegate-gpu-use"
why='' stopped=''

reboot_machine() {
    trap - EXIT
    [[ -z $why ]] || console "health: a reset of the GPUs has not mended them: $why; the node reboots"
    [[ -z $why ]] || put_event GpuReset "\"failed\": $(quoted "${why:0:200}")" || true
    systemctl reboot
    exit
}

# A person's own reboot has another reason; what is cut (MIG) would have to be cut anew.
is_asked() {
    local shown
    ((GPUS > 0)) && [[ -z $LAYOUT ]] && shown=$(timeout 10 scontrol -o show node "$INSTANCE_ID") &&
        [[ $shown =~ ' Reason='.*'remedy: reset'[\;,\)] ]]
}

# A check that slurmd has begun may still ask them.
reset_gpus() {
    local try said=''
    for try in 1 2 3; do
        timeout -k 5 60 nvidia-smi -pm 0 || true
        said=$(timeout -k 5 "$RESET_LIMIT_S" nvidia-smi --gpu-reset 2>&1) && { echo "$said"; return; }
        echo "try $try: $said"
        [[ $said == *'In use'* ]] || break
        sleep 5
    done
    why="nvidia-smi --gpu-reset: $(sed -n 's/^ *GPU/GPU/p' <<<"$said" | grep -m 1 . ||
        echo "${said:-nothing in $RESET_LIMIT_S s}")"
    return 1
}

# stage NAME LIMIT_S: as at the boot.
stage() {
    timeout -k 5 "$2" ./boot.sh try "$1" || {
        why="stage $1 failed then: $(tail -n 1 "$LOG")"
        return 1
    }
}

open_node() {
    local try
    for try in 1 2 3 4 5; do
        ! timeout 10 scontrol update nodename="$INSTANCE_ID" state=resume \
            reason='tidegate: its GPUs were reset (open)' || return 0
        sleep 2
    done
    why='Slurm does not answer'
    return 1
}

main() {
    local found
    is_asked || reboot_machine
    console 'health: the GPUs are being reset'
    # shellcheck disable=SC2086
    stop_units slurmd $CLIENTS
    reset_gpus
    echo "$GPUS_RESET" >"$KERNEL"
    stage gpu 150
    ((FABRIC == 0)) || stage fabric 130
    # shellcheck disable=SC2086
    start_units ${stopped/ slurmd/}
    stage health 300
    # The watch drains for the same Xid once a minute ($NOT_AGAIN_S), and less may have passed since.
    systemctl restart tidegate-health-watch
    systemctl start slurmd
    open_node
    trap - EXIT
    console "health: the GPUs were reset in $SECONDS s, and the node takes jobs again"
    # What the log said while the node opened, health-watch.sh had no reason to drain it for.
    found=$(check_kernel) || put_file "$RUN_DIR/sick" 600 <<<"kernel: $found"
    put_event GpuReset "\"took_s\": $SECONDS" || true
}

exec >>"$LOG" 2>&1
trap reboot_machine EXIT
main
