# shellcheck shell=bash
# needs: slurmctld shared agent_code
# The agent runs as SlurmUser (`slurm`), and the owner rule lets that user reach the head's
# role. Only root and SlurmUser may delete nodes: a user of its own would need sudo, and as
# root the agent would hold more than it uses (root reads the Munge key and every home).
# Letting `slurm` have the role gives nothing away: who controls slurmctld can start jobs as
# anyone already. No job runs as `slurm`: it cannot log in, and Slurm runs a job as who sent it.

# shellcheck source=/dev/null
source files/agent_paths.sh

readonly ENVIRONMENT=/etc/tidegate/agent.env
readonly UNIT=/etc/systemd/system/tidegate-agent.service

# Another version is another folder, so the unit changes with it, and the agent is restarted.
unit() {
    cat <<EOF_UNIT
[Unit]
Description=Tidegate agent
After=slurmctld.service
[Service]
User=$AGENT_USER
EnvironmentFile=$ENVIRONMENT
StateDirectory=tidegate
ExecStart=$(agent_python) -s $(agent_folder)
Restart=always
RestartSec=2
EOF_UNIT
}

check() {
    has_file "$ENVIRONMENT" echo "$AGENT_ENV" && [[ -d $SHARED_DIR/.tidegate/users ]] || return
    [[ -z $AGENT_SHA256 ]] ||
        { has_file "$UNIT" unit && systemctl is-active --quiet tidegate-agent; }
}

apply() {
    install -d -o "$AGENT_USER" -m 755 "$SHARED_DIR/.tidegate/users"
    put_file "$ENVIRONMENT" 644 <<<"$AGENT_ENV"
    [[ -n $AGENT_SHA256 ]] || return 0
    unit | put_file "$UNIT" 644
    systemctl daemon-reload
    systemctl restart tidegate-agent
    find "$AGENT_HOME" -mindepth 1 -maxdepth 1 ! -path "$(agent_folder)" -exec rm -rf {} +
}
