#!/bin/bash
# usage: tidegate-spot-watch INSTANCE_ID SECONDS
# Looks for the spot notice every SECONDS and then drains this node, which works even when the
# event on the other way is late or lost. Signals and requeues are the service's to order: it
# knows which jobs asked for a signal, and doing it twice would cut their time to checkpoint.
set -uo pipefail

readonly IMDS=http://169.254.169.254/latest
instance_id=$1 poll_s=$2 token=

# The HTTP status; the notice itself goes to $notice.
look() {
    curl -s -m 2 -o "$notice" -w '%{http_code}' -H "X-aws-ec2-metadata-token: $token" \
        "$IMDS/meta-data/spot/instance-action"
}

new_token() {
    token=$(curl -fsS -m 2 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 21600' "$IMDS/api/token")
}

drain() {
    scontrol update nodename="$instance_id" state=drain \
        reason="tidegate: spot reclaim at $(sed -n 's/.*"time" *: *"\([^"]*\)".*/\1/p' "$notice")"
}

notice=$(mktemp /run/tidegate/spot.XXXXXX)
while :; do
    case $(look) in
        200) break ;;
        401) new_token; sleep 0.5 ;;
        *) sleep "$poll_s" ;;
    esac
done
until drain; do
    sleep 1
done
