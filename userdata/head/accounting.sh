# shellcheck shell=bash
# needs: data_volume packages munge
# wait_s: 60
# time_limit_s: 300
# Accounting, when the cluster file asks for it: MariaDB and slurmdbd on the head, the tables on
# the data volume, so that a new head has them. Nothing secret is needed: the database listens on
# its socket alone, and knows slurmdbd's user by the kernel's word (unix_socket). Before slurmctld,
# which would have to remember what it cannot tell yet.

# shellcheck source=/dev/null
source files/qos.sh
# shellcheck source=/dev/null
source files/cluster_id.sh

readonly TABLES=$DATA_DIR/mysql
readonly DATABASE_UNIT=/etc/systemd/system/tidegate-mariadb.service
readonly DBD_CONF=/etc/slurm/slurmdbd.conf ROTATION=/etc/logrotate.d/slurmdbd

database_unit() {
    cat <<EOF_UNIT
[Unit]
Description=Tidegate: the database of Slurm's accounting
[Service]
User=mysql
RuntimeDirectory=mysqld
ExecStart=$(command -v mariadbd) --datadir=$TABLES --socket=/run/mysqld/mysqld.sock --skip-networking --innodb-buffer-pool-size=256M --innodb-log-file-size=64M --innodb-lock-wait-timeout=900
Restart=always
RestartSec=5
TimeoutStopSec=900
LimitNOFILE=32768
EOF_UNIT
}

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
    [[ -z $ACCOUNTING ]] || {
        has_file "$DATABASE_UNIT" "$(database_unit)" && has_file "$DBD_CONF" "$(dbd_conf)" &&
            has_file "$ROTATION" "$(rotation slurmdbd)" &&
            systemctl is-active --quiet tidegate-mariadb slurmdbd && knows_cluster &&
            [[ -z $(missing_qos) ]]
    }
}

knows_cluster() {
    [[ " $(timeout 10 sacctmgr -nP list cluster format=cluster 2>/dev/null | tr '\n' ' ')" == \
        *" $CLUSTER "* ]]
}

apply() {
    start_database
    mariadb --user=root <<'EOF_SQL'
CREATE DATABASE IF NOT EXISTS slurm_acct_db;
CREATE USER IF NOT EXISTS slurm@localhost IDENTIFIED VIA unix_socket;
GRANT ALL ON slurm_acct_db.* TO slurm@localhost;
EOF_SQL
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

# The packaged unit has its tables on the root disk, and would take the socket.
start_database() {
    systemctl mask mariadb.service
    # Whole or not at all: a head that ends meanwhile leaves nothing that looks like tables.
    if [[ ! -d $TABLES ]]; then
        rm -rf "$TABLES.new"
        install -d -o mysql -g mysql -m 700 "$TABLES.new"
        mariadb-install-db --user=mysql --datadir="$TABLES.new" --skip-test-db \
            --auth-root-authentication-method=socket
        mv "$TABLES.new" "$TABLES"
    fi
    # Packages give mysql a number of its own on each machine: the tables of the head before have
    # another's. The folder itself changes last.
    [[ $(stat -c %U "$TABLES") == mysql ]] || chown -R mysql:mysql "$TABLES"
    database_unit | put_file "$DATABASE_UNIT" 644
    systemctl daemon-reload
    systemctl start tidegate-mariadb
    await "the database does not answer" mariadb-admin --silent ping
}

# await WORDS COMMAND...: half a minute.
await() {
    local words=$1 try
    shift
    for ((try = 0; try < 150; try++)); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.2
    done
    echo "$words"
    return 1
}
