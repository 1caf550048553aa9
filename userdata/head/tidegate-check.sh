#!/bin/bash
# usage: tidegate-check NAME NODE[,NODE]
# Submits a check of the site's as its user, once for each NAME: that of a new template before other jobs
# on these nodes, that of an idle node or of two behind them. Of root, since sbatch submits for others as root alone; the agent, which is SlurmUser
# and may start jobs as anybody through slurmctld anyway, runs it by sudo. Everything but the name and
# the nodes is root's file: each line has kind and pool, partition, user, nodes, time limit and wait in seconds,
# and the script.
set -uo pipefail
export PATH=/opt/slurm/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin LC_ALL=C

readonly CHECKS=/etc/slurm/tidegate-check.conf
# The highest that Slurm takes: no other job starts on the nodes before it (slurm.conf(5), Priority).
readonly PRIORITY=4294967290
# The most that sbatch takes: no priority is lower, and it is not held (sbatch(1), --nice).
readonly NICE=2147483645
# With what Slurm is asked before and after, less than the agent waits for all of it.
readonly SUBMIT_S=8

fail() {
    echo "$*" >&2
    exit 1
}

(($# == 2)) || fail "usage: tidegate-check NAME NODE[,NODE]"
[[ $1 =~ ^tidegate:((check|idle|pair):[a-z][a-z0-9_-]{0,30}):[A-Za-z0-9._-]{1,80}:[0-9]{1,12}-[0-9]{1,6}$ ]] ||
    fail "$1 is no name of a check"
readonly NAME=$1 CHECK=${BASH_REMATCH[1]} KIND=${BASH_REMATCH[2]}
[[ $2 =~ ^i-[0-9a-f]{8,17}(,i-[0-9a-f]{8,17})?$ ]] || fail "$2 are no nodes"
readonly NODES=$2

partition=''
while read -r check partition user nodes limit_s wait_s script; do
    [[ $check != "$CHECK" ]] || break
    partition=''
done <"$CHECKS"
[[ -n $partition ]] || fail "pool ${CHECK#*:} has no check"

number=$(id -u "$user" 2>/dev/null) || fail "the check's user $user does not exist on the head"
((number != 0)) || fail "the check's user $user is root, which no job of a check may be"
home=$(getent passwd "$number" | cut -d: -f6)
timeout -s KILL 5 test -d "$home" || fail "the check's user $user has no home $home"

# JOB STATE of what was submitted before. Others may give their jobs this name too.
known() {
    timeout 5 squeue -h -a -t all -u "$number" -n "$NAME" -o '%A %T' ||
        fail "Unable to contact slurmctld: squeue gave no answer"
}

# What the command line says counts, whatever the script's own #SBATCH lines say of the same. The job
# has the environment of sbatch, so that is not root's. With --wait in the script sbatch would stay until
# the job has ended, and nobody but root could stop it: the agent would carry out no order meanwhile.
submit() {
    local minutes=$(((limit_s + 59) / 60)) behind=() said code
    [[ $KIND == check ]] || behind=(--nice="$NICE")
    said=$(runuser -u "$user" -- env -i HOME="$home" USER="$user" LOGNAME="$user" SHELL=/bin/bash \
        PATH="$PATH" timeout -k 1 "$SUBMIT_S" sbatch --parsable --chdir="$home" --job-name="$NAME" \
        --partition="$partition" --nodes="$nodes" --nodelist="$NODES" --exclusive --no-requeue \
        --time="$minutes" --deadline="now+$((minutes * 60 + wait_s))" "${behind[@]}" "$script" 2>&1)
    code=$?
    ((code == 0 || code == 124 || code == 137)) || fail "${said##*$'\n'}"
    jobs=$(known) || exit
    [[ -z $jobs ]] || return 0
    ((code != 0)) || fail "sbatch has submitted no job: ${said##*$'\n'}"
    fail "Unable to contact slurmctld: sbatch gave no answer"
}

jobs=$(known) || exit
[[ -n $jobs ]] || submit
[[ $KIND == check ]] || exit 0
# Also of a job that was submitted before: whoever did that may not have come so far.
while read -r job_id state; do
    [[ $state != PENDING ]] || timeout 5 scontrol update jobid="$job_id" priority="$PRIORITY" ||
        echo "job $job_id has no priority before others, and may wait behind them" >&2
done <<<"$jobs"
