# shellcheck shell=bash
# needs: packages driver
# only_with: DCGM
# wait_s: 300
# time_limit_s: 600
# Of DCGM, from NVIDIA's own repository, what the word DCGM has, in an image that is baked: a boot has no
# time for it. `exporter`: dcgm-exporter, for the metrics of GPUs. `tests`: of GPUs (dcgmi diag); `volta`: of
# such GPUs too. All units stay off: the stage exporters starts dcgm-exporter, the health gate DCGM.

readonly CUDA_AT=https://developer.download.nvidia.com/compute/cuda/repos
readonly KEY=/usr/share/keyrings/nvidia-cuda.asc PLUGINS=${PLUGINS:-/usr/libexec/datacenter-gpu-manager-4/plugins}

# cudas: the CUDA by which DCGM tests the GPUs, its driver's; of Volta, which CUDA 13 has left, 12. A driver
# has 13 from its branch 580 on. Source: DCGM, nvvs/include/TestFramework.inl; NVIDIA's CUDA release notes.
cudas() {
    local driver
    [[ $DCGM == *tests* ]] || return 0
    driver=$(modinfo -F version nvidia) || return
    ((${driver%%.*} < 580)) || echo 13
    ((${driver%%.*} >= 580)) && [[ $DCGM != *volta* ]] || echo 12
}

# The second has the module of the profiler, without which tensor cores are not told (dcgm-exporter's issue
# 449); the first does not ask for it.
packages_of_dcgm() {
    [[ $DCGM != *exporter* ]] || echo datacenter-gpu-manager-exporter datacenter-gpu-manager-4-proprietary
    cudas | sed 's/^/datacenter-gpu-manager-4-cuda/' || return
}

check() {
    local cuda of_driver
    [[ $DCGM != *exporter* ]] || command -v dcgm-exporter >/dev/null || return
    of_driver=$(cudas) || return
    for cuda in $of_driver; do
        compgen -G "$PLUGINS/cuda$cuda/*" >/dev/null || return
    done
}

apply() {
    local arch packages
    packages=$(packages_of_dcgm)
    arch=$(uname -m)
    [[ $arch == x86_64 ]] || arch=sbsa
    if command -v apt-get >/dev/null; then
        add_source "$CUDA_AT/ubuntu$(sed -n 's/^VERSION_ID="\(.*\)\.\(.*\)"/\1\2/p' /etc/os-release)/$arch"
        apt_get update || true
        # shellcheck disable=SC2086
        apt_get install --no-install-recommends $packages
    else
        curl -fsS -m 20 --retry 3 -o "$RUN_DIR/cuda.repo" "$CUDA_AT/amzn2023/$arch/cuda-amzn2023.repo"
        # shellcheck disable=SC2086
        dnf -q -y --setopt=retries=5 "--setopt=reposdir=$RUN_DIR,/etc/yum.repos.d" install $packages
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
