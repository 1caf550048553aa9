# shellcheck shell=bash
# needs: packages
# only_with: DCGM
# wait_s: 300
# time_limit_s: 600
# dcgm-exporter, for the metrics of GPUs, from NVIDIA's own repository, in an image that is baked: a boot
# has no time for it. Its units stay off: the stage exporters starts it, with the jobs' folder.

readonly CUDA_AT=https://developer.download.nvidia.com/compute/cuda/repos
# The second has the module of the profiler, without which tensor cores are not told (dcgm-exporter's issue
# 449); the first does not ask for it.
readonly PACKAGES_OF_DCGM=(datacenter-gpu-manager-exporter datacenter-gpu-manager-4-proprietary)
readonly KEY=/usr/share/keyrings/nvidia-cuda.asc

check() {
    command -v dcgm-exporter >/dev/null
}

apply() {
    local arch
    arch=$(uname -m)
    [[ $arch == x86_64 ]] || arch=sbsa
    if command -v apt-get >/dev/null; then
        add_source "$CUDA_AT/ubuntu$(sed -n 's/^VERSION_ID="\(.*\)\.\(.*\)"/\1\2/p' /etc/os-release)/$arch"
        apt_get update || true
        apt_get install --no-install-recommends "${PACKAGES_OF_DCGM[@]}"
    else
        curl -fsS -m 20 --retry 3 -o "$RUN_DIR/cuda.repo" "$CUDA_AT/amzn2023/$arch/cuda-amzn2023.repo"
        dnf -q -y --setopt=retries=5 "--setopt=reposdir=$RUN_DIR,/etc/yum.repos.d" install "${PACKAGES_OF_DCGM[@]}"
    fi
}

# Source: NVIDIA, "Driver Installation Guide", Ubuntu. The repository has drivers as well, which are to
# stay those of the image. One that has the repository already keeps its own word: apt ends at a
# second one with another key.
add_source() {
    local host=${1#*://}
    host=${host%%/*}
    ! grep -rqsF "$1" /etc/apt/sources.list.d || return 0
    curl -fsS -m 20 --retry 3 -o "$KEY" "$1/3bf863cc.pub"
    put_file /etc/apt/sources.list.d/nvidia-cuda.list 644 <<<"deb [signed-by=$KEY] $1/ /"
    put_file /etc/apt/preferences.d/nvidia-cuda 644 <<EOF_PIN
Package: *
Pin: origin $host
Pin-Priority: -1

Package: datacenter-gpu-manager*
Pin: origin $host
Pin-Priority: 990
EOF_PIN
}
