# shellcheck shell=bash
# needs: slurmctld shared
# The agent runs as SlurmUser (`slurm`), and the owner rule lets that user reach the head's
# role. Only root and SlurmUser may delete nodes: a user of its own would need sudo, and as
# root the agent would hold more than it uses (root reads the Munge key and every home).
# Letting `slurm` have the role gives nothing away: who controls slurmctld can start jobs as
# anyone already. No job runs as `slurm`: it cannot log in, and Slurm runs a job as who sent it.

readonly ENVIRONMENT=/etc/tidegate/agent.env
readonly UNIT=/etc/systemd/system/tidegate-agent.service

unit() {
    cat <<EOF_UNIT
[Unit]
Description=Tidegate agent
After=slurmctld.service
[Service]
User=$AGENT_USER
EnvironmentFile=$ENVIRONMENT
StateDirectory=tidegate
ExecStart=$AGENT_COMMAND
Restart=always
RestartSec=2
EOF_UNIT
}

check() {
    has_file "$ENVIRONMENT" "$AGENT_ENV" && [[ -d $SHARED_DIR/.tidegate/users ]] || return
    [[ -z $AGENT_COMMAND ]] ||
        { has_file "$UNIT" "$(unit)" && systemctl is-active --quiet tidegate-agent; }
}

apply() {
    install -d -o "$AGENT_USER" -m 755 "$SHARED_DIR/.tidegate/users"
    put_file "$ENVIRONMENT" 644 <<<"$AGENT_ENV"
    [[ -n $AGENT_COMMAND ]] || return 0
    unit | put_file "$UNIT" 644
    systemctl daemon-reload
    systemctl restart tidegate-agent
}
