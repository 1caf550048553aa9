"""A head's accounting, dumped while it is written to, on a head that has got a blank volume.

A program of its own, since pytest stays outside the namespaces: prints what happened as JSON.
"""

import json
import shlex
import time
from dataclasses import replace
from typing import Any

from local import namespaces
from local.boot.cloud import AWS_PORT, start_cloud
from local.hypervisor import Hypervisor
from local.machine import Machine
from local.waiting import wait_for
from local.world import World, WorldSettings
from tests.boot.head_world import DATA, Stage, attach, booted, launch, run
from tests.worlds import ROOT

PROGRAM = "/usr/local/sbin/tidegate-accounting"
DUMP = "/shared/.tidegate/accounting/slurm_acct_db.sql.gz"
DATABASE = "slurm_acct_db"
# Two tables that a writer changes in one transaction, and enough between them that a dump which
# takes one after the other takes them apart. mariadb-dump goes by name.
FIRST, MIDDLE, LAST = "aaa_first", "mmm_middle", "zzz_last"
TABLES = "".join(
    f"create table {name} (n int auto_increment primary key, text varchar(200)) engine=innodb;"
    for name in (FIRST, MIDDLE, LAST)
)
FILL = f"insert into {MIDDLE} (text) select repeat('x', 200) from seq_1_to_60000"
WRITE = f"begin; insert into {FIRST} () values (); insert into {LAST} () values (); commit;"
ENGINES = f"select distinct engine from information_schema.tables where table_schema='{DATABASE}'"
# With those whose number a later job has: they begin anew where the queue is lost.
RECORDS = "sacct -nPaXD -S 2020-01-01 -o JobID,JobName,User,Account,State,Submit,End"
PEOPLE = "sacctmgr -nP show assoc tree format=account,user,qos; sacctmgr -nP list qos format=name"


def sql(head: Machine, text: str) -> str:
    return run(head, f"mariadb -BN {DATABASE} -e {shlex.quote(text)}")


def counts(head: Machine) -> list[int]:
    return [int(sql(head, f"select count(*) from {name}")) for name in (FIRST, LAST)]


def new_head(stage: Stage) -> Machine:
    """With a volume that nothing is on."""
    volume = stage.cloud.ec2.create_volume(AvailabilityZone="us-east-1a", Size=1)
    values = stage.values(str(volume["VolumeId"]))
    head_id = launch(stage, replace(values, slurm=replace(values.slurm, accounting=True)))
    attach(stage, head_id, str(volume["VolumeId"]))
    return booted(stage, head_id)


def end_jobs(head: Machine, count: int) -> None:
    """Jobs that accounting knows as ended: they were cancelled."""
    before = len(records(head))
    asked = "sbatch -Q --gres=gpu:a10g:4 --wrap=true"
    run(head, f"for n in $(seq {count}); do {asked} --job-name=job$n; done")
    run(head, "scancel -u root")
    assert wait_for(lambda: len(records(head)) - before == count and all_ended(head))


def taking_the_dump() -> list[str]:
    """What docs/recovery.md tells a person to type."""
    lines = [each.strip() for each in (ROOT / "docs" / "recovery.md").read_text().splitlines()]
    begin = lines.index("systemctl stop slurmctld slurmdbd")
    block = lines[begin : lines.index("", begin)]
    return [each.replace("SHARED_DIR", "/shared") for each in block]


def all_ended(head: Machine) -> bool:
    return all("|CANCELLED" in each for each in records(head))


def records(head: Machine) -> list[str]:
    return run(head, RECORDS).splitlines()


def dumped_while_written(head: Machine) -> dict[str, Any]:
    sql(head, TABLES + FILL)
    writer = f"while echo {shlex.quote(WRITE)}; do :; done | mariadb {DATABASE}"
    run(head, f"({writer}) >/dev/null 2>&1 </dev/null & echo $! >/run/writer")
    assert wait_for(lambda: counts(head)[0] > 0)
    begun, begun_s = counts(head)[0], time.monotonic()
    said = run(head, f"{PROGRAM} dump")
    took_s, ended = time.monotonic() - begun_s, counts(head)[0]
    run(head, "pkill -P $(cat /run/writer); kill $(cat /run/writer); true")
    return {
        "said": said,
        "took_s": took_s,
        "written_meanwhile": ended - begun,
        "mode": run(head, f"stat -c '%U %a' {DUMP} /shared/.tidegate/accounting"),
    }


def scenario() -> dict[str, Any]:
    cloud = start_cloud()
    with World(WorldSettings(AWS_PORT)) as world:
        stage = Stage(cloud, world, Hypervisor(cloud.ec2, world))
        stage.hypervisor.start()
        head = new_head(stage)
        run(head, "sacctmgr -i add account lab; sacctmgr -i add user root account=lab")
        end_jobs(head, 20)
        seen: dict[str, Any] = {
            "engines": sql(head, ENGINES),
            "before": [records(head), run(head, PEOPLE)],
            "dump": dumped_while_written(head),
        }
        end_jobs(head, 1)
        seen["later"] = records(head)
        cloud.ec2.terminate_instances(InstanceIds=[head.spec.instance_id])
        wait_for(lambda: stage.hypervisor.machine(head.spec.instance_id) is None)
        started_s = time.monotonic()
        head = new_head(stage)
        seen["took_s"] = time.monotonic() - started_s
        seen["after"] = [records(head), run(head, PEOPLE)]
        seen["counts"] = counts(head)
        seen["left"] = run(head, f"ls -A {DATA}")
        end_jobs(head, 1)
        seen["goes_on"] = records(head)
        run(head, f"{PROGRAM} dump")
        seen["kept"] = run(head, f"ls {DUMP}*")
        for line in taking_the_dump():
            run(head, line)
        seen["by_the_page"] = records(head)
        stage.hypervisor.stop()
    return seen


if __name__ == "__main__":
    namespaces.enter()
    print(json.dumps(scenario()))
