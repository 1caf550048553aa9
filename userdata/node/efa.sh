# shellcheck shell=bash
# needs: shape packages on_node_start
# only_with: EFA
# Elastic Fabric Adapter: ranks on one node copy from each other's memory, which Ubuntu forbids. The
# gate counts the devices. GDRCopy lets NCCL reach the memory of GPUs without a copy; its module is in
# AWS's image, not loaded.

has_gdrcopy() {
    ((GPUS > 0)) && modinfo gdrdrv >/dev/null 2>&1
}

check() {
    [[ $(sysctl -n kernel.yama.ptrace_scope 2>/dev/null || echo 0) == 0 ]] &&
        { ! has_gdrcopy || [[ -e /dev/gdrdrv ]]; }
}

apply() {
    sysctl -q -w kernel.yama.ptrace_scope=0 || true
    if has_gdrcopy; then
        modprobe gdrdrv
        [[ -e /dev/gdrdrv ]] || make_gdrdrv
    fi
}

# The module makes no file; its package's service does that, which AWS's image has switched off.
make_gdrdrv() {
    mknod -m 666 /dev/gdrdrv c "$(awk '$2 == "gdrdrv" {print $1}' /proc/devices)" 0
}
