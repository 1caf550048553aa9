# shellcheck shell=bash
# Captured output of squeue and `scontrol show nodes -d -o` for the parsers' tests.
# usage: run.sh samples DIR VERSION      writes DIR/squeue_VERSION.{txt,md}, squeue_more_VERSION.txt, nodes_VERSION.txt

squeue_file=${1:?}/squeue_${2:?}.txt more_file=$1/squeue_more_$2.txt
notes_file=$1/squeue_$2.md nodes_file=$1/nodes_$2.txt
# shellcheck source=lab_db.sh
source "$HERE/lab_db.sh"

readonly TOKEN='~tg7f3a~'
readonly FIELDS=(JobArrayID JobID ArrayJobID ArrayTaskID StateCompact State Partition Feature tres-per-node tres-per-job
    tres-per-task tres-per-socket cpus-per-task cpus-per-tres mem-per-tres MinCPUs MinMemory NumNodes NumTasks NumCPUs
    Reason PriorityLong TimeLimit TimeLeft UserName Account QOS Dependency Licenses Reservation EligibleTime SubmitTime
    StartTime NodeList ReqNodes OverSubscribe Comment)
readonly MORE_FIELDS=(JobID tres MaxNodes NTPerNode Requeue RestartCnt Deadline MinTime LastSchedEval admin_comment UserID
    HetJobID BatchFlag SchedNodes Nice EndTime)

rows() { on head squeue -h -a -O "$(printf "%s:$TOKEN," "$@" | sed 's/,$//')"; } # FIELDS...

note() { say "$*" >>"$notes_file"; }

submit() { # ARGS...: notes the job id and the command; user alice, unless USER_IS is set
    local user=${USER_IS:-alice} id
    if id=$(as "$user" head sbatch --parsable -D /shared -o /dev/null "$@" --wrap "${WRAP:-sleep 3000}" 2>"$WORKDIR/refused"); then
        note "| $id | $user | \`$(printf '%q ' "$@")\` |"
    else
        note "| refused: $(tr '\n' ' ' <"$WORKDIR/refused") | $user | \`$(printf '%q ' "$@")\` |"
    fi
    last=${id:-}
}

accounts_up() {
    on head useradd -m alice
    on head useradd -m bob
    on head sacctmgr -i add account ml description=ml organization=lab >/dev/null
    on head sacctmgr -i add qos urgent priority=10 >/dev/null
    on head sacctmgr -i add user alice account=ml qos=normal,urgent defaultqos=normal >/dev/null
    on head sacctmgr -i add user bob account=ml >/dev/null
}

requeued_jobs() { # one requeued, one requeued with a start time of its own choosing
    submit --gres=gpu:a10g:1 --requeue -J requeued
    wait_for 70 job_is "$last" RUNNING
    on head scontrol requeue "$last"
}

running_jobs() {
    submit -t 2:00:00 --gres=gpu:a10g:2 -c 4
    submit -N2 --ntasks-per-node=2 --gres=gpu:a10g:1 -t 90
    submit --array=1-6%2 --gres=gpu:t4:1 -t 30
    WRAP='trap "" TERM; sleep 600' submit --gres=gpu:a10g:1 -J ignores-term -w i-0123456789abcdef2
    stubborn=$last
    submit --exclusive -w i-0123456789abcdef4 --gres=gpu:a10g:1
    sleep 8
}

pending_by_gpus() {
    submit --gres=gpu:a10g:4 -t 1-00:00:00
    submit --gres=gpu:2
    submit --gres=gpu
    submit --gres=gpu:a10g:1,gpu:t4:1
    submit --gpus=6
    submit --gpus=a10g:8 -N2
    submit --gpus-per-node=t4:4 -N 2-4
    submit -n 8 --gpus-per-task=1
    submit -n 8 --gpus-per-task=a10g:1 -N2
    submit -n 4 --gpus-per-task=1 --cpus-per-gpu=2 --mem-per-gpu=1000
    submit --gpus=4 --cpus-per-gpu=8 --mem-per-gpu=16G
    submit --gpus-per-socket=1 --sockets-per-node=4
    submit --gpus-per-node=2 --ntasks-per-gpu=2
}

pending_by_shape() {
    submit -N4 --gres=gpu:a10g:4
    submit -N 2-4 -c 8 --gres=gpu:a10g:1
    submit -n 96
    submit -n 16 -c 4 --mem-per-cpu=3000
    submit -N3 --ntasks-per-node=8 --mem=100G
    submit --mem=0 -N4 --gres=gpu:a10g:1
    submit --exclusive --gres=gpu:a10g:4
    submit --exclusive=user -N2 --gres=gpu:a10g:4
    submit --oversubscribe -N4 --gres=gpu:a10g:4
    submit -C 'gpu&g5.12xlarge' -N4 --gres=gpu:4
    submit -C 'g5.12xlarge|g4dn.12xlarge' -N4 --gres=gpu:4
    submit -C '[g5.12xlarge|g4dn.12xlarge]' -N4 --gres=gpu:4
    submit -C 'g5.12xlarge*2&gpu' -N4 --gres=gpu:4
    submit -w i-0123456789abcdef0 --gres=gpu:a10g:4
    submit -w i-0123456789abcdef0,i-0123456789abcdef1 -N3 --gres=gpu:a10g:4
    submit -x i-0123456789abcdef0 --gres=gpu:a10g:4
}

