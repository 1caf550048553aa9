#!/bin/bash
# Hands a batch job that waits here over to another cluster (docs/second-region.md). Whatever goes wrong, it does
# not run in both, and is not lost.
# usage: hand-over JOB SLURM_CONF_OF_THE_OTHER [OPTIONS OF SBATCH...]      as the job's user
set -euo pipefail

job=${1:?usage: hand-over JOB SLURM_CONF [OPTIONS...]}
conf=${2:?usage: hand-over JOB SLURM_CONF [OPTIONS...]}
shift 2

stays() {
    echo "job $job stays here: $*" >&2
    exit 1
}

shown() { scontrol show job "$job" -o; }

[[ -r $conf ]] || stays "$conf cannot be read"
before=$(shown) || stays "Slurm does not have it"
[[ $before != *' ArrayJobId='* && $before != *' HetJobId='* ]] ||
    stays "it is an array or heterogeneous; submit what is left of it there, and cancel it here"
script=$PWD/job-$job.sh
scontrol write batch_script "$job" "$script" >/dev/null || stays "it has no batch script"

# What is held and still waits begins no more. Slurm holds a job that runs as well, for its next run.
scontrol hold "$job" || stays "it cannot be held"
if [[ $(shown) != *' JobState=PENDING '* ]]; then
    scontrol release "$job" || true
    stays "it has begun"
fi
# An answer that never came may mean that the other has it: so it is not released.
there=$(SLURM_CONF=$conf sbatch --parsable "$@" "$script") ||
    stays "held, since the other cluster refused it or did not answer. If it is not there" \
        "(SLURM_CONF=$conf squeue --me): scontrol release $job"
scancel "$job" ||
    stays "held, since Slurm did not cancel it. Do so, and do not release it (scancel $job): it is job" \
        "${there%%;*} of the other cluster"
echo "job $job is job ${there%%;*} of the other cluster"
