"""What Open OnDemand asks Slurm, on a slurmctld whose nodes come and go.

The command lines and how their answers are read are those of its adapter (ood_core 0.31,
`job/adapters/slurm.rb`), which docs/jupyterhub.md names as tried.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own

RECIPE = Path(__file__).parents[2] / "docs" / "recipes" / "ondemand" / "cluster.yml"
UNIT = "\x1f"
# All that it asks squeue for, in its order.
FIELDS = (
    *("Account", "JobID", "BatchHost", "MinCpus", "NumCPUs", "MinTmpDisk", "NumNodes", "EndTime"),
    *("Dependency", "Feature", "ArrayJobID", "GroupName", "GroupID", "OverSubscribe", "Sockets"),
    *("JobArrayID", "Cores", "Name", "Threads", "Comment", "ArrayTaskID", "TimeLimit", "TimeLeft"),
    *("MinMemory", "TimeUsed", "ReqNodes", "NodeList", "Command", "Contiguous", "QOS", "Partition"),
    *("PriorityLong", "Reason", "StartTime", "StateCompact", "State", "UserName", "UserID"),
    *("Reservation", "SubmitTime", "WCKey", "Licenses", "ExcNodes", "CoreSpec", "Nice"),
    *("SchedNodes", "SCT", "WorkDir", "tres-alloc", "tres-per-node"),
)
NODES = ("i-0000000000000000a", "i-0000000000000000b")


@pytest.fixture(scope="module")
def slurm() -> Iterator[RealSlurm]:
    with slurm_of_its_own("SchedulerParameters=bf_interval=1") as made:
        yield made


def jobs(slurm: RealSlurm, *of: str) -> list[dict[str, str]]:
    asked = "".join(f"{name}:{UNIT}," for name in FIELDS)
    said = slurm.run("squeue", "--all", "--states=all", "--noconvert", "-O", asked, *of)
    header, _, rest = said.partition(f"{UNIT}\n")
    assert header.startswith("ACCOUNT")
    # Each ends with the separator, of which the last is cut off as white space.
    lines = [line.removesuffix(UNIT).split(UNIT) for line in rest.splitlines()]
    assert all(len(words) == len(FIELDS) for words in lines), lines
    return [dict(zip(FIELDS, words, strict=True)) for words in lines]


def job(slurm: RealSlurm, job_id: str) -> dict[str, str]:
    return jobs(slurm, "-j", job_id)[0]


def submitted(slurm: RealSlurm, *more: str) -> str:
    words = ["-J", "sys/dashboard/app", "-o", "/dev/null", "-p", "gpu", "-t", "01:00:00", *more]
    script = "#!/bin/bash\nsleep 300\n"
    done = subprocess.run(
        [*slurm.prefix, "sbatch", *words, "--export", "NONE", "--parsable"],
        input=script,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip().split(";")[0]


def counts(slurm: RealSlurm) -> tuple[str, list[str]]:
    """Nodes and CPUs, and the lines that it counts GPUs by."""
    lines = slurm.run("sinfo", "-ahNO", "nodehost:100,gres:512,gresused:512,statelong")
    usable = {each for each in lines.splitlines() if not re.search("maint|drain|down", each, re.I)}
    return slurm.run("sinfo", "-aho", "%F/%C"), sorted(usable)


def unreadable(partitions: str) -> list[str]:
    """Words of partitions at which it would give up."""
    return [word for word in partitions.split() if not re.fullmatch(r"\w+=.+", word)]


def test_a_job_without_a_node_is_queued_and_runs_as_one_comes(slurm: RealSlurm) -> None:
    job_id = submitted(slurm, "--gpus-per-node", "4")
    waits = job(slurm, job_id)
    assert (waits["StateCompact"], waits["NodeList"], waits["NumNodes"]) == ("PD", "", "1")
    assert waits["Name"] == "sys/dashboard/app"
    assert waits["tres-per-node"].endswith("gpu:4")
    # Places for nodes that are not there are no nodes.
    assert counts(slurm) == ("", [])

    slurm.join(*NODES)
    slurm.port.poke(NODES)
    eventually("it runs", lambda: job(slurm, job_id)["StateCompact"] == "R")

    runs = job(slurm, job_id)
    assert runs["NodeList"] == runs["BatchHost"]
    assert runs["NodeList"] in NODES
    numbers, usable = counts(slurm)
    assert numbers.split("/")[:4] == ["1", "1", "0", "2"]
    assert [line.split()[1] for line in usable] == ["gpu:t4:4"] * 2
    busy = next(line for line in usable if line.startswith(runs["NodeList"]))
    assert re.search(r"gpu[s:]*[\w()-]*[=:]?(\d+)(?:[(,]|$)", busy.split()[2])[1] == "4"  # type: ignore[index]


def test_a_node_that_leaves_is_not_counted_and_a_requeued_job_waits(slurm: RealSlurm) -> None:
    (runs,) = [each for each in jobs(slurm, "-u", "root") if each["StateCompact"] == "R"]
    idle = next(name for name in NODES if name != runs["NodeList"])
    slurm.port.drain([idle], "tidegate: empty: idle")

    assert [line.split()[0] for line in counts(slurm)[1]] == [runs["NodeList"]]
    slurm.run("scontrol", "requeue", runs["JobID"])
    eventually("it waits again", lambda: job(slurm, runs["JobID"])["StateCompact"] == "PD")
    slurm.run("scancel", runs["JobID"])
    eventually("it is over", lambda: job(slurm, runs["JobID"])["StateCompact"] == "CA")


def test_tasks_of_an_array_are_told_apart(slurm: RealSlurm) -> None:
    job_id = submitted(slurm, "-a", "0-2%1", "-H")
    found = jobs(slurm, "-j", job_id)
    assert {each["ArrayJobID"] for each in found} == {job_id}
    slurm.run("scontrol", "release", job_id)
    slurm.run("scancel", job_id)


def test_partitions_and_nodes_are_words_that_it_can_read(slurm: RealSlurm) -> None:
    assert unreadable(slurm.run("scontrol", "show", "part", "-o")) == []
    record = slurm.run("sinfo", "-ho", f"\x1e%c{UNIT}%n{UNIT}%f")
    names = {each.split(UNIT)[1] for each in record.split("\x1e") if each.strip()}
    assert names <= {*NODES}


def test_a_job_that_nobody_knows_any_more_is_over(slurm: RealSlurm) -> None:
    for command in (["squeue", "-j", "99999"], ["scontrol", "hold", "99999"]):
        done = subprocess.run(
            [*slurm.prefix, *command], capture_output=True, text=True, check=False
        )
        assert done.returncode != 0
        assert "Invalid job id specified" in done.stderr


def test_the_recipe_asks_no_accounting_and_another_machine_for_nothing() -> None:
    found = yaml.safe_load(RECIPE.read_text())["v2"]
    assert found["job"] == {"adapter": "slurm", "bin": "/usr/bin", "conf": "/etc/slurm/slurm.conf"}
