"""Partitions of the cluster file on a real slurmctld with accounting: how it reads them, whom it
lets in, and that the planner, given Slurm's own reading, thinks the same.
"""

import re
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from tests.contracts.test_open_ondemand import unreadable
from tests.make import T4_BIG, pool
from tests.make import cluster as cluster_of
from tests.wire.test_partitions import ALL
from tidegate.adapters.slurm_accounting import SlurmAccounting
from tidegate.core.demand.demand import demand
from tidegate.core.demand.partitions import WITHOUT_SUBACCOUNTS
from tidegate.core.model.cluster import Partition
from tidegate.core.offers.allocation import Run
from tidegate.wire.partition_model import PartitionModel
from userdata.render import SlurmPartition

SCRIPT = Path(__file__).with_name("slurm_accounting.sh")
CLUSTER_ID = Path(__file__).parents[2] / "userdata" / "head" / "cluster_id.sh"
PAGE = Path(__file__).parents[2] / "docs" / "partitions.md"
OPTIONS: dict[str, dict[str, object]] = {
    "all": {**ALL, "allow_groups": ["root"], "state": "up", "req_resv": False, "hidden": False},
    "short": {"max_time_s": 3600, "default_time_s": 1800},
    "narrow": {"max_nodes": 2},
    "wide": {"min_nodes": 3},
    "small": {"max_mem_per_node_mib": 8000},
    "lab": {"allow_accounts": ["vision"], "qos": "lab"},
    "others": {"deny_accounts": ["vision"]},
    "golden": {"allow_qos": ["gold"]},
    "base": {"deny_qos": ["gold"]},
    "down": {"state": "down"},
    "urgent": {"priority_tier": 10},
    "per_gpu": {"def_cpu_per_gpu": 3, "def_mem_per_gpu_mib": 1234},
}
MODELS = {
    name: PartitionModel.model_validate({"pools": ["t4"], **options})
    for name, options in OPTIONS.items()
}


def lines() -> list[str]:
    made = {
        name: SlurmPartition(name, ("t4",), settings=model.settings())
        for name, model in MODELS.items()
    }
    return [f"PartitionName={name} Nodes=gpuset {made[name].line}" for name in made]


def recipe() -> str:
    """The commands that the page tells an administrator to run."""
    found = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(found) == 1
    return str(found[0])


@pytest.fixture(scope="module")
def slurm() -> Iterator[RealSlurm]:
    if not shutil.which("slurmdbd", path="/usr/sbin") or not shutil.which(
        "mariadbd", path="/usr/sbin"
    ):
        pytest.skip("real path: needs slurmdbd and mariadbd")
    with slurm_of_its_own() as made:
        script = shutil.copy(SCRIPT, made.folder)
        shutil.copy(CLUSTER_ID, made.folder)
        with (made.folder / "partitions").open("w") as file:
            file.write("".join(f"{line}\n" for line in lines()))
        made.run("sh", "-c", f"cat {made.folder}/partitions >> /etc/slurm/slurm.conf")
        qos = sorted({each for model in MODELS.values() for each in model.all_qos})
        made.run("chmod", "755", str(made.folder))
        made.run("bash", str(script), str(made.folder), *qos)
        made.run("bash", "-ec", recipe().replace("add qos gold\n", "list qos gold\n"))
        for account in ("vision", "speech"):
            made.run(
                "sacctmgr", "-i", "add", "user", "root", f"account={account}", "qos=normal,gold,lab"
            )
        yield made


def test_slurm_reads_every_option_as_it_was_meant(slurm: RealSlurm) -> None:
    text = slurm.run("scontrol", "show", "partition", "all", "-o").replace(" QoS=", " QOS=")
    shown = dict(pair.split("=", 1) for pair in text.split() if "=" in pair)
    asked = dict(MODELS["all"].settings())
    times = {"MaxTime": "2-00:00:00", "DefaultTime": "01:00:00", "OverTimeLimit": "5"}
    defaults = shown.pop("JobDefaults")

    for key in ("DefCpuPerGPU", "DefMemPerGPU"):
        assert f"{key}={asked.pop(key)}" in defaults
    assert {key: shown[key] for key in asked} == asked | times


CASES = [
    (("-p", "short", "-t", "90"), "max_time_s"),
    (("-p", "short", "-t", "60"), ""),
    (("-p", "short"), ""),
    (("-p", "short,urgent", "-t", "90"), ""),
    (("-p", "urgent,short", "-t", "90"), ""),
    (("-p", "short,narrow", "-t", "90", "-N3"), "max_time_s"),
    (("-p", "narrow", "-N3"), "max_nodes"),
    (("-p", "wide", "-N2"), "min_nodes"),
    (("-p", "wide"), ""),
    (("-p", "small", "--mem=9000"), "max_mem_per_node_mib"),
    (("-p", "small", "--mem=7000"), ""),
    (("-p", "lab"), ""),
    (("-p", "lab", "-A", "speech"), "allow_accounts"),
    (("-p", "others"), "deny_accounts"),
    (("-p", "others", "-A", "speech"), ""),
    (("-p", "golden"), "allow_qos"),
    (("-p", "golden", "--qos=gold"), ""),
    (("-p", "base", "--qos=gold"), "deny_qos"),
    (("-p", "down"), "state"),
]


