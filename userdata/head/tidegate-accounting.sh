#!/bin/bash
# What accounting holds, as one file in the shared folder; for root on the head.
#
#   tidegate-accounting dump     writes it; the unit tidegate-accounting-dump does, each hour
#   tidegate-accounting load     from there into the database, in place of what is in it
#
# All of it is of one moment, while slurmdbd goes on writing: its tables are InnoDB's, and the dump is
# one transaction. Source: Slurm, src/database/mysql_common.c (ENGINE='innodb'); MariaDB's manual,
# mariadb-dump, --single-transaction. A change of tables meanwhile fails the dump, and the one before
# stays.
set -euo pipefail
umask 077

# shellcheck source=/dev/null
source /etc/tidegate/boot.env

readonly DATABASE=slurm_acct_db
readonly FOLDER=$SHARED_DIR/.tidegate/accounting
readonly DUMP=$FOLDER/$DATABASE.sql.gz
readonly DUMPED=/etc/tidegate/accounting-dumped

say() {
    echo "$*"
    echo "tidegate accounting: $*" >>/dev/console
}

fail() {
    say "$*"
    exit 1
}

dump() {
    install -d -m 700 "$FOLDER"
    # Only one that was loaded, or begun here, takes the place of what there is.
    mariadb -e "SELECT 1 FROM $DATABASE.cluster_table LIMIT 1" >/dev/null ||
        fail "not dumped, since the database holds no accounting yet; what is in $DUMP stays"
    if ! { mariadb-dump --single-transaction "$DATABASE" | gzip -c >"$DUMP.new"; }; then
        rm -f "$DUMP.new"
        fail "not dumped: see journalctl -u tidegate-accounting-dump; what is in $DUMP stays"
    fi
    sync "$DUMP.new"
    # What the head before this one left stays: this one may have been given an older volume.
    if [[ ! -e $DUMPED && -e $DUMP ]]; then
        ln -f "$DUMP" "$DUMP.before"
    fi
    mv "$DUMP.new" "$DUMP"
    touch "$DUMPED"
    say "dumped, $(stat -c %s "$DUMP") bytes"
}

# A dump can hold commands of the client, and so be more than data: it must be root's.
is_ours() {
    [[ -n $(find "$FOLDER" -maxdepth 0 -type d -user root ! -perm /077) &&
        -n $(find "$DUMP" -maxdepth 0 -type f -user root ! -perm /077) ]]
}

load() {
    [[ -e $DUMP ]] || return 0
    is_ours || fail "not loaded, since others than root may write to $DUMP: see who did, then chmod it"
    mariadb -e "DROP DATABASE IF EXISTS $DATABASE; CREATE DATABASE $DATABASE"
    gzip -cd "$DUMP" | mariadb "$DATABASE" ||
        fail "$DUMP cannot be loaded: put one from a backup in its place, or take it away"
    say "loaded from the dump of $(date -ur "$DUMP" +%FT%TZ)"
}

case ${1:-} in
    dump | load) "$1" ;;
    *)
        echo "usage: tidegate-accounting dump | load" >&2
        exit 2
        ;;
esac
