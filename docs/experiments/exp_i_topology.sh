# shellcheck shell=bash
# (i) How far apart are the nodes of a job, in a network of three layers: 128 nodes that come and stay, a queue of
# jobs of 2 to 16 nodes. Slurm 25.05 or later: TREE=DIR run.sh i [JOBS]
#
# No slurmd runs: slurmctld counts cloud nodes that are being powered up as taken, which is all that is asked.

readonly JOBS=${1:-300}

nodes() {
    cat <<'CONF'
ResumeProgram=/bin/true
SuspendProgram=/bin/true
ResumeTimeout=65000
SuspendTime=-1
SchedulerParameters=sched_min_interval=0
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
    case $1 in *tree) echo TopologyPlugin=topology/tree ;; esac
    python3 "$HERE/topology/network.py" nodes "${1%%-*}"
}

network() { python3 "$HERE/topology/network.py" switches "$VARIANT" | put head /etc/slurm/topology.conf; }

say 'mean hops between two nodes of a job; of all pairs of the 128 nodes:'
python3 "$HERE/topology/network.py" mean
for VARIANT in scattered-flat grouped-flat scattered-tree grouped-tree; do
    nodes "$VARIANT" | head_up '' network
    put head /queue.py 755 <"$HERE/topology/queue.py"
    put head /network.py <"$HERE/topology/network.py"
    on head python3 /queue.py "$VARIANT" "$JOBS"
    machine_down head
done
