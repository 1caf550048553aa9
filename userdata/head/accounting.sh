# shellcheck shell=bash
# needs: database munge
# only_with: ACCOUNTING
# wait_s: 60
# time_limit_s: 300
# slurmdbd, when the cluster file asks for accounting, on the database of the head. Before slurmctld,
# which would have to remember what it cannot tell yet.

# shellcheck source=/dev/null
source files/qos.sh
# shellcheck source=/dev/null
source files/cluster_id.sh
# shellcheck source=/dev/null
source files/await.sh

readonly DBD_CONF=/etc/slurm/slurmdbd.conf ROTATION=/etc/logrotate.d/slurmdbd

dbd_conf() {
    cat <<EOF_CONF
AuthType=auth/munge
DbdHost=$HEAD_NAME
SlurmUser=slurm
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
EOF_CONF
}

check() {
    has_file "$DBD_CONF" dbd_conf && has_file "$ROTATION" rotation slurmdbd &&
        systemctl is-active --quiet slurmdbd && knows_cluster && [[ -z $(missing_qos) ]]
}

apply() {
    install -d -m 755 /etc/slurm
    install -d -o slurm -g slurm -m 755 /var/log/slurm
    install -d -m 755 "${ROTATION%/*}"
    rotation slurmdbd | put_file "$ROTATION" 644
    # slurmdbd takes a file of its own user alone.
    dbd_conf >"$RUN_DIR/slurmdbd.conf"
    install -o slurm -g slurm -m 600 "$RUN_DIR/slurmdbd.conf" "$DBD_CONF"
    # Ours to start, behind the data volume.
    systemctl disable slurmdbd
    systemctl restart slurmdbd
    await "slurmdbd does not answer" timeout 5 sacctmgr -n list cluster
    knows_cluster || sacctmgr -i add cluster "$CLUSTER"
    make_qos
    # One that runs already would end as it hears of the other number.
    ! forget_other_id "$STATE_DIR" "$CLUSTER" || systemctl try-restart slurmctld
}
