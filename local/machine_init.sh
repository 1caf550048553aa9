#!/bin/bash
# Process 1 of a machine: enters its root, waits for its network, runs the user data, reaps
# orphans, and ends with `systemctl poweroff`. User data runs at the first boot of an instance
# only, as cloud-init has it; at later ones, when the disk was kept, it is laid down all the same, and the
# enabled units start. The scripts in cloud-init's folder for it run at each boot.
# With SYSTEMD=yes systemd becomes process 1 instead, and cloud-init runs the user data.
# usage: machine_init.sh ROOT HOSTNAME ADDRESS GATEWAY DEVICES CONSOLE SYSTEMD BIND...
# DEVICES: a folder with the files of its /dev.
# BIND: SOURCE:TARGET[:ro], a folder of this computer that the machine shall see.
set -euo pipefail

root=$1 hostname=$2 address=$3 gateway=$4 devices=$5 console=$6 systemd=$7
shift 7

make_devices() {
    mount -t tmpfs -o mode=755 tmpfs dev
    cp -a "$devices/." dev
    mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
    mount -t tmpfs -o mode=1777 tmpfs dev/shm
    mount --bind "$console" dev/console
}

bind_folders() {
    local source target mode
    for bind in "$@"; do
        IFS=: read -r source target mode <<<"$bind"
        mkdir -p ".$target"
        mount --bind "$source" ".$target"
        [[ -z $mode ]] || mount -o "remount,bind,$mode" ".$target"
    done
}

# A setting of the kernel that a stage changes is the machine's own: this computer's stays.
own_settings() {
    local setting=proc/sys/kernel/yama/ptrace_scope
    [[ ! -e $setting ]] || { cat "$setting" >run/ptrace_scope && mount --bind run/ptrace_scope "$setting"; }
}

hostname "$hostname"
cd "$root"
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs -o mode=755,noexec tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
own_settings
make_devices
touch run/machine
bind_folders "$@"
mkdir -p .old
pivot_root . .old
umount -l /.old

read -r _ # the network card is there
exec </dev/null
ip -batch - <<EOF_IP
link set lo up
addr add $address/16 dev eth0
link set eth0 up
route add default via $gateway
EOF_IP

# Cgroups of its own: those of this computer are hybrid, and systemd would take its root.
become_systemd() {
    mkdir -p /run/cgroup
    mount -t cgroup2 cgroup2 /run/cgroup
    mkdir -p "/run/cgroup/$hostname"
    echo 0 >"/run/cgroup/$hostname/cgroup.procs"
    umount -l /run/cgroup
    exec unshare --cgroup bash -c 'umount -R -l /sys/fs/cgroup &&
        mount -t cgroup2 cgroup2 /sys/fs/cgroup &&
        exec env -i container=other TERM=dumb /lib/systemd/systemd'
}

[[ -z $systemd ]] || become_systemd

# Nobody must wait for it: until it listens each question starts a Python of its own.
systemctl listen </dev/null &

shut_down() {
    timeout -s KILL 15 systemctl shut-down || true
    exit 0
}

trap shut_down SIGRTMIN+4 # what poweroff sends to systemd as well
for script in /var/lib/cloud/scripts/per-boot/*; do
    [[ ! -x $script ]] || setsid "$script" </dev/null &
done
if [[ -e /var/lib/cloud/booted ]]; then
    mkdir -p /var/lib/cloud/instance/scripts
    install -m 700 /var/lib/cloud/user-data /var/lib/cloud/instance/scripts/part-001
    setsid systemctl boot </dev/null &
else
    touch /var/lib/cloud/booted
    setsid /var/lib/cloud/user-data </dev/null &
fi
while :; do
    sleep 1000000 &
    wait $! || true
done
