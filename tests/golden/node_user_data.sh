#!/bin/bash
# Tidegate dev: node
BOUND_S=900
BUNDLE=cdk-hnb659fds-assets-123456789012-us-east-1/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.tgz
SHA256=cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc
set -euo pipefail
off='systemctl poweroff'
systemd-run -q --unit=tidegate-dead-man --on-active="$BOUND_S" \
/bin/sh -c "echo tidegate not ready after $BOUND_S s >>/dev/console & $off"
(($(df --output=avail / | sed 1d) > 9999)) || { echo tidegate stage bundle failed: disk full >>/dev/console; exec $off; }
mkdir -p /{opt,etc}/tidegate
cd /opt/tidegate
exec 2>stub.log </dev/null
[[ -e /run/tidegate ]] || rm -f boot/.is
imds=http://169.254.169.254/latest env=/etc/tidegate/boot.env
say() { echo "tidegate $*" >>/dev/console; }
trap '(($?)) && { say "stage bundle failed: $(tail -1 stub.log)"; $off; }' EXIT
verb=start try=0
cat >$env <<'END'
ROLE=node
HEAD=head.ec2.internal:6817
METADATA_USERS=root
SHAPES='g4dn.xlarge 4 15564 1 t4 1 0 0 - gpu 1
g4dn.12xlarge 48 186777 4 t4 1 0 0 - gpu 1
g5.12xlarge 48 186777 4 a10g 2 0 0 - gpu 1'
POOLS='gpu team-ml,fast
cheap -'
REGISTER_WAIT_S=120
SPOT_POLL_S=5
ORPHAN_AFTER_S=1800
PROGRAMS='curl munge munged mount.efs nft scontrol lspci setpriv slurmd'
PACKAGES=''
DRIVER_BRANCH=''
POWER_LIMIT_W=''
GPU_CLOCK_MHZ=''
COMPUTE_MODE=''
CONTAINERS=''
NEURON_URL=https://apt.repos.neuron.amazonaws.com
USERS=''
LOG_GROUP=''
MIG=''
MPS=''
MUNGE_WAIT_S=120
SHARED_DIR=/shared
SHARED_WAIT_S=300
EFS_HELPER_URL=https://amazon-efs-utils.aws.com
MUNGE_SECRET=arn:aws:secretsmanager:us-east-1:123456789012:secret:munge-AbCdEf
FILE_SYSTEM=fs-0123456789abcdef0
END
locate() { :; }
imds() { curl -fsSm 5 -H "X-aws-ec2-metadata-token: $token" "$imds/meta-data/$1"; }
key() { sed -n "s/.*\"$1\" *: *\"\([^\"]*\)\".*/\1/p" <<<"$keys"; }
signed() {
printf 'user="%s:%s"\nheader="x-amz-security-token:%s"\n' \
"$(key AccessKeyId)" "$(key SecretAccessKey)" "$(key Token)" |
curl -fsSm 60 -K - --aws-sigv4 "aws:amz:$region:$1" "${@:2}"
}
role() {
token=$(curl -fsSm 5 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' $imds/api/token) &&
p=iam/security-credentials/ && keys=$(imds "$p$(imds "$p")") &&
region=$(imds placement/region)
}
at() { echo "${AWS_ENDPOINT_URL:-https://$1.$region.$(imds services/domain)}"; }
has() { sha256sum -c <<<"$SHA256  boot.tar" >&2; }
get() {
locate || return
if ! has; then
[[ -e boot.tar ]] && say "fetches its stages: these differ"
role && signed s3 -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -o got \
"$(at s3)/$BUNDLE" || return
zcat got >boot.tar
has || exit 1
fi
[[ $(cat boot/.is) != "$SHA256" ]] || return 0
rm -rf new; mkdir new; tar -xf boot.tar -C new &&
echo "$SHA256" >new/.is && rm -rf boot && mv new boot && verb=restart
}
until get; do
((++try<8))
sleep $((RANDOM % try * 3))
done
exec boot/boot.sh $verb
