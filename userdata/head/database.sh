# shellcheck shell=bash
# needs: data_volume packages shared
# only_with: ACCOUNTING
# wait_s: 60
# time_limit_s: 3600
# The database of accounting, when the cluster file asks for it: MariaDB on the head, its tables on
# the data volume, so that a new head has them. Nothing secret is needed: it listens on its socket
# alone, and knows slurmdbd's user by the kernel's word (unix_socket).
#
# Each hour all of it is dumped into the shared folder, from where a head whose volume is blank takes it.
# That may take long: slurmctld waits, since what it told an empty database would have to go again.

# shellcheck source=/dev/null
source files/await.sh

readonly TABLES=$DATA_DIR/mysql
# Stands from before there are tables until all is in them that there was.
readonly NOT_LOADED=$DATA_DIR/.tidegate-accounting-not-loaded
readonly PROGRAM=/usr/local/sbin/tidegate-accounting DUMP_EVERY_S=3600
readonly DATABASE_UNIT=/etc/systemd/system/tidegate-mariadb.service
readonly DUMP_UNIT=/etc/systemd/system/tidegate-accounting-dump.service

# Without snapshot isolation, which MariaDB has on from 11.6.2 on: slurmdbd ends, or loses what it wrote, when
# two of its transactions meet. Source: Slurm's Accounting page. `loose`: older servers do not know it.
database_unit() {
    cat <<EOF_UNIT
[Unit]
Description=Tidegate: the database of Slurm's accounting
[Service]
User=mysql
RuntimeDirectory=mysqld
ExecStart=$(command -v mariadbd) --datadir=$TABLES --socket=/run/mysqld/mysqld.sock --skip-networking --innodb-buffer-pool-size=256M --innodb-log-file-size=64M --innodb-lock-wait-timeout=900 --loose-innodb-snapshot-isolation=OFF
Restart=always
RestartSec=5
TimeoutStopSec=900
LimitNOFILE=32768
EOF_UNIT
}

dump_unit() {
    cat <<EOF_UNIT
[Unit]
Description=Tidegate: a dump of accounting, each hour
[Service]
Nice=19
IOSchedulingClass=idle
ExecStart=/bin/sh -c 'while sleep $DUMP_EVERY_S; do $PROGRAM dump; done'
Restart=always
RestartSec=30
EOF_UNIT
}

check() {
    has_file "$DATABASE_UNIT" database_unit && has_file "$DUMP_UNIT" dump_unit &&
        cmp -s files/tidegate-accounting.sh "$PROGRAM" && [[ ! -e $NOT_LOADED ]] &&
        systemctl is-active --quiet tidegate-mariadb tidegate-accounting-dump
}

apply() {
    start_database
    put_file "$PROGRAM" 755 <files/tidegate-accounting.sh
    if [[ -e $NOT_LOADED ]]; then
        "$PROGRAM" load
        rm "$NOT_LOADED"
    fi
    mariadb --user=root <<'EOF_SQL'
CREATE DATABASE IF NOT EXISTS slurm_acct_db;
CREATE USER IF NOT EXISTS slurm@localhost IDENTIFIED VIA unix_socket;
GRANT ALL ON slurm_acct_db.* TO slurm@localhost;
EOF_SQL
    dump_unit | put_file "$DUMP_UNIT" 644
    systemctl daemon-reload
    systemctl restart tidegate-accounting-dump
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
        touch "$NOT_LOADED"
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
