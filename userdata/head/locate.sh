# shellcheck shell=bash disable=SC1090,SC2034,SC2086,SC2154
off=
again=/var/lib/cloud/scripts/per-boot/tidegate
[[ ! -e $0 || $0 -ef $again ]] || { install -Dm 700 "$0" $again && sync; }
locate() {
    role || return
    signed ssm -H 'X-Amz-Target: AmazonSSM.GetParameter' -H 'Content-Type: application/x-amz-json-1.1' \
        -d "{\"Name\":\"$POINTER\"}" "$(at ssm)/" | python3 -c \
        'import json,sys;print(json.load(sys.stdin)["Parameter"]["Value"])' >$env.new || return
    cmp -s $env.new $env || verb=restart
    mv $env.new $env
    source $env
}
