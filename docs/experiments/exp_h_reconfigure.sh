# shellcheck shell=bash
# (h) Found on the way: `scontrol reconfigure` while a dynamic node runs a job.

readonly A=i-0123456789abcdef0 B=i-0123456789abcdef1

show() { # TITLE
    say "  $1: $(on head scontrol show nodes -o | sed -n 's/^NodeName=\([^ ]*\) .* CPUAlloc=\([^ ]*\) .* State=\([^ ]*\) .*/\1 \3 CPUAlloc=\2;/p' | tr '\n' ' ')" \
        "jobs in squeue: $(on head squeue -h | wc -l)"
}

jobs_running() { [[ $(on head squeue -h -t R | wc -l) = 2 ]]; }

attempt() {
    local answer status=0
    answer=$(on head "$@" 2>&1) || status=$?
    say "  \$ $*  -> exit $status ${answer:+: $(tail -1 <<<"$answer")}"
}

head_up "$HEAD_GRES_CONF" <<<"$GPU_NODES"
on head useradd -m user
gpu_node $A 10.77.1.1 a10g 4
gpu_node $B 10.77.1.2 a10g 4
wait_for 20 node_is $B IDLE+DYNAMIC_NORM
for node in $A $B; do
    as user head sbatch -w "$node" -D /shared -o /dev/null --gres=gpu:1 --wrap 'sleep 10' >/dev/null
done
wait_for 70 jobs_running
show 'two jobs of 10 s running'
on head scontrol reconfigure
show 'right after scontrol reconfigure'
on head grep -o '_find_node_record: lookup failure.*' /var/log/slurm/slurmctld.log | sort | uniq -c || true
sleep 60
show '60 s later, the jobs have ended'
attempt scontrol delete nodename=$A
slurmctld_down
slurmctld_up
sleep 10
show 'after a restart of slurmctld'
attempt scontrol update nodename=$A state=down reason=stuck
attempt scontrol delete nodename=$A
show 'the first one set DOWN and deleted'
