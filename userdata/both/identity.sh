# shellcheck shell=bash
# Who am I: from the metadata service, IMDSv2 only. Sets INSTANCE_ID. The node's host name is its instance id, as its Slurm name and its DNS name
# are; the head keeps its own name, because slurmctld runs under no other.

readonly IMDS=http://169.254.169.254/latest

imds_token() {
    IMDS_TOKEN=$(curl -fsS -m 2 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 21600' "$IMDS/api/token")
}

imds() {
    curl -fsS -m 2 -H "X-aws-ec2-metadata-token: $IMDS_TOKEN" "$IMDS/meta-data/$1"
}

stage_identity() {
    local name
    retry 60 imds_token
    INSTANCE_ID=$(imds instance-id)
    AWS_DEFAULT_REGION=$(imds placement/region)
    export AWS_DEFAULT_REGION
    if [[ ! $INSTANCE_ID =~ ^i-[0-9a-f]{8,17}$ ]]; then
        echo "no instance id: $INSTANCE_ID"
        return 1
    fi
    name=${HEAD_NAME:-$INSTANCE_ID}
    hostname "$name"
    echo "$name" >/etc/hostname
}