def test_the_planner_buys_for_those_that_slurm_starts_and_for_no_others(slurm: RealSlurm) -> None:
    """At once after each is sent, after Slurm has looked at it, and what Slurm does with nodes."""
    jobs = {
        slurm.submit("-A", "vision", "--gres=gpu:t4:1", *asked): (asked, option)
        for asked, option in CASES
    }
    at_once = bought(slurm)
    eventually("Slurm looked", lambda: "PartitionTimeLimit" in reasons(slurm), 90.0)
    later = bought(slurm)
    names = [f"i-{number:017x}" for number in range(1, 7)]
    slurm.join(*names)
    slurm.port.poke(names)
    should = {job_id for job_id, (_, option) in jobs.items() if not option}
    eventually("they run", lambda: should <= running(slurm, poke=names))

    # From 23.11 on accounts below an allowed one are let in: whose that is Slurm alone knows.
    is_exact = slurm.port.read().version.startswith(WITHOUT_SUBACCOUNTS)
    for job_id, (asked, option) in jobs.items():
        if option != "allow_accounts" or is_exact:
            for said in (at_once[job_id], later[job_id]):
                assert option in said, (asked, said)
                assert bool(said) == bool(option), (asked, said)
    assert running(slurm) == should
    slurm.clear()


def test_the_commands_of_the_page_share_the_cluster_out(
    slurm: RealSlurm,
) -> None:
    shares = slurm.run("sshare", "-a", "-P", "-n", "-o", "account,user,rawshares")

    assert "vision||20" in shares.replace(" ", "")
    assert "speech||10" in shares.replace(" ", "")
    assert "ada" in shares
    assert slurm.run("scontrol", "show", "config").count("priority/multifactor") == 1


def test_defaults_by_gpu_are_what_the_planner_buys_for(slurm: RealSlurm) -> None:
    job_id = slurm.submit("-A", "vision", "-p", "per_gpu", "--gres=gpu:t4:2")
    shape = next(one.shape for one in slurm.port.read().jobs if one.job_id == job_id)
    slurm.join("i-00000000000000099")
    slurm.port.poke(["i-00000000000000099"])
    eventually("it runs", lambda: job_id in running(slurm))
    held = next(one.shape for one in slurm.port.read().jobs if one.job_id == job_id)
    slurm.clear()

    assert (shape.cpus, shape.memory_mib) == (6, 2468)
    assert (held.cpus, held.memory_mib) == (6, 2468)


def test_sacct_tells_each_run_with_its_nodes_and_what_it_held(slurm: RealSlurm) -> None:
    began_s = time.time()
    names = (f"i-{8:017x}", f"i-{9:017x}")
    slurm.join(*names)
    lab = ("-A", "vision", "-p", "lab", "--gres=gpu:t4:1", "--cpus-per-task=2", "--mem=1000")
    waits = slurm.submit(*lab, "-H")
    gang = slurm.submit(*lab, "--requeue", "-N2", "--job-name=a|b")
    eventually("it runs", lambda: gang in running(slurm, poke=names))
    slurm.pause(1.0)
    slurm.run("scontrol", "requeue", gang)
    alone = slurm.submit(*lab)
    eventually("the next one runs", lambda: alone in running(slurm, poke=names))
    told = SlurmAccounting(slurm)

    def runs() -> dict[str, Run]:
        return {run.job_id: run for run in told.accounted(began_s - 1, time.time()).runs}

    eventually("slurmdbd knows both", lambda: {gang, alone} <= runs().keys())
    found, now_s = runs(), time.time()
    slurm.clear()

    first, second = found[gang], found[alone]
    assert first.nodes == names
    assert (first.user, first.account, first.partition) == ("root", "vision", "lab")
    assert first.name == "a|b"
    for run in (first, second):
        assert (run.gpus, run.cpus, run.memory_mib) == (1.0, 2.0, 1000.0)
        assert run.wait_s is not None
        assert 0 <= run.wait_s < now_s - began_s
    assert (first.is_cut_short, second.is_cut_short) == (True, False)
    assert began_s - 1 <= first.started_at_s < first.ended_at_s <= now_s
    assert second.ended_at_s == pytest.approx(now_s, abs=30)
    assert waits not in found, "it never held a node"


def bought(slurm: RealSlurm) -> dict[str, str]:
    """For each pending job why nothing is bought for it; "": a node would be."""
    of = cluster_of(pool("t4", (T4_BIG,)))
    partitions = tuple(model.partition(name, is_single=False) for name, model in MODELS.items())
    one = type(of)(of.name, of.pools, (*partitions, Partition("gpu", ("t4",))), of.prices)
    needs, unmet = demand(slurm.port.read(), one, frozenset())
    found = {each.job_id: each.reason for each in unmet}
    return found | {need.job_id: "" for need in needs}


def reasons(slurm: RealSlurm) -> set[str]:
    return {job.reason for job in slurm.port.read().jobs}


def running(slurm: RealSlurm, poke: Sequence[str] = ()) -> set[str]:
    slurm.port.poke(poke)
    return {job.job_id for job in slurm.port.read().jobs if job.is_running}


def test_a_portal_can_read_each_word_of_them(slurm: RealSlurm) -> None:
    assert unreadable(slurm.run("scontrol", "show", "part", "-o")) == []
