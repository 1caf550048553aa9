# shellcheck shell=bash
# needs: data_volume pyxis
# time_limit_s: 120
# Slurm's configuration. Nodes get theirs from slurmctld (configless), all but the line of gres.conf
# that points at a file of their own.
#
# A deployment that changed it is taken up by a restart of slurmctld, which keeps jobs and
# dynamic nodes; `scontrol reconfigure` leaves nodes allocated for ever on 22.05
# (docs/real-slurm.md, h). What an administrator changed stays until then, and is saved beside.

# shellcheck source=/dev/null
source files/qos.sh

readonly CONF=/etc/slurm/slurm.conf MADE=/etc/tidegate/slurm.conf LEAVING=/etc/tidegate/leaving
# A restart of slurmctld is owed: what is cut short in between is finished by the next try.
readonly OWED=/etc/tidegate/slurm.owed
readonly TOPOLOGY_CONF=/etc/slurm/topology.conf
readonly SUBMIT=/etc/slurm/job_submit.lua ADVICE=/etc/slurm/advice
readonly ROTATION=/etc/logrotate.d/slurmctld

# Nodes get it from slurmctld, as they get slurm.conf; so the plugin has the same path everywhere.
has_plugins() {
    [[ $CONTAINERS != pyxis ]] || has_file /etc/slurm/plugstack.conf plugin_line
}

# slurmctld does not start where slurm.conf names it and it is not there, or without Lua's library,
# which Debian's and Ubuntu's packages of Slurm bring.
has_submit() {
    [[ ! -e files/job_submit.lua ]] || cmp -s files/job_submit.lua "$SUBMIT"
}

# What classes of jobs may ask; without its part of the script nobody reads it.
has_advice() {
    [[ ! -e files/advice ]] || cmp -s files/advice "$ADVICE"
}

# It stays where it is no longer asked for: without TopologyPlugin nobody reads it.
has_topology() {
    [[ ! -e files/topology.conf ]] || cmp -s files/topology.conf "$TOPOLOGY_CONF"
}

check() {
    has_plugins && has_submit && has_advice && has_topology && [[ ! -e $LEAVING && -e $CONF ]] && cmp -s files/slurm.conf "$MADE" &&
        cmp -s files/cgroup.conf /etc/slurm/cgroup.conf && [[ -d $STATE_DIR ]] &&
        has_file "$ROTATION" rotation slurmctld
}

# The partitions that job records name, of ended jobs too; nothing when slurmctld is down.
named_partitions() {
    timeout 10 squeue -a -h -t all -o %P 2>/dev/null
}

# The new configuration, with the partitions that are to go and are still named by a job, drained:
# slurmctld may crash over a job whose partition is gone.
merged() {
    local named=-
    if systemctl is-active --quiet slurmctld; then
        named=$(named_partitions | tr ',\n' '  ') || named=-
    fi
    python3 -IS files/leaving.py "$CONF" files/slurm.conf "$named"
}

apply() {
    local new is_changed=
    [[ $CONTAINERS != pyxis || -n $(pyxis) ]] ||
        refuse "the head's image lacks spank_pyxis.so, which containers: pyxis needs"
    [[ -z $CONTAINER_CACHE ]] || has_importer ||
        refuse "the head's pyxis knows no importer (0.21 does), which container_cache needs"
    [[ ! -e files/job_submit.lua ]] || ldconfig -p | grep -q liblua ||
        refuse "the head lacks liblua, which slurm.submit_estimate and slurm.advice need"
    install -d -m 755 /etc/slurm
    install -d -o slurm -g slurm -m 700 "$STATE_DIR"
    install -d -o slurm -g slurm -m 755 /var/log/slurm
    new=$(merged)
    if [[ -e $CONF ]] && ! has_file "$CONF" echo "$new"; then
        is_changed=1
        cp -p "$CONF" "$CONF.before"
        cp -p /etc/slurm/cgroup.conf /etc/slurm/cgroup.conf.before
        [[ ! -e $TOPOLOGY_CONF ]] || cp -p "$TOPOLOGY_CONF" "$TOPOLOGY_CONF.before"
    fi
    if ! has_plugins; then
        is_changed=1
        plugin_line | put_file /etc/slurm/plugstack.conf 644
    fi
    [[ -z $is_changed ]] || touch "$OWED"
    has_submit || put_file "$SUBMIT" 644 <files/job_submit.lua
    has_advice || put_file "$ADVICE" 644 <files/advice
    has_topology || put_file "$TOPOLOGY_CONF" 644 <files/topology.conf
    put_file "$CONF" 644 <<<"$new"
    put_file /etc/slurm/cgroup.conf 644 <files/cgroup.conf
    put_file /etc/slurm/gres.conf 644 <<<'Include /etc/slurm/gres.node.conf'
    install -d -m 755 "${ROTATION%/*}"
    rotation slurmctld | put_file "$ROTATION" 644
    # The head has no GPU, but slurmctld waits up to 60 s for a file that is not there.
    put_file /etc/slurm/gres.node.conf 644 </dev/null
    if [[ -e $OWED ]] && systemctl is-active --quiet slurmctld; then
        make_qos
        restart_or_go_back
        place_the_placeless
    fi
    rm -f "$OWED"
    put_file "$MADE" 644 <files/slurm.conf
    if [[ $new == *'# leaves when no job names it'* ]]; then
        touch "$LEAVING"
        exit 0
    fi
    rm -f "$LEAVING"
}

# Nodes that joined before there was a topology: no job could have one of them beside another.
place_the_placeless() {
    local names
    [[ -e files/topology.conf ]] || return 0
    names=$(scontrol -o show nodes | sed -n '/DYNAMIC_NORM/{/ Topology=/!s/^NodeName=\([^ ]*\) .*/\1/p}' | paste -sd,)
    [[ -z $names ]] || scontrol update nodename="$names" topology=default:all:elsewhere
}

# slurmctld ends where slurmdbd cannot note its TRES, and accounting may be switched on right now: then
# the stage accounting starts slurmdbd beside this one, whose slurm.conf it needs to ask it.
await_accounting() {
    local until_s=$((SECONDS + 45))
    [[ -n $ACCOUNTING ]] || return 0
    until knows_cluster || ((SECONDS > until_s)); do
        sleep 0.2
    done
}

restart_or_go_back() {
    local try
    await_accounting
    rm -f "$OWED"
    systemctl restart slurmctld || true
    for ((try = 0; try < 100; try++)); do
        [[ $(timeout 5 scontrol ping 2>&1) != *'is UP'* ]] || return 0
        systemctl is-active --quiet slurmctld || break
        sleep 0.2
    done
    tail -n 2 /var/log/slurm/slurmctld.log
    cp -p "$CONF.before" "$CONF"
    cp -p /etc/slurm/cgroup.conf.before /etc/slurm/cgroup.conf
    [[ ! -e $TOPOLOGY_CONF.before ]] || cp -p "$TOPOLOGY_CONF.before" "$TOPOLOGY_CONF"
    systemctl restart slurmctld
    refuse "slurmctld does not start with the new slurm.conf; the one before is back"
}
