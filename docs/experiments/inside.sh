#!/bin/bash
# Process 1 of an experiment (see run.sh): its scratch folder is a tmpfs, so it goes with the namespace.
set -euo pipefail

mount -t tmpfs -o mode=755 tmpfs "$WORKDIR"
mkdir -p "$WORKDIR/shared" "$WORKDIR/machines"

keep_logs() {
    local dir
    [[ -n $KEEP_LOGS ]] || return 0
    for dir in "$WORKDIR"/machines/*; do
        mkdir -p "$KEEP_LOGS/${dir##*/}"
        cp -r "$dir/upper/var/log/slurm/." "$dir/init.log" "$KEEP_LOGS/${dir##*/}/" 2>/dev/null || true
    done
}
trap keep_logs EXIT

lab=$1 script=$2
shift 2
export HERE=${lab%/*}
# shellcheck source=lab.sh
source "$lab"
network_up
say "== ${script##*/}: Slurm $(slurm_version)"
# shellcheck disable=SC1090  # the experiment is an argument
source "$script" "$@"
