# shellcheck shell=bash
# needs: shape
# time_limit_s: 150
# The GPUs, and the node's own gres.conf. The head's gres.conf is one line that includes this
# file: one file for the whole cluster fails as soon as a GPU type comes in two sizes.

apply() {
    install -d -m 755 /etc/slurm
    : >/etc/slurm/gres.node.conf
    ((GPUS > 0)) || return 0
    # Without persistence the driver may not have made the device files when slurmd asks.
    timeout 120 nvidia-smi -pm 1
    local files="/dev/nvidia[0-$((GPUS - 1))]"
    ((GPUS > 1)) || files=/dev/nvidia0
    echo "Name=gpu Type=$GPU_TYPE File=$files" >/etc/slurm/gres.node.conf
}
