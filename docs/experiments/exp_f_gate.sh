# shellcheck shell=bash
# (f) The gate: nodes of a gang join with State=DRAIN; what when one member never comes, and on a restart of slurmctld?

readonly A=i-0123456789abcdef0 B=i-0123456789abcdef1 C=i-0123456789abcdef2 D=i-0123456789abcdef3

submit() { as user head sbatch --parsable -D /shared -o /dev/null "$@" --wrap 'sleep 600'; }

queue() { on head squeue -h -S i -O 'Name:8,StateCompact:4,NodeList:60,Reason:100' | sed 's/ *$//; s/^/    /'; }

nodes() {
    on head scontrol show nodes -o |
        sed -n 's/^NodeName=\([^ ]*\) .* State=\([^ ]*\) .*/    \1 \2/p'
    on head sinfo -R -h -o '    sinfo -R: %N %E %u'
}

gated() { gpu_node "$1" "$2" a10g 4 State=DRAIN; }

join_three_of_four() {
    gated $A 10.77.1.1
    gated $B 10.77.1.2
    gated $C 10.77.1.3
    wait_for 20 node_is $C '*DRAIN*'
}

poke() { on head scontrol update nodename="$1" comment=tidegate; }

small_jobs() { local i; for i in 1 2 3; do submit -J "small$i" --gres=gpu:a10g:1 -t 1 >/dev/null; done; }

attempt() { # COMMAND...: prints its answer and exit status
    local answer status=0
    answer=$(on head "$@" 2>&1) || status=$?
    say "  \$ $*  -> exit $status ${answer:+: $answer}"
}

head_up "$HEAD_GRES_CONF" <<<"$GPU_NODES
SchedulerParameters=bf_interval=5"
on head useradd -m user
gang=$(submit -J gang -N4 --gres=gpu:a10g:4 -t 1-0)
on head scontrol update jobid="$gang" priority=4294901760
small_jobs

say '1. three of four gated nodes joined; poked twice; 12 s with backfill every 5 s'
join_three_of_four
poke $A,$B,$C
sleep 6
poke $A,$B,$C
sleep 6
queue
nodes

say '2. slurmctld restarted while gated, then 8 s'
slurmctld_down
slurmctld_up
sleep 8
queue
nodes

say '3. slurmd restarted on a gated node'
slurmd_down $B
slurmd_up $B 'CPUs=48 RealMemory=180000 Gres=gpu:a10g:4 Feature=gpu,a10g State=DRAIN'
sleep 2
nodes

say '4. delete of one gated node; of one that is not there; undrain of the two others, as one command'
attempt scontrol delete nodename=$C
attempt scontrol delete nodename=$C
attempt scontrol update nodename=$A,$B state=undrain
poke $A,$B
sleep 4
queue
say '   10 s (two backfill passes) later:'
sleep 10
queue
nodes

say '5. the same launch again: the deleted node and a fourth join gated, small jobs on A and B end, one undrain for all'
slurmd_running() { on "$1" pgrep -x slurmd >/dev/null; }
slurmd_running $C && say "    slurmd of the deleted node is still running: $(node_state $C)"
on head scancel --user=user --state=RUNNING
attempt scontrol update nodename=$A,$B state=drain reason=gate
slurmd_down $C
slurmd_up $C 'CPUs=48 RealMemory=180000 Gres=gpu:a10g:4 Feature=gpu,a10g State=DRAIN'
gated $D 10.77.1.4
wait_for 20 node_is $D '*DRAIN*'
wait_for 20 node_is $C '*DRAIN*'
small_jobs
sleep 3
nodes
started=$(date +%s.%N)
attempt scontrol update nodename=$A,$B,$C,$D state=undrain
poke $A,$B,$C,$D
wait_for 30 job_is "$gang" RUNNING
say "  undrain to gang running: $(seconds_since "$started") s"
sleep 2
queue

say '6. one unknown name in a list: is the rest done?'
on head scancel "$gang"
wait_for 30 job_ended "$gang"
wait_for 20 node_is $D 'IDLE+DYNAMIC_NORM'
attempt scontrol update nodename=$C,i-0123456789abcdeff state=drain reason=test
say "    the first, known one: $(node_state $C)"
attempt scontrol update nodename=i-0123456789abcdeff,$D state=drain reason=test
say "    the last, known one: $(node_state $D)"
attempt scontrol delete nodename=i-0123456789abcdeff,$D
say "    the last, known one: $(node_state $D)"
attempt scontrol delete nodename=$C,i-0123456789abcdeff
say "    the first, known one: $(node_state $C)"
