# shellcheck shell=bash
# (e) TRES limits of associations and QOS: what does the pending Reason say with no node up, and where are limits and usage?
# usage: run.sh e [IDLE_SAMPLE BUSY_SAMPLE]      files for `scontrol show assoc_mgr`: before any job; with jobs pending and running

idle_sample=${1:-/dev/null}
busy_sample=${2:-/dev/null}
# shellcheck source=lab_db.sh
source "$HERE/lab_db.sh"

# gres/gpu exists in the database only after slurmctld has registered once with AccountingStorageTRES.
accounts_up() {
    local user
    for user in alice bob carol dave erin frank; do on head useradd -m "$user"; done
    manage add account ml description=ml organization=lab GrpTRES=gres/gpu=2
    manage add account vision parent=ml description=vision organization=lab
    manage add account bio description=bio organization=lab
    manage add account typed description=typed organization=lab GrpTRES=gres/gpu:a10g=1
    manage add account free description=free organization=lab MaxJobs=1
    manage add qos pool GrpTRES=gres/gpu=3
    manage add qos each MaxTRESPerUser=gres/gpu=2 MaxTRESPerJob=gres/gpu=2 MaxTRESPerAccount=gres/gpu=3 MaxJobsPerUser=2 MaxWall=1-00:00:00
    manage add user alice account=ml
    manage add user bob account=vision MaxTRESPerJob=gres/gpu=1
    manage add user carol account=bio qos=normal,pool,each defaultqos=pool
    manage add user dave account=bio qos=normal,pool,each defaultqos=each
    manage add user erin account=typed
    manage add user frank account=free
}

manage() { on head sacctmgr -i "$@" >/dev/null; }

submit() { # NOTE USER ARGS...: the note is the job's name
    local note=$1 user=$2
    shift 2
    as "$user" head sbatch -J "$note" -D /shared -o /dev/null -t 60 "$@" --wrap 'sleep 600' >/dev/null ||
        say "  refused at submit: $note: $user $*"
}

jobs_submitted() {
    submit GrpTRES-4-of-2 alice --gres=gpu:a10g:4
    submit GrpTRES-2-of-2 alice --gres=gpu:a10g:2
    submit GrpTRES-more alice --gres=gpu:a10g:1
    submit MaxTRESPerJob-2-of-1 bob --gres=gpu:a10g:2
    submit parent-GrpTRES bob --gres=gpu:a10g:1
    submit QOSGrpTRES-4-of-3 carol --gres=gpu:a10g:4
    submit QOSGrpTRES-1-of-3 carol --gres=gpu:a10g:1
    submit QOSMaxPerJob-3-of-2 dave --gres=gpu:a10g:3
    submit QOSMaxPerUser-1-of-2 dave --gres=gpu:a10g:1
    submit QOSMaxPerUser-2-of-2 dave --gres=gpu:a10g:2
    submit typed-2-of-1 erin --gres=gpu:a10g:2
    submit untyped-2-of-1 erin --gres=gpu:2
    submit MaxJobs-first frank --gres=gpu:t4:1
    submit MaxJobs-second frank --gres=gpu:t4:1
}

show_reasons() {
    say "$1"
    on head squeue -h -S i -O 'UserName:8,Name:24,StateCompact:4,Reason:110' | sed 's/ *$//; s/^/  /'
}

evaluated() { ! on head squeue -h -t PD -o %r | grep -qx -e None -e Priority; }

show_usage() {
    say "$1"
    on head scontrol show assoc_mgr flags=assoc,qos |
        awk '/^(ClusterName|QOS)=/ { name = $1 " " $2 " " $3 } /^ +GrpTRES=/ && /gpu(:a10g)?=[0-9]/ { print "  " name $0 }
             /MaxTRESP[UA]=/ || /^ +MaxJobs=[0-9]/ { print "  " name $0 }'
}

capture() { on head scontrol show assoc_mgr flags=assoc,qos,users >"$1"; }

head_up "$HEAD_GRES_CONF" accounting_up <<<"$GPU_NODES $ACCOUNTING_CONF"
accounts_up
capture "$idle_sample"

jobs_submitted
wait_for 65 evaluated || true
show_reasons 'only FUTURE placeholders, every job evaluated:'
show_usage 'limits(usage) with pending jobs only:'

gpu_node i-0123456789abcdef0 10.77.1.1 a10g 4
gpu_node i-0123456789abcdef1 10.77.1.2 a10g 4
gpu_node i-0123456789abcdef2 10.77.1.3 t4 4
wait_for 20 node_is i-0123456789abcdef2 'IDLE*'
on head scontrol update nodename=i-0123456789abcdef0,i-0123456789abcdef1,i-0123456789abcdef2 comment=tidegate
sleep 5
wait_for 65 evaluated || true
show_reasons 'after three nodes with 4 GPUs each joined:'
show_usage 'limits(usage) with running jobs:'
capture "$busy_sample"

# Their limits are used up by running jobs, and no node of the asked kind exists.
submit GrpTRES-full-no-node alice -C g4dn.xlarge --gres=gpu:t4:1
submit MaxJobs-full-no-node frank -C g4dn.xlarge --gres=gpu:t4:1
submit MaxPerJob-no-node bob -C g4dn.xlarge -N2 --gres=gpu:t4:1
sleep 4
wait_for 65 evaluated || true
show_reasons 'limits used up, no node of the asked kind (last three lines):' | sed -n '1p; /no-node/p'
