"""Run by test_caps.py: five jobs under an account that may hold two GPUs, on real parts.

Prints one JSON object: the GPUs that were bought, at most at once and in all, what the waiting
jobs were told, what Slurm itself said of them, and how many completed.
"""

import json
import shutil
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from local.demo.asks import SINGLES
from local.demo.cluster import CLUSTER_FILE
from local.demo.real_stage import RealStage
from local.namespaces import enter

NUM_JOBS = 5
PATIENCE_S = 150.0

# MariaDB and slurmdbd from Debian's packages, on the head alone; then one account with a cap.
ACCOUNTING = r"""
set -euo pipefail
install -d -o mysql -g mysql /run/mysqld /var/lib/accounting
mariadb-install-db --user=mysql --datadir=/var/lib/accounting --skip-test-db \
    --auth-root-authentication-method=socket >/dev/null 2>&1
setsid setpriv --reuid mysql --regid mysql --clear-groups mariadbd --no-defaults \
    --datadir=/var/lib/accounting --socket=/run/mysqld/mysqld.sock --skip-networking \
    --innodb-buffer-pool-size=64M >/var/log/mariadb.log 2>&1 </dev/null &
until mariadb -e 'select 1' >/dev/null 2>&1; do sleep 0.1; done
mariadb -e "create user slurm@localhost identified via unix_socket;
            grant all on *.* to slurm@localhost"
cat >/etc/slurm/slurmdbd.conf <<'CONF'
AuthType=auth/munge
DbdHost=head
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=accounting
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurmdbd.pid
CONF
chown slurm:slurm /etc/slurm/slurmdbd.conf
chmod 600 /etc/slurm/slurmdbd.conf
cat >>/etc/slurm/slurm.conf <<'CONF'
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=head
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=associations,limits,qos
CONF
slurmdbd </dev/null >/dev/null 2>&1
until sacctmgr -n -i list cluster >/dev/null 2>&1; do sleep 0.1; done
sacctmgr -i add cluster demo >/dev/null
systemctl restart slurmctld
until [[ $(scontrol ping) == *'is UP'* ]]; do sleep 0.1; done
until sacctmgr -i add account lab GrpTRES=gres/gpu=2 >/dev/null 2>&1; do sleep 0.2; done
sacctmgr -i add user ada account=lab >/dev/null
"""


def copied(folder: Path) -> Path:
    """The demo's cluster file without its evening."""
    return Path(shutil.copy(CLUSTER_FILE, folder))


def main() -> None:
    enter()
    with TemporaryDirectory() as folder, RealStage(copied(Path(folder))) as stage:
        made = stage.head.run(["bash", "-c", ACCOUNTING])
        if made.returncode:
            sys.exit(f"accounting did not start: {made.stdout}{made.stderr}")
        job_ids = [stage.submit(SINGLES[0]) for _ in range(NUM_JOBS)]
        most_gpus, bought, told, said = 0, set[str](), set[str](), set[str]()
        until_s = time.time() + PATIENCE_S
        while time.time() < until_s:
            stage.wait(0.2)
            most_gpus = max(most_gpus, len(stage.seen.instances))
            bought |= {instance_id for instance_id, *_ in stage.seen.instances}
            told |= set(stage.seen.unmet.values())
            if not stage.seen.reading.nodes:
                said |= {job.reason for job in stage.seen.reading.jobs if job.is_pending}
            completed = sum(stage.completed(job_id) for job_id in job_ids)
            if completed == NUM_JOBS:
                break
        json.dump(
            {
                "most_gpus": most_gpus,
                "bought_gpus": len(bought),
                "told": sorted(told),
                "slurm_said": sorted(said),
                "completed": completed,
            },
            sys.stdout,
        )


if __name__ == "__main__":
    main()
