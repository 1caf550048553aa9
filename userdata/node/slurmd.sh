# shellcheck shell=bash disable=SC2153
# needs: topology health users task_env job_role gpu_use data_sets on_node_configured
# wait_s: REGISTER_WAIT_S
# time_limit_s: 600
# slurmd as a dynamic node under the instance id, behind the health gate.

# slurmd_conf: what the node tells slurmctld about itself.
slurmd_conf() {
    local features=$POOL,$INSTANCE_TYPE,${INSTANCE_TYPE%%.*},$MARKET
    [[ $LABELS == - ]] || features+=",$LABELS"
    cpus || return
    printf ' RealMemory=%s Feature=%s Weight=%s' "$MEMORY_MIB" "$features" "$WEIGHT"
    [[ -z $TOLD_GRES ]] || printf ' Gres=%s' "$TOLD_GRES"
    [[ -z ${PLACE:-} ]] || ! knows_topology || printf ' Topology=%s' "$PLACE"
    # A member of a gang: it takes no job before all are there and one undrain opens them.
    [[ $GATE != drain ]] || printf ' State=DRAIN'
}

# An earlier slurmd ends at the word Topology.
knows_topology() {
    local version
    version=$(slurmd -V) || return
    printf '%s\n' 25.05 "${version##* }" | sort -CV
}

