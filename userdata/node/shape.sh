# shellcheck shell=bash disable=SC2153
# needs: identity
# wait_s: 30
# What am I: market from EC2, pool and gate from the tags of the launch, the rest from the table of
# this launch template's instance types.

check() {
    [[ -n ${POOL:-} ]]
}

apply() {
    local cpus memory_mib gpus gpu_type weight fabric efa min_driver gres instances labels market gate
    row_of "$INSTANCE_TYPE" "$SHAPES"
    read -r _ cpus memory_mib gpus gpu_type weight fabric efa min_driver gres instances <<<"$ROW"
    put_fact CPUS "$cpus"
    put_fact MEMORY_MIB "$memory_mib"
    put_fact GRES "$gres"
    put_fact ACCELERATORS "$((gpus * instances))"
    put_fact GPUS "$([[ $gres != gpu ]] && echo 0 || echo "$gpus")"
    put_fact GPU_TYPE "$gpu_type"
    put_fact WEIGHT "$weight"
    put_fact FABRIC "$fabric"
    put_fact EFA "$efa"
    put_fact MIN_DRIVER "$min_driver"
    market=$(imds instance-life-cycle)
    put_fact MARKET "$market"
    # No such tag: the node joins open. A gang's node must not because nobody answered.
    gate=$(imds_if_any tags/instance/tidegate:gate)
    put_fact GATE "$gate"
    POOL=$(imds tags/instance/tidegate:pool)
    row_of "$POOL" "$POOLS"
    read -r _ labels <<<"$ROW"
    put_fact LABELS "$labels"
    put_fact POOL "$POOL"
}

# row_of KEY TABLE: the row that starts with KEY, in ROW. What a tag says is only ever looked
# up, so it cannot become an argument of a command.
row_of() {
    while read -r ROW; do
        [[ ${ROW%% *} != "$1" ]] || return 0
    done <<<"$2"
    refuse "this launch template does not know '$1'"
}
