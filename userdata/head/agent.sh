# shellcheck shell=bash
# The agent runs as SlurmUser (`slurm`), and the owner rule lets that user reach the head's
# role. Only root and SlurmUser may delete nodes: a user of its own would need sudo, and as
# root the agent would hold more than it uses (root reads the Munge key and every home).
# Letting `slurm` have the role gives nothing away: who controls slurmctld can start jobs as
# anyone already. No job runs as `slurm`: it cannot log in, and Slurm runs a job as who sent it.

stage_agent() {
    install -d -m 755 /etc/tidegate
    install -d -o "$AGENT_USER" -m 755 "$SHARED_DIR/.tidegate/users"
    file_AGENT_ENV >/etc/tidegate/agent.env
    [[ -n $AGENT_COMMAND ]] || return 0
    cat >/etc/systemd/system/tidegate-agent.service <<EOF_UNIT
[Unit]
Description=Tidegate agent
After=slurmctld.service
[Service]
User=$AGENT_USER
EnvironmentFile=/etc/tidegate/agent.env
StateDirectory=tidegate
ExecStart=$AGENT_COMMAND
Restart=always
RestartSec=2
EOF_UNIT
    systemctl daemon-reload
    systemctl start tidegate-agent
}
