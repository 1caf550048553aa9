#!/bin/bash
# Run one experiment with real Slurm daemons in namespaces of its own; prints what was seen as plain lines.
# usage: run.sh a|b|c|d|e|f|g|h|i|m|samples [ARGS...]      (root; needs Slurm, munge and what the experiment names)
#        TREE=DIR run.sh ...                           the same on a tree made by debian_tree.sh
#        KEEP_LOGS=DIR run.sh ...                      copies the head's and nodes' logs there at the end
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
name=${1:?usage: run.sh a|b|c|d|e|f|g|h|i|m|samples}
shift
script=("$here/exp_$name"_*.sh)
[[ -f ${script[0]} ]] || { echo "no experiment $name" >&2; exit 2; }

workdir=$(mktemp -d)
lab=''
clean_up() {
    [[ -z $lab ]] || kill -KILL "$lab" 2>/dev/null || true
    rmdir "$workdir"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

export BASE=${TREE:-/} WORKDIR=$workdir KEEP_LOGS=${KEEP_LOGS:-}
unshare --net --uts --mount --propagation private --pid --fork --kill-child=SIGKILL --mount-proc \
    bash "$here/inside.sh" "$here/lab.sh" "${script[0]}" "$@" &
lab=$!
wait "$lab"
