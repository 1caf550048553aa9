#!/bin/bash
# Accounting for a bench's slurmctld, run in its namespaces:  slurm_accounting.sh DIR QOS...
# MariaDB, slurmdbd and the QOS that partitions name; then slurmctld anew, as it stands in slurm.conf.
# COUNTED: what it accounts of.
set -euo pipefail
dir=$1 tables=/run/tables
shift
# shellcheck source=../../userdata/head/cluster_id.sh
source "$dir/cluster_id.sh"
export TMPDIR=$tables
install -d -o mysql -g mysql /run/mysqld "$tables"
# Where newer clients of MariaDB look for its socket.
ln -sfn /run/mysqld /run/mariadbd
mariadb-install-db --user=mysql --datadir="$tables" --skip-test-db \
    --auth-root-authentication-method=socket >/dev/null 2>&1
setsid setpriv --reuid mysql --regid mysql --clear-groups mariadbd --no-defaults \
    --datadir="$tables" --socket=/run/mysqld/mysqld.sock --skip-networking \
    --innodb-buffer-pool-size=64M >"$dir/log/mariadb.log" 2>&1 </dev/null &
until mariadb --socket=/run/mysqld/mysqld.sock -e 'select 1' >/dev/null 2>&1; do sleep 0.1; done
cat >/etc/slurm/slurmdbd.conf <<CONF
AuthType=auth/munge
DbdHost=head
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=accounting
LogFile=$dir/log/slurmdbd.log
PidFile=/run/slurmdbd.pid
CONF
chmod 600 /etc/slurm/slurmdbd.conf
slurmdbd </dev/null >/dev/null 2>&1
# What the head's own slurm.conf says when accounting is asked for.
cat >>/etc/slurm/slurm.conf <<CONF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=head
AccountingStorageTRES=${COUNTED:-gres/gpu}
AccountingStorageEnforce=associations,limits,qos
PriorityType=priority/multifactor
PriorityWeightFairshare=100000
PriorityWeightQOS=10000
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
CONF
until sacctmgr -n list cluster >/dev/null 2>&1; do sleep 0.1; done
sacctmgr -i add cluster bench >/dev/null
for each in "$@"; do sacctmgr -i add qos "$each" >/dev/null; done
pid=$(cat /run/slurmctld.pid)
kill "$pid"
# The first process of these namespaces collects no child: what ended stays as a zombie.
while grep -q '^State:.[^Z]' "/proc/$pid/status" 2>/dev/null; do sleep 0.05; done
rm -f /run/slurmctld.pid
forget_other_id "$dir/state" bench || true
slurmctld </dev/null >/dev/null 2>&1
for _ in $(seq 200); do
    [[ $(scontrol ping) != *UP* ]] || exit 0
    sleep 0.1
done
tail -n 6 "$dir"/log/slurmctld.log
echo "slurmctld did not come back"
exit 1
