# shellcheck shell=bash
# needs:
# wait_s: 60
# time_limit_s: 20
# Who am I: from the metadata service. The node's host name is its instance id, as its Slurm name
# and its DNS name are; the head keeps its own name, because slurmctld runs under no other.

check() {
    [[ -n ${INSTANCE_ID:-} && $(hostname) == "${HEAD_NAME:-$INSTANCE_ID}" ]]
}

apply() {
    INSTANCE_ID=$(imds instance-id)
    if [[ ! $INSTANCE_ID =~ ^i-[0-9a-f]{8,17}$ ]]; then
        echo "no instance id: $INSTANCE_ID"
        return 1
    fi
    put_fact AWS_REGION "$(imds placement/region)"
    put_fact AWS_DOMAIN "$(imds services/domain)"
    put_fact INSTANCE_TYPE "$(imds instance-type)"
    hostname "${HEAD_NAME:-$INSTANCE_ID}"
    hostname >/etc/hostname
    put_fact INSTANCE_ID "$INSTANCE_ID"
}
