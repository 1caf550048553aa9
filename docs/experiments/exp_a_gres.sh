# shellcheck shell=bash
# shellcheck disable=SC2016  # expanded on the nodes
# (a) Several GPU types and several sizes of one type, in configless mode: which gres.conf, and where?
# Three nodes (T4 x1, T4 x4, A10G x4) are booted under each recipe; GPUs are character devices.

readonly T4X1=i-0123456789abcdef0 T4X4=i-0123456789abcdef1 A10GX4=i-0123456789abcdef2
readonly NODES=("$T4X1 10.77.1.1 t4 1" "$T4X4 10.77.1.2 t4 4" "$A10GX4 10.77.1.3 a10g 4")

node_gres_conf() { # TYPE COUNT
    if (($2 > 1)); then echo "Name=gpu Type=$1 File=/dev/nvidia[0-$(($2 - 1))]"; else echo "Name=gpu Type=$1 File=/dev/nvidia0"; fi
}

# Recipes: what the node does before slurmd starts. Arguments: NAME TYPE COUNT.
include_own_file() { node_gres_conf "$2" "$3" | put "$1" /etc/slurm/gres.node.conf; }
own_etc_file() { node_gres_conf "$2" "$3" | put "$1" /etc/slurm/gres.conf; }
own_cache_file() { node_gres_conf "$2" "$3" | put "$1" /var/lib/slurm/slurmd/conf-cache/gres.conf; }
no_file() { :; }
fetched_conf() { # not configless: the head's slurm.conf copied once, beside the node's own gres.conf
    own_etc_file "$@"
    on head cat /etc/slurm/slurm.conf | put "$1" /etc/slurm/slurm.conf
    on head cat /etc/slurm/cgroup.conf | put "$1" /etc/slurm/cgroup.conf
}

start_slurmd() { # NAME CONF RECIPE
    local how=(--conf-server "$HEAD_IP:6817")
    [[ $3 != fetched_conf ]] || how=(-f /etc/slurm/slurm.conf)
    local status=0 started
    started=$(date +%s.%N)
    on "$1" timeout 40 slurmd -Z --conf "$2" "${how[@]}" >/dev/null 2>&1 || status=$?
    ((status == 0)) || say "    $1: slurmd exit $status after $(seconds_since "$started") s:" \
        "$(on "$1" grep -h -m2 -E 'fatal|error.*gres' /var/log/slurm/slurmd.log | cut -d' ' -f2- | tr '\n' ';')"
}

boot_one() { # NAME TYPE COUNT RECIPE
    local shape='CPUs=48 RealMemory=180000'
    (($3 > 1)) || shape='CPUs=4 RealMemory=15000'
    fake_gpus "$1" "$3"
    on "$1" install -d /var/lib/slurm/slurmd /var/log/slurm
    munge_up "$1"
    "$4" "$1" "$2" "$3"
    start_slurmd "$1" "$shape Gres=gpu:$2:$3 Feature=gpu,$2" "$4"
}

boot_all() { # RECIPE
    local node name ip type count pids=()
    for node in "${NODES[@]}"; do
        read -r name ip type count <<<"$node"
        machine "$name" "$ip"
        boot_one "$name" "$type" "$count" "$1" &
        pids+=($!)
    done
    wait "${pids[@]}" || true
    sleep 2
}

show_nodes() {
    local node name state
    for node in "${NODES[@]}"; do
        name=${node%% *}
        state=$(node_state "$name")
        say "    $node: ${state:-not registered}" \
            "$({ on head scontrol show node "$name" -o 2>/dev/null || true; } | grep -o -e ' Gres=[^ ]*' -e ' Reason=.*' | tr -d '\n')"
    done
}

cuda_devices() { # in a batch step and in an srun step of a job on each node, and the second half of a shared node
    local node name ip type count
    for node in "${NODES[@]}"; do
        read -r name ip type count <<<"$node"
        as user head timeout 30 sbatch --wait -w "$name" --gres="gpu:$type:$count" -D /shared -o "/shared/$name" \
            --wrap 'echo batch $CUDA_VISIBLE_DEVICES; srun sh -c "echo srun \$CUDA_VISIBLE_DEVICES"' >/dev/null || say "    $name: the job failed"
        say "    $name, all $count GPUs: $(tr '\n' ' ' <"$WORKDIR/shared/$name")"
    done
    as user head sbatch -w $A10GX4 --gres=gpu:1 -D /shared -o /dev/null --wrap 'sleep 5' >/dev/null
    say "    $A10GX4, gpu:a10g:2 beside a job with one: $(as user head timeout 30 srun -D /shared -w $A10GX4 --gres=gpu:a10g:2 sh -c 'echo $CUDA_VISIBLE_DEVICES')"
    wait_for 20 node_is $A10GX4 IDLE+DYNAMIC_NORM # a reconfigure beside a running job is experiment h
}

restarts() {
    on head scontrol reconfigure
    sleep 3
    say '  after scontrol reconfigure:'
    show_nodes
    cuda_devices
    machine_down $T4X1
    on head scontrol update nodename=$T4X1 state=down reason=gone
    on head scontrol delete nodename=$T4X1
    machine $T4X1 10.77.1.1
    boot_one $T4X1 t4 1 include_own_file
    wait_for 20 node_is $T4X1 IDLE+DYNAMIC_NORM
    say "  a node that joined after the reconfigure: $(node_state $T4X1)"
    cuda_devices
    slurmctld_down
    slurmctld_up
    sleep 3
    say '  after a restart of slurmctld:'
    show_nodes
    slurmd_down $T4X4
    start_slurmd $T4X4 'CPUs=48 RealMemory=180000 Gres=gpu:t4:4 Feature=gpu,t4' include_own_file
    sleep 2
    say "  after a restart of slurmd on $T4X4:"
    show_nodes
}

try() { # TITLE RECIPE HEAD_GRES_CONF
    local node
    say "$1"
    head_up "$3" <<<"$GPU_NODES"
    on head useradd -m user
    boot_all "$2"
    show_nodes
    if [[ $2 = include_own_file || $2 = fetched_conf ]]; then cuda_devices; fi
    [[ $2 != include_own_file ]] || restarts
    for node in "${NODES[@]}"; do machine_down "${node%% *}"; done
    machine_down head
}

try '1. configless; head: "Include /etc/slurm/gres.node.conf"; each node has its own such file' include_own_file "$HEAD_GRES_CONF"
try '2. configless; head has no gres.conf; node has /etc/slurm/gres.conf' own_etc_file ''
try '3. configless; head has no gres.conf; node put gres.conf into the slurmd cache before the start' own_cache_file ''
try '4. no gres.conf anywhere' no_file ''
try '5. configless; head lists both types with four devices' no_file 'Name=gpu Type=t4 File=/dev/nvidia[0-3]
Name=gpu Type=a10g File=/dev/nvidia[0-3]'
try '6. configless; head has a NodeName= line for each node (names known beforehand)' no_file "NodeName=$T4X1 Name=gpu Type=t4 File=/dev/nvidia0
NodeName=$T4X4 Name=gpu Type=t4 File=/dev/nvidia[0-3]
NodeName=$A10GX4 Name=gpu Type=a10g File=/dev/nvidia[0-3]"
try '7. not configless: slurm.conf fetched once, own gres.conf beside it' fetched_conf ''
