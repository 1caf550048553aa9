# shellcheck shell=bash
# The Munge key is root on the cluster: it goes from Secrets Manager into a file that only
# munge reads, and never to the console, a log or the shared folder. Its fingerprint is no
# secret. Without comparing it, a node with the key of another cluster would only fail after
# a minute of slurmd's tries.

readonly FINGERPRINT_FILE=$SHARED_DIR/.tidegate/munge.fingerprint

# Our own retry has jitter, so the CLI's is switched off; but it shall be patient with the
# metadata service, which it otherwise asks for credentials once and for one second. Both kinds of secret are the key as
# it stands; only binary ones are wrapped in base64 by the API.
fetch_munge_key() {
    AWS_MAX_ATTEMPTS=1 AWS_METADATA_SERVICE_TIMEOUT=5 AWS_METADATA_SERVICE_NUM_ATTEMPTS=3 \
        timeout 60 aws secretsmanager get-secret-value \
        --secret-id "$MUNGE_SECRET" --output json >"$1/answer" &&
        jq -j '.SecretString // empty' "$1/answer" >"$1/key" &&
        jq -r '.SecretBinary // empty' "$1/answer" | base64 -d >>"$1/key"
}

check_munge_key() {
    local bytes fingerprint expected=$MUNGE_FINGERPRINT
    bytes=$(stat -c %s "$1")
    fingerprint=$(sha256sum "$1")
    fingerprint=${fingerprint:0:16}
    if ((bytes < 32 || bytes > 1024)); then
        echo "a Munge key of $bytes bytes is refused"
        return 1
    fi
    if [[ $ROLE == node ]]; then
        expected=${expected:-$(<"$FINGERPRINT_FILE")}
    fi
    if [[ -n $expected && $fingerprint != "$expected" ]]; then
        echo "this is the Munge key $fingerprint, the cluster's is $expected"
        return 1
    fi
    if [[ $ROLE == head ]]; then
        install -d -m 755 "${FINGERPRINT_FILE%/*}"
        echo "$fingerprint" >"$FINGERPRINT_FILE"
    fi
}

stage_munge() {
    local dir
    dir=$(umask 077 && mktemp -d /run/tidegate/munge.XXXXXX)
    (umask 077 && retry "$MUNGE_WAIT_S" fetch_munge_key "$dir")
    check_munge_key "$dir/key"
    install -d -o munge -g munge -m 700 /etc/munge
    install -o munge -g munge -m 400 "$dir/key" /etc/munge/munge.key
    rm -rf "$dir"
    systemctl restart munge
    munge -n | unmunge >/dev/null
}
