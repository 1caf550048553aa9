# shellcheck shell=bash
# needs: shape
# only_with: THREADS_PER_CORE
# wait_s: 30
# One thread of each core, where the pool asks for it. Each start of the machine begins with all of them,
# and each boot takes the second ones out again, before slurmd counts. EC2's CpuOptions could start it without
# them, but only with a number of cores beside it (API reference, LaunchTemplateCpuOptionsRequest), and a
# launch template is for types of several sizes.

readonly CPU_DIR=${CPU_DIR:-/sys/devices/system/cpu}

# online: how many of a list like 0-3,8.
online() {
    local range count=0
    for range in $(tr , ' ' <"$CPU_DIR/online"); do
        count=$((count + ${range#*-} - ${range%-*} + 1))
    done
    echo "$count"
}

check() {
    (($(online) == CPUS))
}

apply() {
    local control
    control=$(cat "$CPU_DIR/smt/control" 2>/dev/null) || control=nothing
    # All else means that this kernel cannot (its ABI document, sysfs-devices-system-cpu).
    [[ $control != on ]] || echo off >"$CPU_DIR/smt/control"
    check || refuse "with threads_per_core: 1 $INSTANCE_TYPE has $CPUS CPUs, $(online) are there, and of SMT the" \
        "kernel says '$control': leave the setting out, or name an image whose kernel can switch it off"
}
