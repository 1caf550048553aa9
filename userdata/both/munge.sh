# shellcheck shell=bash
# needs: identity owner_rule shared
# wait_s: MUNGE_WAIT_S
# time_limit_s: 60
# The Munge key is root on the cluster: it goes from Secrets Manager into a file that only
# munge reads, and never to the console, a log or the shared folder. Its fingerprint is no
# secret. Without comparing it, a node with the key of another cluster would only fail after
# a minute of slurmd's tries.

readonly KEY=/etc/munge/munge.key FINGERPRINT_FILE=$SHARED_DIR/.tidegate/munge.fingerprint

fingerprint_of() {
    local sum
    sum=$(sha256sum "$1")
    echo "${sum:0:16}"
}

# The fingerprint that a key must have; empty on the first head of a cluster.
expected() {
    if [[ -n $MUNGE_FINGERPRINT ]]; then
        echo "$MUNGE_FINGERPRINT"
    elif [[ -e $FINGERPRINT_FILE ]]; then
        cat "$FINGERPRINT_FILE"
    fi
}

check() {
    [[ $(stat -c '%U %a' "$KEY" 2>/dev/null) == 'munge 400' ]] &&
        [[ $(fingerprint_of "$KEY") == "$(expected)" ]] &&
        systemctl is-active --quiet munge && munge -n 2>/dev/null | unmunge >/dev/null 2>&1
}

# take_key FILE: the key of the answer on standard input, as it stands; binary ones are wrapped in
# base64 by the API.
take_key() {
    python3 -IS -c '
import base64, json, sys
answer = json.load(sys.stdin)
key = answer.get("SecretString", "").encode() or base64.b64decode(answer["SecretBinary"])
open(sys.argv[1], "wb").write(key)' "$1"
}

fetch_key() {
    local answer
    if ! answer=$(aws_json secretsmanager secretsmanager.GetSecretValue \
        <<<"{\"SecretId\": \"$MUNGE_SECRET\"}"); then
        echo "Secrets Manager: $answer"
        return 1
    fi
    printf '%s' "$answer" | take_key "$1"
}

check_key() {
    local bytes fingerprint wanted
    bytes=$(stat -c %s "$1")
    fingerprint=$(fingerprint_of "$1")
    wanted=$(expected)
    if ((bytes < 32 || bytes > 1024)); then
        refuse "a Munge key of $bytes bytes is refused"
    fi
    if [[ -n $wanted && $fingerprint != "$wanted" ]]; then
        # A head whose secret is another one than before rules; its nodes are new by then.
        [[ $ROLE == head && -z $MUNGE_FINGERPRINT ]] ||
            refuse "this is the Munge key $fingerprint, the cluster's is $wanted"
    fi
    if [[ $ROLE == head ]]; then
        install -d -m 755 "${FINGERPRINT_FILE%/*}"
        echo "$fingerprint" | put_file "$FINGERPRINT_FILE" 644
    elif [[ -z $wanted ]]; then
        echo "the head has not published the Munge key's fingerprint yet"
        return 1
    fi
}

apply() {
    local dir
    rm -rf "$RUN_DIR"/munge.??????
    dir=$(umask 077 && mktemp -d "$RUN_DIR/munge.XXXXXX")
    (umask 077 && fetch_key "$dir/key")
    check_key "$dir/key"
    install -d -o munge -g munge -m 700 /etc/munge
    install -o munge -g munge -m 400 "$dir/key" "$KEY"
    rm -rf "$dir"
    systemctl restart munge
}
