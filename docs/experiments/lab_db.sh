# shellcheck shell=bash
# shellcheck disable=SC2034  # used by the experiments
# MariaDB and slurmdbd on the head, reachable by a socket and port of the head's namespace only. Sourced after lab.sh.

readonly ACCOUNTING_CONF='
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=head
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu,gres/gpu:a10g
PriorityType=priority/multifactor'

# MariaDB needs an anonymous datadir: the overlay of the head is a tmpfs already.
database_up() {
    on head install -d -o mysql -g mysql /run/mysqld /var/lib/labdb
    on head mariadb-install-db --user=mysql --datadir=/var/lib/labdb --skip-test-db --auth-root-authentication-method=socket >/dev/null 2>&1
    on head setsid setpriv --reuid mysql --regid mysql --clear-groups mariadbd --no-defaults --datadir=/var/lib/labdb \
        --socket=/run/mysqld/mysqld.sock --pid-file=/run/mysqld/mysqld.pid --skip-networking \
        --innodb-buffer-pool-size=64M >"$WORKDIR/mariadb.log" 2>&1 &
    disown
    wait_for 30 on head mariadb -e 'select 1'
    on head mariadb -e "create user slurm@localhost identified via unix_socket; grant all on *.* to slurm@localhost"
}

slurmdbd_up() {
    put head /etc/slurm/slurmdbd.conf 600 <<CONF
AuthType=auth/munge
DbdHost=head
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurmdbd.pid
CONF
    on head chown slurm:slurm /etc/slurm/slurmdbd.conf
    on head slurmdbd
    wait_for 30 on head sacctmgr -n -i list cluster
    on head sacctmgr -i add cluster lab >/dev/null
}

accounting_up() {
    database_up
    slurmdbd_up
}
