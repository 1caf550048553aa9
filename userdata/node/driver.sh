# shellcheck shell=bash
# needs: packages shape
# only_with: DRIVER_BRANCH
# time_limit_s: 1200
# The GPU's driver, on images without one. On Ubuntu Canonical's modules, which are built and signed
# for the kernel that runs, so that nothing is compiled. The package without a kernel's version brings
# those of the newest kernel, which is another one as soon as the image is older. On Amazon Linux
# 2023 NVIDIA's own repository, whose modules are compiled here (DKMS). Held afterwards, as the kernel
# is.

readonly CUDA_REPOSITORY=/etc/yum.repos.d/cuda-amzn2023.repo

check() {
    ((GPUS == 0)) || { has_driver && is_loaded; }
}

has_driver() {
    command -v nvidia-smi >/dev/null
}

# An image is baked on a machine that may have no GPU.
is_loaded() {
    [[ $ROLE == image || -e $RUN_DIR/driver ]]
}

apply() {
    if has_driver; then
        : # of an earlier boot
    elif command -v apt-get >/dev/null; then
        install_canonical_s
    else
        install_nvidia_s
    fi
    is_loaded || load
}

load() {
    modprobe nvidia
    modprobe nvidia-uvm
    touch "$RUN_DIR/driver"
}

driver_packages() {
    echo "linux-modules-nvidia-$DRIVER_BRANCH-server-open-$(uname -r)" \
        "nvidia-kernel-common-$DRIVER_BRANCH-server nvidia-utils-$DRIVER_BRANCH-server" \
        "libnvidia-compute-$DRIVER_BRANCH-server" \
        "$( ((FABRIC == 0)) || echo "nvidia-fabricmanager-$DRIVER_BRANCH")"
}

install_canonical_s() {
    # shellcheck disable=SC2046
    apt_get install --no-install-recommends $(driver_packages)
    # shellcheck disable=SC2046
    apt-mark hold $(driver_packages) linux-image-aws linux-headers-aws
}

# Sources: NVIDIA, "Driver Installation Guide", Amazon Linux 2023 and "Kernel Modules" (the branch is
# a stream of the module nvidia-driver); EKS, install-nvidia-driver.sh (package names).
install_nvidia_s() {
    local arch kernel
    arch=$(uname -m)
    [[ $arch == x86_64 ]] || arch=sbsa
    curl -fsS -m 20 --retry 3 "$CUDA_URL/$arch/cuda-amzn2023.repo" | put_file "$CUDA_REPOSITORY" 644
    # AL2023 has several kernels, each under a name of its own: kernel, kernel6.12.
    kernel=$(rpm -qa --qf '%{NAME} %{VERSION}-%{RELEASE}.%{ARCH}\n' 'kernel*' |
        sed -nE "s/^(kernel[0-9.]*) $(uname -r)\$/\1/p")
    dnf -q -y module enable "nvidia-driver:$DRIVER_BRANCH-open"
    dnf -q -y --setopt=retries=5 install "$kernel-devel-$(uname -r)" \
        "$kernel-modules-extra-$(uname -r)" kmod-nvidia-open-dkms nvidia-driver-cuda \
        nvidia-persistenced 'dnf-command(versionlock)'
    if ((FABRIC)); then
        dnf -q -y --setopt=retries=5 install \
            "nvidia-fabricmanager-$(rpm -q --qf '%{VERSION}' nvidia-driver-cuda)"
    fi
    dnf -q versionlock add 'nvidia-*' 'libnvidia-*' 'kmod-nvidia-*' 'kernel*'
}
