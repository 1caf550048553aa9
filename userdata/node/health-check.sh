#!/bin/bash
# usage: health-check.sh periodic|epilog
# Tells health-watch.sh what is wrong with this node, in a file: Slurm advises against its own commands
# where an epilog runs. Never fails itself: a broken checker must not drain the fleet, so only what a
# check says counts, and only what it finds again. What comes and goes counts with its second time in
# an hour. Slurm ends this after 60 s (slurm.conf(5), HealthCheckProgram).
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/.." || exit 0
# shellcheck source=/dev/null
source ./lib.sh
# shellcheck source=/dev/null
source files/checks.sh

readonly SICK=$RUN_DIR/sick
verdict='' finding='' # by `judge_check`

# look LIMIT_S COMMAND
look() {
    timeout "$1" bash -c "source ./lib.sh; source files/checks.sh; $2" 2>/dev/null
}

[[ $1 == periodic ]] && when=run || when=end
((GPUS == 0)) || check_facts >/dev/null
export GPU_FACTS=${GPU_FACTS:-}
for check in $(checks_of "$when"); do
    found=$(look 40 "check_$check")
    [[ $? == 1 && -n $found ]] || continue
    judge_check "$check" "${found//$'\n'/; }"
    if [[ $verdict == tell ]]; then
        [[ -e $RUN_DIR/told-$check ]] || console "health: $finding; the node goes on"
        touch "$RUN_DIR/told-$check"
        continue
    fi
    passed=passed-$check
    if ((SECONDS < 30)) && [[ ! $(find "$RUN_DIR" -name "$passed" -mmin -60) ]] && look 25 "retest $check"; then
        console "health: $finding, and not 10 s later; the node goes on"
        touch "$RUN_DIR/$passed"
        continue
    fi
    put_file "$SICK" 600 <<<"$finding"
    # Until the node is drained, so that no job starts here meanwhile; not for ever.
    for ((waited = 0; waited < 50; waited++)); do
        [[ -e $SICK ]] || break
        sleep 0.1
    done
    break
done
exit 0
