# shellcheck shell=bash disable=SC2153
# needs: identity
# wait_s: 30
# What am I: market from EC2, pool and gate from the tags of the launch, the rest from the table of
# this launch template's instance types.

check() {
    [[ -n ${POOL:-} ]]
}

apply() {
    local cpus memory_mib gpus gpu_type weight fabric efa min_driver gres instances labels told market gate
    # Into what each GPU is cut (MIG), like `6=3g.20gb:2 2=1g.5gb:3/4g.20gb:1`; nothing where they stay
    # whole. Where a pool has several profiles the launch says it.
    local layout=
    row_of "$INSTANCE_TYPE" "$SHAPES"
    read -r _ cpus memory_mib gpus gpu_type weight fabric efa min_driver gres instances <<<"$ROW"
    put_fact CPUS "$cpus"
    put_fact MEMORY_MIB "$memory_mib"
    put_fact GRES "$gres"
    [[ -z $MIG ]] || layout="$gpus=$MIG:$instances"
    if [[ -n $MIG_PROFILES ]]; then
        layout=$(imds_if_any tags/instance/tidegate:mig)
        is_layout "$layout" "$gpus" ||
            refuse "the tag tidegate:mig says '$layout': no layout of $gpus GPUs with $MIG_PROFILES"
    fi
    put_fact LAYOUT "$layout"
    put_fact ACCELERATORS "$(in_all "$gpus" "$layout")"
    put_fact TOLD_GRES "$(told "$gres" "$gpu_type" "$gpus" "$layout")"
    put_fact GPUS "$([[ $gres != gpu ]] && echo 0 || echo "$gpus")"
    put_fact GPU_TYPE "$gpu_type"
    put_fact WEIGHT "$weight"
    put_fact FABRIC "$fabric"
    put_fact EFA "$efa"
    put_fact MIN_DRIVER "$min_driver"
    told=$(imds instance-life-cycle tags/instance/tidegate:pool)
    read -rd '' market POOL <<<"$told" || [[ -n $POOL ]]
    put_fact MARKET "$market"
    # No such tag: the node joins open. A gang's node must not because nobody answered.
    gate=$(imds_if_any tags/instance/tidegate:gate)
    put_fact GATE "$gate"
    row_of "$POOL" "$POOLS"
    read -r _ labels <<<"$ROW"
    put_fact LABELS "$labels"
    put_fact POOL "$POOL"
}

# is_layout TEXT GPUS: what a tag says becomes a configuration only where all of it is known.
is_layout() {
    local part of gpus=0 gpus_of='[1-9][0-9]?=[0-9gb.:]+(/[0-9gb.:]+)*'
    [[ $1 =~ ^$gpus_of( $gpus_of)*$ ]] || return 1
    for part in $1; do
        gpus=$((gpus + ${part%%=*}))
        for of in $(tr / ' ' <<<"${part#*=}"); do
            [[ $of =~ ^[^:]+:[1-7]$ && " $MIG_PROFILES " == *" ${of%:*} "* ]] || return 1
        done
    done
    ((gpus == $2))
}

# instances_in LAYOUT: profile and how many the node has of it, a line each, in the order of gres.conf.
instances_in() {
    local part of
    for part in $1; do
        for of in $(tr / ' ' <<<"${part#*=}"); do
            echo "${of%:*} $((${part%%=*} * ${of##*:}))"
        done
    done | awk '{sum[$1] += $2} END {for (profile in sum) print profile, sum[profile]}' | sort
}

# in_all GPUS LAYOUT: how many devices Slurm is told of.
in_all() {
    [[ -n $2 ]] || { echo "$1"; return; }
    instances_in "$2" | awk '{sum += $2} END {print sum}'
}

# told GRES TYPE GPUS LAYOUT: the node's GRES, like gpu:a100_1g.5gb:6,gpu:a100_3g.20gb:12 or gpu:l4:1,shard:4.
told() {
    local gres=''
    (($3 > 0)) || return 0
    if [[ -n $4 ]]; then
        gres=$(instances_in "$4" | while read -r profile count; do
            printf ',%s:%s_%s:%s' "$1" "${2%%_[1-7]g.*}" "${profile//+/.}" "$count"
        done)
        echo "${gres#,}"
    elif [[ -n $SHARED ]]; then
        echo "$1:$2:$3,${SHARED% *}:$(($3 * ${SHARED#* }))"
    else
        echo "$1:$2:$3"
    fi
}

# row_of KEY TABLE: the row that starts with KEY, in ROW. What a tag says is only ever looked
# up, so it cannot become an argument of a command.
row_of() {
    while read -r ROW; do
        [[ ${ROW%% *} != "$1" ]] || return 0
    done <<<"$2"
    refuse "this launch template does not know '$1'"
}
