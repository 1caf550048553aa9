# shellcheck shell=bash
# needs: packages shape
# time_limit_s: 1200
# The GPU's driver, on images without one: Canonical's modules, which are built and signed for the
# kernel that runs, so that nothing is compiled. The package without a kernel's version brings those
# of the newest kernel, which is another one as soon as the image is older. Held afterwards, as the
# kernel is.

driver_packages() {
    echo "linux-modules-nvidia-$DRIVER_BRANCH-server-open-$(uname -r)" \
        "nvidia-kernel-common-$DRIVER_BRANCH-server nvidia-utils-$DRIVER_BRANCH-server" \
        "libnvidia-compute-$DRIVER_BRANCH-server" \
        "$( ((FABRIC == 0)) || echo "nvidia-fabricmanager-$DRIVER_BRANCH")"
}

check() {
    [[ -z $DRIVER_BRANCH || $GPUS == 0 ]] || command -v nvidia-smi >/dev/null
}

apply() {
    # shellcheck disable=SC2046
    DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 \
        -o Acquire::Retries=3 install --no-install-recommends $(driver_packages)
    # shellcheck disable=SC2046
    apt-mark hold $(driver_packages) linux-image-aws linux-headers-aws
    # An image is baked on a machine that may have no GPU.
    [[ $ROLE != image ]] || return 0
    modprobe nvidia
    modprobe nvidia-uvm
}