pending_for_other_reasons() {
    submit -d "afterok:$1" --gres=gpu:a10g:1
    submit -d "afterany:$1,singleton" -J single --gres=gpu:a10g:1
    submit --hold --gres=gpu:a10g:1
    submit --begin=now+2hours --gres=gpu:a10g:1
    submit --array=0-9%2 --gres=gpu:a10g:4
    submit --array=1,5,9-30:3 --gres=gpu:a10g:4
    submit -L matlab:3 --gres=gpu:a10g:1
    submit -L matlab:1,abaqus:2 --gres=gpu:a10g:4
    submit --qos=urgent --gres=gpu:a10g:4
    submit --reservation=maint --gres=gpu:a10g:1
    submit -p gpu,cpu --gres=gpu:a10g:4
    submit --comment='plain; ckpt=yes' --gres=gpu:a10g:4
    submit --comment=$'line one\nli|ne two ~tg~ , "quoted" \\ ü\n\n99~x~99' --gres=gpu:a10g:4
    USER_IS=bob submit -J $'na|me\nnew' --deadline=now+5days -t 60 --time-min=30 --gres=gpu:a10g:4
    submit --no-requeue --nice=100 --gres=gpu:a10g:4
    submit --gres=gpu:a10g:16
    submit -C nosuchfeature
}

nodes_up() {
    local i
    for i in 0 1 2 3 4 5; do gpu_node "i-0123456789abcdef$i" "10.77.1.$((i + 1))" a10g 4; done
    gpu_node i-0123456789abcdef6 10.77.1.7 t4 1
    gpu_node i-0123456789abcdef7 10.77.1.8 t4 4 State=DRAIN
    gpu_node i-0123456789abcdef8 10.77.1.9 a10g 4
    gpu_node i-0123456789abcdef9 10.77.1.10 a10g 4
    wait_for 20 node_is i-0123456789abcdef9 'IDLE*'
    on head scontrol update nodename=i-0123456789abcdef5 state=drain reason='tidegate: empty, 12 min'
    on head scontrol update nodename=i-0123456789abcdef7 reason='tidegate: gate launch-42' comment='launch-42'
    on head scontrol update nodename=i-0123456789abcdef8 state=down reason='tidegate: gone'
    on head scontrol update nodename=i-0123456789abcdef9 state=drain reason='x|y = z (a, b)'
}

head_up "$HEAD_GRES_CONF" accounting_up <<<"$GPU_NODES $ACCOUNTING_CONF
PartitionName=cpu Nodes=gpuset State=UP
SlurmdTimeout=20
SchedulerParameters=bf_interval=3
Licenses=matlab:2,abaqus:4"
accounts_up
printf '| job id | user | sbatch arguments (before them: --parsable -D /shared -o /dev/null; after: --wrap "sleep 3000") |\n|---|---|---|\n' >"$notes_file"
nodes_up
running_jobs
running=$last
requeued_jobs
pending_by_gpus
pending_by_shape
pending_for_other_reasons "$running"
WRAP='exit 3' submit --gres=gpu:a10g:1 -J failed
USER_IS=bob submit -N 2-3 --gres=gpu:a10g:1 -J het-less
on head scontrol update jobid="$running" admincomment='tidegate: runs on i-0123456789abcdef4 | x'
on head scontrol update nodename=i-0123456789abcdef1 state=drain reason='tidegate: interrupted, 2 min'
on head scontrol update nodename=i-0123456789abcdef5 state=resume
slurmd_down i-0123456789abcdef3 KILL
wait_for 20 job_is "$stubborn" RUNNING
sleep 1
on head scancel "$stubborn"
rows "${FIELDS[@]}" >"$squeue_file"
rows "${MORE_FIELDS[@]}" >"$more_file"
on head scontrol show nodes -d -o >"$nodes_file"
planned() { on head scontrol show nodes -o | grep -q '^NodeName=.* State=[^ ]*PLANNED'; }
wait_for 15 planned || say 'no node became PLANNED'
on head scontrol show nodes -d -o >>"$nodes_file"
sleep 35
on head scontrol show nodes -d -o >>"$nodes_file"
note ''
note 'The job named ignores-term was scancelled one second before the capture: COMPLETING.'
note "The nodes file holds three captures: now, when a node was PLANNED, and 35 s later when a killed slurmd had been noticed."
for field in "${FIELDS[@]}" "${MORE_FIELDS[@]}"; do
    rows "$field" 2>&1 >/dev/null | sed "s/^/field $field: /"
done
say "rows: $(grep -c "$TOKEN" "$squeue_file"), node lines: $(wc -l <"$nodes_file")"
grep -o ' State=[^ ]*' "$nodes_file" | sort | uniq -c
