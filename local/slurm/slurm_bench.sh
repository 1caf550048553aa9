#!/bin/bash
# A real slurmctld and dynamic nodes in namespaces, for contracts and benches. As root:
#   unshare --net --uts --mount --pid --fork --kill-child=SIGKILL --mount-proc \
#       bash slurm_bench.sh head DIR [slurm.conf line...]
# With TIDEGATE_SLURM_ROOT=TREE everything runs in that tree (another Debian, another Slurm);
# DIR must then lie below /tmp, which the tree shares.
# Nodes join from inside those namespaces:  slurm_bench.sh node DIR NAME NUMBER TYPE COUNT CONF
# Killing the outer process ends every daemon; nothing is left on the machine but DIR.
set -eu
role=$1 dir=$2
self=$(realpath "$0")
cd / # whoever enters these namespaces begins where this is

write_conf() {
    cat > /etc/slurm/slurm.conf <<CONF
ClusterName=bench
SlurmctldHost=head(10.77.0.1)
SlurmctldPort=6817
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd-%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd-%n.log
SlurmctldDebug=info
LogTimeFormat=iso8601_ms
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
JobRequeue=1
SlurmdTimeout=120
PropagateResourceLimits=NONE
SlurmctldParameters=enable_configless,node_reg_mem_percent=90
SlurmdParameters=config_overrides
MaxNodeCount=200
TreeWidth=65533
ReturnToService=1
RebootProgram=/bin/true
ResumeTimeout=1080
KillWait=2
DefMemPerCPU=2000
NodeName=ph-t4-[1-8] State=FUTURE CPUs=48 RealMemory=187000 Gres=gpu:t4:4 Feature=gpu,t4
NodeName=ph-a10g-[1-8] State=FUTURE CPUs=48 RealMemory=187000 Gres=gpu:a10g:4 Feature=gpu,a10g
NodeSet=gpuset Feature=gpu
PartitionName=gpu Nodes=gpuset Default=YES MaxTime=INFINITE State=UP
CONF
    for line in "$@"; do
        if [[ $line == SwitchName=* ]]; then file=topology.conf; else file=slurm.conf; fi
        echo "$line" >> "/etc/slurm/$file"
    done
    # Debian 13's 24.11 has no usable cgroup in these namespaces; 22.05 and 23.11 know no "disabled".
    if slurmctld -V | grep -q '^slurm-wlm 2[23]'; then plugin=cgroup/v1; else plugin=disabled; fi
    # There only backfill starts jobs without accounting (docs/real-slurm.md, i).
    ! slurmctld -V | grep -q '^slurm-wlm 23' || echo SchedulerParameters=bf_interval=1 >> /etc/slurm/slurm.conf
    echo "CgroupPlugin=$plugin" > /etc/slurm/cgroup.conf
    echo 'Include /etc/slurm/gres.node.conf' > /etc/slurm/gres.conf
    echo '# the head has no GPU' > /etc/slurm/gres.node.conf
}

enter_tree() { # re-runs the script with TREE as its root
    root=$dir/tree/root
    mkdir -p "$dir/tree"
    mount -t tmpfs bench "$dir/tree"
    mkdir -p "$dir"/tree/{upper,work,root}
    mount -t overlay overlay "$root" -o \
        "lowerdir=$TIDEGATE_SLURM_ROOT,upperdir=$dir/tree/upper,workdir=$dir/tree/work"
    touch "$root/etc/hosts" "$root/etc/nsswitch.conf"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    mount --bind /tmp "$root/tmp"
    [ "$self" -ef "$dir/slurm_bench.sh" ] || cp "$self" "$dir/slurm_bench.sh"
    exec env -u TIDEGATE_SLURM_ROOT chroot "$root" bash "$dir/slurm_bench.sh" "$role" "$dir" "$@"
}

head() {
    [ -z "${TIDEGATE_SLURM_ROOT:-}" ] || enter_tree "$@"
    hostname head
    ip link set lo up
    # Without an address of its own the bridge takes the lowest of its ports: each new node could
    # change it, and the others would talk to nobody until their ARP entry runs out (45 s).
    ip link add br0 address 02:00:0a:4d:ff:fe type bridge
    ip addr add 10.77.0.1/16 dev br0
    ip link set br0 up
    mount -t tmpfs bench /run
    mount -t tmpfs bench /etc/slurm
    mkdir -p /run/munge /run/slurm "$dir"/{state,spool,log,dev,out}
    chmod 755 /run /run/munge
    printf '127.0.0.1 localhost\n10.77.0.1 head\n' > "$dir/hosts"
    printf 'hosts: files\npasswd: files\ngroup: files\n' > "$dir/nsswitch.conf"
    mount --bind "$dir/hosts" /etc/hosts
    mount --bind "$dir/nsswitch.conf" /etc/nsswitch.conf
    rm -rf "${dir:?}"/dev/*
    for n in 0 1 2 3 4 5 6 7; do mknod "$dir/dev/gpu$n" c 1 3; done
    dd if=/dev/urandom bs=1024 count=1 of=/run/munge.key status=none
    chmod 600 /run/munge.key
    write_conf "$@"
    munged --force --key-file=/run/munge.key --pid-file=/run/munged.pid \
        --log-file="$dir/log/munged.log" --seed-file=/run/munge.seed
    slurmctld
    for _ in $(seq 200); do scontrol ping | grep -q UP && break; sleep 0.02; done
    echo ready
    exec sleep infinity
}

node() {
    name=$1 number=$2 type=$3 count=$4 conf=$5
    ip netns add "$name"
    ip link add "v$number" type veth peer name eth0 netns "$name"
    ip link set "v$number" master br0 up
    ip -n "$name" addr add "10.77.1.$number/16" dev eth0
    ip -n "$name" link set eth0 up
    ip -n "$name" link set lo up
    echo "10.77.1.$number $name" >> "$dir/hosts"
    mkdir -p "$dir/spool/$name"
    boot "$name" "$type" "$count" "$conf"
}

boot() {
    nsenter --net="/run/netns/$1" unshare --uts --mount bash "$self" slurmd "$dir" "$@"
}

again() { # its slurmd ends, and starts as after a reboot
    anew "$@" -b
}

anew() { # the same of one machine that goes on
    kill "$(cat "/run/slurmd-$1.pid")"
    while [ -e "/run/slurmd-$1.pid" ]; do sleep 0.1; done
    boot "$@"
}

slurmd_here() {
    name=$1 type=$2 count=$3 conf=$4 again=${5:-}
    hostname "$name"
    mount -t tmpfs bench /run/slurm
    mount -t tmpfs bench /etc/slurm
    [ "$count" -eq 0 ] || echo "Name=gpu Type=$type File=$dir/dev/gpu[0-$((count - 1))]" \
        > /etc/slurm/gres.node.conf
    [ ! -e "$dir/gres-$name.conf" ] || cp "$dir/gres-$name.conf" /etc/slurm/gres.node.conf
    touch /etc/slurm/gres.node.conf
    # -b: as if the machine had been started just now.
    exec slurmd ${again:+"$again"} -Z --conf "$conf" --conf-server 10.77.0.1:6817 -L "$dir/log/slurmd-$name.log"
}

shift 2
case $role in
    head) head "$@" ;;
    node) node "$@" ;;
    again) again "$@" ;;
    anew) anew "$@" ;;
    slurmd) slurmd_here "$@" ;;
esac
