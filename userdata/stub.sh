# shellcheck shell=bash disable=SC1090,SC2034,SC2154
# @settings
set -euo pipefail
# @first
mkdir -p /{opt,etc}/tidegate
cd /opt/tidegate
exec 2>stub.log </dev/null
[[ -e /run/tidegate ]] || rm -f boot/.is
imds=http://169.254.169.254/latest env=/etc/tidegate/boot.env
say() { echo "tidegate $*" >>/dev/console; }
trap '(($?)) && { say "stage bundle failed: $(tail -1 stub.log)"; $off; }' EXIT
verb=start try=0
# @once
imds() { curl -fsSm 5 -H "X-aws-ec2-metadata-token: $token" "$imds/meta-data/$1"; }
# @signed
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
