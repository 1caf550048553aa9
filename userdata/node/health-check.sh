#!/bin/bash
# usage: drain-sick.sh periodic|epilog
# Drains this node when a check finds it sick; the reason's prefix is what others look for. Never
# fails itself: a broken checker must not drain the fleet, so only what a check says counts.
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/.." || exit 0
# shellcheck source=/dev/null
source ./lib.sh
# shellcheck source=/dev/null
source files/checks.sh

case $1 in
    periodic) checks="$(checks_of_gpus gpus xid ecc rows throttle) check_shared check_disk check_owner_rule check_files_rule" ;;
    *) checks=$(checks_of_gpus xid ecc) ;;
esac
((GPUS == 0)) || check_facts >/dev/null
export GPU_FACTS=${GPU_FACTS:-}
for check in $checks; do
    found=$(timeout 40 bash -c "source ./lib.sh; source files/checks.sh; $check" 2>/dev/null)
    if (($? == 1)) && [[ -n $found ]]; then
        scontrol update nodename="$INSTANCE_ID" state=drain reason="tidegate-health: ${check#check_}: $found"
        break
    fi
done
exit 0
