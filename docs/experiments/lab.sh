# shellcheck shell=bash
# shellcheck disable=SC2034  # used by the experiments
# A Slurm cluster of machines in namespaces. Sourced by run.sh inside fresh net/uts/mount/pid namespaces.
# A machine is an overlay of BASE with its own root, network, hostname and processes; nothing outlives run.sh.
#
# Uses: WORKDIR (scratch folder, a tmpfs), BASE ("/" or a Debian 13 tree).

readonly HEAD_IP=10.77.0.1

say() { printf '%s\n' "$*"; }

seconds_since() { awk -v a="$1" -v b="$(date +%s.%N)" 'BEGIN { printf "%.2f", b - a }'; }

# wait_for SECONDS COMMAND...: until COMMAND succeeds; fails when it never does.
wait_for() {
    local tries=$(($1 * 10))
    shift
    while ! "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        ((tries > 0)) || return 1
        sleep 0.1
    done
}

network_up() {
    ip link set lo up
    ip link add br0 address 02:00:0a:4d:ff:fe type bridge
    ip link set br0 up
}

# Process 1 of a machine: enters the overlay, then only reaps children.
# shellcheck disable=SC2016
readonly MACHINE_INIT='
    root=$1 name=$2
    hostname "$name"
    cd "$root"
    mount -t proc proc proc
    mount --rbind /sys sys
    mount -t tmpfs -o mode=755 tmpfs run
    mount -t tmpfs -o mode=1777 tmpfs tmp
    mount -t tmpfs -o mode=755 tmpfs dev
    for d in null zero full random urandom tty; do touch dev/$d; mount --bind /dev/$d dev/$d; done
    ln -s /proc/self/fd dev/fd
    ln -s /proc/self/fd/1 dev/stdout
    ln -s /proc/self/fd/2 dev/stderr
    mkdir -p dev/shm .old
    mount -t tmpfs tmpfs dev/shm
    pivot_root . .old
    umount -l /.old
    exec 0</dev/null
    touch /run/up
    while :; do sleep 600; done'

# machine NAME IP [SHARED=yes]: /shared is the same folder on every machine ("EFS") unless SHARED=no.
machine() {
    local name=$1 ip=$2 shared=${3:-yes} dir=$WORKDIR/machines/$1 pid
    mkdir -p "$dir"/{upper,work,root}
    mount -t overlay overlay -o "lowerdir=$BASE,upperdir=$dir/upper,workdir=$dir/work" "$dir/root"
    mkdir -p "$dir/root/shared" "$dir/root/etc/slurm"
    [[ $shared = no ]] || mount --bind "$WORKDIR/shared" "$dir/root/shared"
    write_identity "$dir/root" "$name" "$ip"
    env -i PATH="$PATH" unshare --net --uts --mount --pid --fork --kill-child=SIGKILL --propagation private \
        bash -euc "$MACHINE_INIT" init "$dir/root" "$name" </dev/null >"$dir/init.log" 2>&1 &
    echo $! >"$dir/unshare"
    disown
    wait_for 5 pgrep -P "$(<"$dir/unshare")"
    pid=$(pgrep -P "$(<"$dir/unshare")")
    echo "$pid" >"$dir/pid"
    wait_for 5 test -e "/proc/$pid/root/run/up"
    ip link add "v${ip##*.}-${ip//[!0-9]/}" type veth peer name eth0 netns "$pid"
    ip link set "v${ip##*.}-${ip//[!0-9]/}" master br0 up
    on "$name" ip link set lo up
    on "$name" ip addr add "$ip/16" dev eth0
    on "$name" ip link set eth0 up
}

write_identity() {
    local root=$1 name=$2 ip=$3
    printf '127.0.0.1 localhost\n%s head\n%s %s\n' "$HEAD_IP" "$ip" "$name" >"$root/etc/hosts"
    echo "$name" >"$root/etc/hostname"
    rm -f "$root/etc/resolv.conf"
    : >"$root/etc/resolv.conf"
    sed -i '/^hosts:/d' "$root/etc/nsswitch.conf"
    echo 'hosts: files dns' >>"$root/etc/nsswitch.conf"
}

# on NAME COMMAND...: runs COMMAND on that machine, as root.
on() {
    local pid
    pid=$(<"$WORKDIR/machines/$1/pid")
    shift
    nsenter -t "$pid" --net --uts --mount --pid --root --wd env -i \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"
}

# as USER NAME COMMAND...: the same as an ordinary user of that machine.
as() {
    local user=$1 name=$2
    shift 2
    on "$name" setpriv --reuid "$user" --regid "$(on "$name" id -g "$user")" --init-groups --reset-env "$@"
}

# machine_down NAME: as a terminated instance; its disk is gone too.
machine_down() {
    local dir=$WORKDIR/machines/$1 pid
    pid=$(<"$dir/pid")
    kill -KILL "$pid"
    wait_for 5 test ! -e "/proc/$pid"
    mountpoint -q "$dir/root/shared" && umount -l "$dir/root/shared"
    umount -l "$dir/root"
    rm -rf --one-file-system "$dir"
}

put() { # put NAME PATH [MODE] <content
    local file
    file=/proc/$(<"$WORKDIR/machines/$1/pid")/root$2
    mkdir -p "${file%/*}"
    cat >"$file"
    chmod "${3:-644}" "$file"
}

munge_up() {
    local name=$1
    put "$name" /etc/munge/munge.key 400 <"$WORKDIR/munge.key"
    on "$name" chown munge:munge /etc/munge/munge.key
    on "$name" install -d -o munge -g munge -m 755 /run/munge
    on "$name" install -d -o munge -g munge -m 700 /var/log/munge /var/lib/munge
    on "$name" setpriv --reuid munge --regid munge --clear-groups munged
}

