# shellcheck shell=bash
# (d) Poking instead of a small bf_interval: how long from registration of an open node to the job running?
# usage: run.sh d [REPETITIONS [join|requeue|gang ...]]      all three parts take about 15 minutes

repetitions=${1:-5}
parts=("${@:2}")
((${#parts[@]})) || parts=(join requeue gang)
serial=0
node=''

submit() { as user head sbatch --parsable -D /shared -o /dev/null --requeue "$@" --wrap 'sleep 600'; }

new_node() { # sets $node; returns when it is registered
    serial=$((serial + 1))
    node=$(printf 'i-0123456789abc%04d' "$serial")
    gpu_node "$node" "10.77.1.$serial" a10g 4
    wait_for 20 node_is "$node" '*DYNAMIC_NORM*'
}

node_gone() { # NAME: as the agent removes it
    on head scontrol update nodename="$1" state=down reason=gone
    wait_for 30 node_is "$1" 'DOWN+DYNAMIC_NORM'
    on head scontrol delete nodename="$1"
    machine_down "$1"
}

# One poke per kind; NODES is a comma-separated list.
poke() { # KIND JOB NODES
    case $1 in
        none) ;;
        admincomment) on head scontrol update jobid="$2" admincomment=looked ;;
        weight) on head scontrol update nodename="$3" weight=1 ;;
        comment) on head scontrol update nodename="$3" comment=tidegate ;;
        extra) on head scontrol update nodename="$3" extra=tidegate ;;
        partition) on head scontrol update partitionname=gpu state=up ;;
    esac
}

# The queue is old enough that no timer of the submission itself (batch_sched_delay, 3 s) is still running.
join_to_running() { # KIND
    local kind=$1 job started reason
    job=$(submit --gres=gpu:a10g:4)
    sleep $((5 + RANDOM % 4))
    new_node
    started=$(date +%s.%N)
    poke "$kind" "$job" "$node"
    reason=$(job_field "$job" Reason)
    wait_for 70 job_is "$job" RUNNING
    say "  $kind: join to running $(seconds_since "$started") s (Reason right after: $reason)"
    on head scancel "$job"
    wait_for 30 job_ended "$job"
    node_gone "$node"
}

# KIND: none; at-once = starttime=now right after the requeue; pending = starttime=now once the job is PENDING again;
# pending+poke = the same and a node update. The node stays.
requeue_to_running() {
    local kind=$1 job started
    job=$(submit --gres=gpu:a10g:4)
    wait_for 70 job_is "$job" RUNNING
    sleep 1
    started=$(date +%s.%N)
    on head scontrol requeue "$job"
    [[ $kind != pending* ]] || wait_for 20 job_is "$job" PENDING
    [[ $kind = none ]] || on head scontrol update jobid="$job" starttime=now
    [[ $kind != *poke ]] || on head scontrol update nodename="$node" comment=tidegate
    say "  requeue, $kind: $(job_state "$job") $(job_field "$job" Reason) after $(seconds_since "$started") s," \
        "eligible $(job_field "$job" EligibleTime | cut -dT -f2), now $(date +%T)"
    sleep 0.2
    wait_for 250 job_is "$job" RUNNING
    say "    running again $(seconds_since "$started") s after the requeue"
    on head scancel "$job"
    wait_for 30 job_ended "$job"
}

joins() {
    local i kind
    for ((i = 0; i < repetitions; i++)); do
        for kind in none admincomment weight comment partition; do join_to_running "$kind"; done
    done
}

requeues() {
    local i kind
    new_node
    for ((i = 0; i < repetitions; i++)); do
        for kind in pending pending+poke; do requeue_to_running "$kind"; done
    done
    requeue_to_running at-once
    requeue_to_running none
    node_gone "$node"
}

# An open (not gated) gang whose fourth member never comes, short jobs behind it, a poke every 2 s for 70 s.
gang_beside_pokes() {
    local gang i started names=()
    gang=$(submit -J gang -N4 --gres=gpu:a10g:4 -t 1-0)
    on head scontrol update jobid="$gang" priority=4294901760
    sleep 5
    for i in 1 2 3; do
        submit -J "small$i" --gres=gpu:a10g:1 -t 1 >/dev/null
        new_node
        names+=("$node")
    done
    started=$(date +%s.%N)
    for ((i = 0; i < 35; i++)); do
        poke comment "$gang" "$(IFS=,; echo "${names[*]}")"
        sleep 2
        on head squeue -h -t R -o %i | grep -q . && break
    done
    say "  after $(seconds_since "$started") s and $((i + 1)) pokes:"
    on head scontrol show jobs -o |
        sed -n 's/.*JobName=\([^ ]*\) .*JobState=\([^ ]*\) .*LastSchedEval=\([^ ]*\) Scheduler=\([^ ]*\).*/    \1 \2, started or looked at by \4/p'
    on head scancel --user=user
    sleep 8
    for node in "${names[@]}"; do node_gone "$node"; done
}

head_up "$HEAD_GRES_CONF" <<<"$GPU_NODES"
on head useradd -m user
say "default SchedulerParameters"
for part in "${parts[@]}"; do
    case $part in
        join) joins ;;
        requeue) requeues ;;
        gang) for i in 1 2; do gang_beside_pokes; done ;;
    esac
done
