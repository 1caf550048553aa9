# shellcheck shell=bash
# needs: shape driver neuron on_node_start
# time_limit_s: 300
# The GPUs, and the node's own gres.conf. The head's gres.conf is one line that includes this
# file: one file for the whole cluster fails as soon as a GPU type comes in two sizes.

apply() {
    local files="/dev/nvidia[0-$((GPUS - 1))]"
    install -d -m 755 /etc/slurm
    # Of parts of GPUs the stage mig tells, and may find nothing to do.
    [[ -n $LAYOUT ]] || : >/etc/slurm/gres.node.conf
    if [[ $GRES == neuron ]]; then
        { echo AutoDetect=off && neuron_devices; } >/etc/slurm/gres.node.conf
    fi
    ((GPUS > 0)) || return 0
    # Without persistence the driver may not have made the device files when slurmd asks. 25 s and
    # more for eight GPUs.
    timeout 120 nvidia-smi -pm 1
    set_up
    [[ -z $LAYOUT ]] || return 0
    ((GPUS > 1)) || files=/dev/nvidia0
    echo "Name=gpu Type=$GPU_TYPE File=$files" >/etc/slurm/gres.node.conf
    # Without the flag Slurm gives away mps of one GPU of a node at a time (gres.conf(5)).
    [[ -z $SHARED ]] ||
        echo "Name=${SHARED% *} Count=$((GPUS * ${SHARED#* })) Flags=all_sharing" >>/etc/slurm/gres.node.conf
}

# AWS's own accelerators: the driver of the image makes a device file for each. A dynamic node that tells
# of no GPU looks for some by itself from Slurm 26.05 on, and takes these for GPUs (slurmd(8), -Z; gpu/nrt).
neuron_devices() {
    local last=$((ACCELERATORS - 1))
    ((last > 0)) && echo "Name=neuron Type=$GPU_TYPE File=/dev/neuron[0-$last]" ||
        echo "Name=neuron Type=$GPU_TYPE File=/dev/neuron0"
}

# What the pool asks for. Each setting is read back: a card may answer with success and keep its own.
set_up() {
    if [[ -n $POWER_LIMIT_W ]]; then
        takes_power
        nvidia-smi -pl "$POWER_LIMIT_W"
        holds power.limit "$POWER_LIMIT_W"
    fi
    if [[ -n $COMPUTE_MODE ]]; then
        nvidia-smi -c "$COMPUTE_MODE"
        holds compute_mode "$COMPUTE_MODE"
    fi
    if [[ -n $GPU_CLOCK_MHZ ]]; then
        nvidia-smi -lgc "$GPU_CLOCK_MHZ"
    fi
}

# The card's own bounds: one that is asked for less or more may clip it in silence.
takes_power() {
    local least most
    while IFS=', ' read -r least most; do
        if ((POWER_LIMIT_W < ${least%.*} || POWER_LIMIT_W > ${most%.*})); then
            refuse "asked for $POWER_LIMIT_W W, the GPU takes $least to $most"
        fi
    done < <(nvidia-smi --query-gpu=power.min_limit,power.max_limit --format=csv,noheader,nounits)
}

# holds FIELD VALUE: on every GPU.
holds() {
    local value
    while read -r value; do
        value=${value%.00}
        if [[ ${value,,} != "${2,,}" ]]; then
            refuse "asked for $1 $2, the GPU has $value"
        fi
    done < <(nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits)
}
