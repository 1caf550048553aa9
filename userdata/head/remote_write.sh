# shellcheck shell=bash
# needs: agent agent_code
# The relay that signs what Prometheus writes to a workspace of Amazon's, as the agent's user and of its
# code (tidegate/agent/remote_write.py says why Prometheus does not). Prometheus shows it a secret, so
# that who logs in here writes nothing in the head's name. Where it is silent Prometheus keeps what it
# has for about two hours.

# shellcheck source=/dev/null
source files/agent_paths.sh

readonly RELAY=tidegate-remote-write
readonly UNIT=/etc/systemd/system/$RELAY.service TOKEN=/etc/tidegate/remote-write.token

unit() {
    local name
    cat <<EOF_UNIT
[Unit]
Description=Tidegate: signs what Prometheus writes to Amazon Managed Service for Prometheus
[Service]
User=$AGENT_USER
EnvironmentFile=/etc/tidegate/agent.env
EOF_UNIT
    for name in URL REGION ROLE TOKEN PORT; do
        local of=REMOTE_WRITE_$name
        echo "Environment=TIDEGATE_$of=${!of}"
    done
    cat <<EOF_UNIT
ExecStart=$(agent_python) -s $(agent_folder) remote-write
Restart=always
RestartSec=5
MemoryMax=512M
CPUWeight=20
OOMScoreAdjust=500
EOF_UNIT
}

is_asked_for() {
    [[ -n $REMOTE_WRITE_TOKEN && -n $AGENT_SHA256 ]]
}

check() {
    if ! is_asked_for; then
        [[ ! -e $UNIT ]]
        return
    fi
    [[ -s $TOKEN ]] && has_file "$UNIT" unit && systemctl is-active --quiet "$RELAY"
}

apply() {
    if ! is_asked_for; then
        systemctl stop "$RELAY" || true
        rm -f "$UNIT" "$TOKEN"
        systemctl daemon-reload
        return
    fi
    [[ -s $TOKEN ]] || od -An -N32 -tx1 /dev/urandom | tr -d ' \n' | put_file "$TOKEN" 400
    chown "prometheus:$(id -gn "$AGENT_USER")" "$TOKEN"
    chmod 440 "$TOKEN"
    unit | put_file "$UNIT" 644
    systemctl daemon-reload
    systemctl restart "$RELAY"
}