# cpus: told by their number alone, Slurm gives away each thread by itself, as the planner counts them.
# 23.11.0 to 23.11.6 then leave one thread of each core to jobs (CHANGELOG of 23.11.7), so there the
# node tells its sockets, cores and threads, and whole cores are given away.
cpus() {
    local version found
    version=$(slurmd -V) || return
    if [[ ${version##* } != 23.11.[0-6] ]]; then
        printf 'CPUs=%s' "$CPUS"
        return
    fi
    found=$(slurmd -C | grep -oE '(CPUs|Boards|SocketsPerBoard|CoresPerSocket|ThreadsPerCore)=[0-9]+' | paste -sd' ')
    if [[ "$found " != "CPUs=$CPUS "* ]]; then
        echo "this machine has ${found%% *}, $INSTANCE_TYPE has $CPUS" >&2
        return "$WRONG_CONFIGURATION"
    fi
    printf '%s' "$found"
}

# The head says there which Slurm it runs.
readonly SLURM_OF_HEAD=$SHARED_DIR/.tidegate/slurm.version

# A slurmctld that does not understand this node's slurmd would be asked in vain until the node is given
# up, in words that name neither's release ("Protocol authentication error", "Zero Bytes were transmitted
# or received"). It hears slurmds of its own release and of the two before it, from 24.11 on of three, and
# none that is newer (slurm.schedmd.com/upgrades.html). Tried, not counted: what the head says of itself
# may be old, and only names the cause.
refuse_if_not_understood() {
    local own head pause_s
    own=$(slurmd -V) || return
    own=${own##* }
    head=$(timeout 5 cat "$SLURM_OF_HEAD" 2>/dev/null) || return 0
    [[ ${own%.*} != "${head%.*}" ]] || return 0
    # Once is no proof: one that is being started again hears, and does not answer either.
    for pause_s in 3 6 0; do
        hears_anybody && ! understands || return 0
        ((pause_s == 0)) || sleep "$pause_s"
    done
    refuse "slurmctld $head on the head does not understand slurmd $own of this image: no slurmd may be" \
        "newer than slurmctld, nor older than two releases (three from 24.11 on); give the pool an image" \
        "with Slurm ${head%.*}"
}

hears_anybody() {
    timeout 3 bash -c "exec 3<>/dev/tcp/${HEAD/://}" 2>/dev/null
}

# understands: or is too busy to say. Who does not understand hangs up at once.
understands() {
    local said code=0
    said=$(SLURM_CONF_SERVER=$HEAD timeout 20 scontrol ping 2>/dev/null) || code=$?
    [[ $said == *' is UP'* ]] || ((code == 124))
}

# What slurm.conf's Prolog and Epilog, /usr/*bin/true, find on a node of ours.
readonly HOOKS=/usr/tidegate-bin/true REBOOT=/usr/tidegate-bin/reboot ROTATION=/etc/logrotate.d/slurmd
readonly RESET=/etc/systemd/system/tidegate-gpu-reset.service

hooks() {
    cat <<'END_OF_HOOKS'
#!/bin/bash
# Tidegate's Prolog and Epilog: the scripts of a folder by their names, until one fails. slurm.conf
# says /usr/*bin/true, so that machines that are not Tidegate's run the true that does nothing.
case ${SLURM_SCRIPT_CONTEXT:-} in
    prolog_slurmd) folder=/etc/tidegate/prolog.d ;;
    epilog_slurmd) folder=/etc/tidegate/epilog.d ;;
    *) exit 0 ;;
esac
for script in "$folder"/*.sh; do
    [[ ! -x $script ]] || "$script" || exit
done
END_OF_HOOKS
}

# slurm.conf's RebootProgram, which slurmd runs as root, and waits for.
reboot_program() {
    cat <<'END_OF_PROGRAM'
#!/bin/sh
echo "tidegate Slurm asks for a reboot" >>/dev/console
systemctl --no-block start tidegate-gpu-reset || exec systemctl reboot
END_OF_PROGRAM
}

reset_unit() {
    cat <<EOF_UNIT
[Unit]
Description=Tidegate: reset the GPUs of this node, or reboot it
FailureAction=reboot
[Service]
Type=oneshot
TimeoutStartSec=500
TimeoutStopSec=10
ExecStart=/bin/bash $PWD/files/gpu-reset.sh
EOF_UNIT
}

write_slurmd_service() {
    local conf
    conf=$(slurmd_conf) || exit
    install -d -m 755 /etc/systemd/system/slurmd.service.d
    # The packaged unit starts only where there is a slurm.conf; a configless node has none. Jobs have
    # the limits of slurmd: EFA and NCCL register memory without bound, loaders have many files and
    # processes open. One number of files: slurmd takes all that it may.
    cat >/etc/systemd/system/slurmd.service.d/tidegate.conf <<EOF_UNIT
[Unit]
ConditionPathExists=
ConditionPathExists=$MAY_START
[Service]
Restart=on-failure
RestartSec=2
LimitMEMLOCK=infinity
LimitNOFILE=131072
LimitNPROC=infinity
LimitSTACK=infinity
TasksMax=infinity
EOF_UNIT
    printf "SLURMD_OPTIONS=\"-Z -N %s --conf-server %s --conf '%s'\"\n" \
        "$INSTANCE_ID" "$HEAD" "$conf" >/etc/default/slurmd
    install -d -m 755 /var/spool/slurmd /var/log/slurm "${ROTATION%/*}"
    rotation slurmd | put_file "$ROTATION" 644
    systemctl daemon-reload
}

check() {
    has_file "$HOOKS" hooks && has_file "$REBOOT" reboot_program && has_file "$RESET" reset_unit && systemctl is-active --quiet slurmd && is_registered
}

is_registered() {
    local state
    state=$(state) && [[ $state == *DYNAMIC_NORM* && $state != *INVALID_REG* && $state != *NOT_RESPONDING* &&
        $state != *REBOOT_ISSUED* ]]
}

# state: all of its words, as slurmctld shows them, like IDLE+DYNAMIC_NORM.
state() {
    timeout 10 scontrol -o show node "$INSTANCE_ID" 2>&1 | grep -oE ' State=[^ ]*'
}

# slurmctld knows the node and would never start a job on it: too little memory, a GPU fewer.
refuse_if_at_fault() {
    local shown
    [[ $(state) == *INVALID_REG* ]] || return 0
    shown=$(timeout 10 scontrol -o show node "$INSTANCE_ID")
    refuse "slurmctld finds fault with this node: ${shown#*Reason=}"
}

apply() {
    local deadline=$((SECONDS + REGISTER_WAIT_S))
    install -d "${HOOKS%/*}"
    hooks | put_file "$HOOKS" 755
    reboot_program | put_file "$REBOOT" 755
    reset_unit | put_file "$RESET" 644
    refuse_if_not_understood
    write_slurmd_service
    touch "$MAY_START"
    systemctl start slurmd
    until is_registered; do
        refuse_if_at_fault
        if ((SECONDS >= deadline)); then
            echo "slurmctld does not know this node after $REGISTER_WAIT_S s"
            tail -n 2 /var/log/slurm/slurmd.log
            return 1
        fi
        sleep 0.2
    done
}
