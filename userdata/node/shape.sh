# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153  # what is read here is used by the stages after this one
# What am I: instance type and market from EC2, pool and gate from the tags of the launch.

stage_shape() {
    INSTANCE_TYPE=$(imds instance-type)
    MARKET=$(imds instance-life-cycle)
    POOL=$(imds tags/instance/tidegate:pool)
    # No such tag: the node joins open.
    GATE=$(imds tags/instance/tidegate:gate || true)
    row_of "$INSTANCE_TYPE" "$SHAPES"
    read -r _ CPUS MEMORY_MIB GPUS GPU_TYPE WEIGHT <<<"$ROW"
    row_of "$POOL" "$POOLS"
    read -r _ LABELS <<<"$ROW"
}

# row_of KEY TABLE: the row that starts with KEY, in ROW. What a tag says is only ever looked
# up, so it cannot become an argument of a command.
row_of() {
    while read -r ROW; do
        [[ ${ROW%% *} != "$1" ]] || return 0
    done <<<"$2"
    echo "this launch template does not know '$1'"
    return 1
}
