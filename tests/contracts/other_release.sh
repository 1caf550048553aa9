#!/bin/bash
# A node with another Slurm than the head's, beside the head of local/slurm/slurm_bench.sh and in its network. Root:
#   nsenter -t PID -n unshare --mount --uts --pid --fork --kill-child=SIGKILL \
#       bash other_release.sh TREE DIR NAME
# TREE: where its Slurm is. DIR, below /tmp: the head's, with the key of Munge in `munge.key`, and what the
# boot says of Slurm in `stage.sh`. Prints how the boot's stage ends, and then waits as a node that joined.
set -eu
tree=$1 dir=$2 name=$3
own=$dir/$name.root

enter_tree() {
    mkdir -p "$own"
    mount -t tmpfs node "$own"
    mkdir -p "$own"/{upper,work,root}
    mount -t overlay overlay "$own/root" -o "lowerdir=$tree,upperdir=$own/upper,workdir=$own/work"
    mkdir -p "$own/root/etc/slurm"
    touch "$own"/root/etc/{hosts,nsswitch.conf}
    mount -t proc proc "$own/root/proc"
    mount --rbind /dev "$own/root/dev"
    mount --rbind /sys "$own/root/sys"
    mount --bind /tmp "$own/root/tmp"
    mount -t tmpfs node "$own/root/run"
    mount -t tmpfs node "$own/root/etc/slurm"
    mount --bind "$dir/hosts" "$own/root/etc/hosts"
    mount --bind "$dir/nsswitch.conf" "$own/root/etc/nsswitch.conf"
    exec chroot "$own/root" bash "$dir/other_release.sh" "" "$dir" "$name"
}

joins() {
    hostname "$name"
    mkdir -p /run/munge /run/slurm "$dir/spool/$name"
    chmod 755 /run/munge
    install -m 600 "$dir/munge.key" /run/munge.key
    munged --force --key-file=/run/munge.key --pid-file=/run/munged.pid \
        --log-file=/run/munged.log --seed-file=/run/munge.seed
    touch /etc/slurm/gres.node.conf
    refuse() { echo "refused: $*"; exit 78; }
    # shellcheck disable=SC2034  # read by the stage
    HEAD=10.77.0.1:6817 SHARED_DIR=$dir
    # shellcheck source=/dev/null
    source "$dir/stage.sh"
    refuse_if_not_understood
    slurmd -Z -N "$name" --conf "CPUs=4 RealMemory=1000 Feature=gpu" --conf-server "$HEAD" \
        -L "$dir/log/slurmd-$name.log"
    echo joined
    exec sleep infinity
}

if [ -n "$tree" ]; then enter_tree; else joins; fi