# The tree's own program, not the host's: Debian's /usr/sbin/slurmctld is an absolute symbolic link.
slurm_version() { chroot "$BASE" /usr/sbin/slurmctld -V | awk '{ print $2 }'; }
is_version_22() { [[ $(slurm_version) == 22.* ]]; }

slurm_conf() { # stdin: more lines
    cat <<CONF
ClusterName=lab
SlurmctldHost=head($HEAD_IP)
SlurmUser=slurm
AuthType=auth/munge
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
SlurmctldDebug=verbose
SlurmdDebug=verbose
LogTimeFormat=iso8601_ms
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=1
GresTypes=gpu
SlurmctldParameters=enable_configless
SlurmdParameters=config_overrides
MaxNodeCount=128
TreeWidth=65533
DefMemPerCPU=2000
KillWait=5
CONF
    cat
}

# Placeholders and partition used by most experiments.
readonly GPU_NODES='
NodeName=ph-t4-1-[1-4] State=FUTURE CPUs=4 RealMemory=15000 Gres=gpu:t4:1 Feature=gpu,g4dn.xlarge,spot
NodeName=ph-t4-4-[1-4] State=FUTURE CPUs=48 RealMemory=180000 Gres=gpu:t4:4 Feature=gpu,g4dn.12xlarge,spot
NodeName=ph-a10g-4-[1-4] State=FUTURE CPUs=48 RealMemory=180000 Gres=gpu:a10g:4 Feature=gpu,g5.12xlarge,ondemand
NodeSet=gpuset Feature=gpu
PartitionName=gpu Nodes=gpuset Default=YES MaxTime=INFINITE State=UP'

# head_up [GRES_CONF [BEFORE]] <more lines of slurm.conf; without GRES_CONF the head has no gres.conf.
# BEFORE is a function to call just before slurmctld starts.
head_up() {
    mkdir -p "$WORKDIR/shared"
    chmod 1777 "$WORKDIR/shared"
    (umask 077 && head -c 1024 /dev/urandom >"$WORKDIR/munge.key")
    machine head "$HEAD_IP"
    slurm_conf | put head /etc/slurm/slurm.conf
    if is_version_22; then echo CgroupPlugin=cgroup/v1; else echo CgroupPlugin=disabled; fi |
        put head /etc/slurm/cgroup.conf
    [[ -z ${1:-} ]] || put head /etc/slurm/gres.conf <<<"$1"
    put head /etc/slurm/gres.node.conf <<<'# empty on the head'
    on head install -d -o slurm -g slurm /var/lib/slurm/slurmctld /var/log/slurm
    munge_up head
    [[ -z ${2:-} ]] || "$2"
    slurmctld_up
}

slurmctld_up() {
    on head slurmctld
    wait_for 20 controller_answers || { on head tail -5 /var/log/slurm/slurmctld.log; return 1; }
}

controller_answers() { on head scontrol ping | grep -q ' UP'; }

slurmctld_down() { daemon_down head slurmctld TERM; }
slurmd_down() { daemon_down "$1" slurmd "${2:-TERM}"; } # NAME [SIGNAL]

# On 24.11 a reconfigure re-executes the daemon under its real name: slurmctld-wlm, slurmd-wlm.
daemon_down() { # NAME DAEMON SIGNAL
    on "$1" pkill "-$3" -x "$2(-wlm)?"
    wait_for 20 no_process "$1" "$2(-wlm)?"
}

no_process() { ! on "$1" pgrep -x -r R,S,D "$2"; }

fake_gpus() { # fake_gpus NAME COUNT: character devices, which is all Slurm looks at
    local i
    for ((i = 0; i < $2; i++)); do on "$1" mknod -m 666 "/dev/nvidia$i" c 1 3; done
}

# The recipe of experiment a: the head's gres.conf only includes the node's own file.
readonly HEAD_GRES_CONF='Include /etc/slurm/gres.node.conf'

gpu_node_prepare() { # NAME IP TYPE COUNT
    machine "$1" "$2"
    fake_gpus "$1" "$4"
    if (($4 > 1)); then echo "Name=gpu Type=$3 File=/dev/nvidia[0-$(($4 - 1))]"; else echo "Name=gpu Type=$3 File=/dev/nvidia0"; fi |
        put "$1" /etc/slurm/gres.node.conf
    on "$1" install -d /var/lib/slurm/slurmd /var/log/slurm
    munge_up "$1"
}

slurmd_up() { # NAME CONF
    on "$1" slurmd -Z --conf "$2" --conf-server "$HEAD_IP:6817"
}

# gpu_node NAME IP TYPE COUNT [MORE_CONF]: boots a machine and starts slurmd; returns before it is registered.
gpu_node() {
    local shape='CPUs=48 RealMemory=180000'
    (($4 > 1)) || shape='CPUs=4 RealMemory=15000'
    gpu_node_prepare "$1" "$2" "$3" "$4"
    slurmd_up "$1" "$shape Gres=gpu:$3:$4 Feature=gpu,$3 ${5:-}"
}

# Empty when Slurm does not know the node.
node_state() { { on head scontrol show node "$1" -o 2>/dev/null || true; } | sed -n 's/.* State=\([^ ]*\) .*/\1/p'; }
# shellcheck disable=SC2053  # $2 is a pattern
node_is() { [[ $(node_state "$1") == $2 ]]; }
job_field() { { on head scontrol show job "$1" -o || true; } | grep -o -m1 " $2=[^ ]*" | head -1 | cut -d= -f2-; }
job_state() { job_field "$1" JobState; }
job_is() { [[ $(job_state "$1") == "$2" ]]; }
job_ended() { [[ $(job_state "$1") =~ COMPLETED|FAILED|CANCELLED|NODE_FAIL ]]; }
