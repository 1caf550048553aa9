# shellcheck shell=bash
# needs:
# wait_s: 60
# time_limit_s: 20
# Who am I: from the metadata service. The node's host name is its instance id, as its Slurm name
# and its DNS name are; the head keeps its own name, because slurmctld runs under no other, and knows
# its own address: slurmctld ends when it cannot resolve itself, and a name that was asked for before
# it was there stays unknown for as long as its zone says (900 s in Route 53).

check() {
    [[ -n ${INSTANCE_ID:-} && $(hostname) == "${HEAD_NAME:-$INSTANCE_ID}" ]] && knows_itself
}

hosts_line() {
    echo "${PRIVATE_IP:-} $HEAD_HOST $HEAD_NAME # tidegate"
}

knows_itself() {
    [[ -z ${HEAD_HOST:-} ]] || grep -qxF "$(hosts_line)" /etc/hosts
}

apply() {
    local told region domain type
    # First all answers: what is not answered ends this try, and an empty fact would end no later one.
    told=$(imds ${HEAD_HOST:+local-ipv4} instance-id placement/region services/domain instance-type)
    [[ -z ${HEAD_HOST:-} ]] || read -r PRIVATE_IP told <<<"${told//$'\n'/ }"
    read -rd '' INSTANCE_ID region domain type <<<"$told" || [[ -n $type ]]
    if [[ ! $INSTANCE_ID =~ ^i-[0-9a-f]{8,17}$ ]]; then
        echo "no instance id: $INSTANCE_ID"
        return 1
    fi
    put_fact AWS_REGION "$region"
    put_fact AWS_DOMAIN "$domain"
    put_fact INSTANCE_TYPE "$type"
    if [[ -n ${HEAD_HOST:-} ]]; then
        put_fact PRIVATE_IP "$PRIVATE_IP"
        { grep -v '# tidegate$' /etc/hosts || true; hosts_line; } | put_file /etc/hosts 644
    fi
    hostname "${HEAD_NAME:-$INSTANCE_ID}"
    hostname >/etc/hostname
    put_fact INSTANCE_ID "$INSTANCE_ID"
}
