# shellcheck shell=bash
# needs: shape
# Elastic Fabric Adapter: ranks on one node copy from each other's memory, which Ubuntu forbids, and
# libraries take EFA without being told. The gate counts the devices.

readonly PROFILE=/etc/profile.d/tidegate-efa.sh

profile() {
    printf 'export FI_PROVIDER=efa\nexport FI_EFA_USE_DEVICE_RDMA=1'
}

check() {
    ((EFA == 0)) || has_file "$PROFILE" "$(profile)"
}

apply() {
    sysctl -q -w kernel.yama.ptrace_scope=0 || true
    profile | { cat; echo; } | put_file "$PROFILE" 644
}
