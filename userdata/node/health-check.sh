#!/bin/bash
# usage: health-check.sh periodic|epilog
# Tells health-watch.sh what is wrong with this node, in a file: Slurm advises against its own commands
# where an epilog runs. Never fails itself: a broken checker must not drain the fleet, so only what a
# check says counts.
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/.." || exit 0
# shellcheck source=/dev/null
source ./lib.sh
# shellcheck source=/dev/null
source files/checks.sh

readonly SICK=$RUN_DIR/sick

case $1 in
    periodic) checks="$(checks_of_gpus gpus ecc rows throttle fabric) check_efa check_shared check_scratch
        check_disk check_owner_rule check_files_rule" ;;
    *) checks=$(checks_of_gpus ecc) ;;
esac
((GPUS == 0)) || check_facts >/dev/null
export GPU_FACTS=${GPU_FACTS:-}
for check in $checks; do
    found=$(timeout 40 bash -c "source ./lib.sh; source files/checks.sh; $check" 2>/dev/null)
    if (($? == 1)) && [[ -n $found ]]; then
        put_file "$SICK" 600 <<<"${check#check_}: ${found//$'\n'/; }"
        # Until the node is drained, so that no job starts here meanwhile; not for ever.
        for ((waited = 0; waited < 50; waited++)); do
            [[ -e $SICK ]] || break
            sleep 0.1
        done
        break
    fi
done
exit 0
