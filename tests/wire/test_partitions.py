"""Partitions in the cluster file: Slurm's words in, its line of slurm.conf out."""

from pathlib import Path

import pytest

from tests.wire.cluster_files import good, load, problems
from tidegate.core.model.cluster import account_scope
from userdata.render import SlurmPartition

ALL = {
    "pools": ["t4"],
    "state": "drain",
    "allow_accounts": ["Lab", "sub"],
    "allow_groups": ["ml", "hpc"],
    "allow_qos": ["gold"],
    "qos": "small",
    "priority_tier": 10,
    "priority_job_factor": 100,
    "max_time_s": 172800,
    "default_time_s": 3600,
    "over_time_limit_s": 300,
    "min_nodes": 1,
    "max_nodes": 4,
    "max_mem_per_node_mib": 64000,
    "def_cpu_per_gpu": 4,
    "def_mem_per_gpu_mib": 8000,
    "over_subscribe": "exclusive",
    "preempt_mode": "requeue",
    "grace_time_s": 60,
    "hidden": True,
    "root_only": True,
    "req_resv": True,
}
SLURM = {
    "accounting": True,
    "settings": {"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE"},
}
LINE = (
    "Default=YES MaxTime=2880 State=DRAIN AllowGroups=ml,hpc AllowAccounts=lab,sub AllowQos=gold"
    " QOS=small PriorityTier=10 PriorityJobFactor=100 MinNodes=1 MaxNodes=4 DefCpuPerGPU=4"
    " DefMemPerGPU=8000 MaxMemPerNode=64000 GraceTime=60 DefaultTime=60 OverTimeLimit=5 Hidden=YES"
    " RootOnly=YES ReqResv=YES OverSubscribe=EXCLUSIVE PreemptMode=REQUEUE"
)


@pytest.mark.parametrize("name", ["GPU", "all", "Deep_Learning-2"])
def test_a_partition_has_the_names_that_people_give_theirs(tmp_path: Path, name: str) -> None:
    """Slurm's own word is DEFAULT alone: 22.05 takes ALL for a partition like any other."""
    file = load(tmp_path, good({"partitions": {name: {"pools": ["t4"]}}}))

    assert [each.name for each in file.cluster.partitions] == [name]
    SlurmPartition(name, ("t4",))


def test_every_option_stands_in_its_line_of_slurm_conf(tmp_path: Path) -> None:
    file = load(tmp_path, good({"slurm": SLURM, "partitions.gpu": ALL}))
    settings = file.partition_settings["gpu"]

    assert SlurmPartition("gpu", ("t4",), is_default=True, settings=settings).line == LINE
    assert file.qos == ("gold", "small")
    (made,) = file.cluster.partitions
    assert (made.max_time_s, made.max_nodes, made.allow_accounts) == (172800, 4, ("lab", "sub"))


def test_a_partition_that_says_nothing_is_what_it_was(tmp_path: Path) -> None:
    (made,) = load(tmp_path, good()).cluster.partitions
    assert SlurmPartition("gpu", ("t4",), True).line == "Default=YES MaxTime=INFINITE State=UP"
    assert (made.state, made.max_time_s, made.priority_tier) == ("up", None, 1)


@pytest.mark.parametrize(
    ("pools_s", "own_s", "max_time"),
    [
        ((7200, 3660), None, "120"),
        ((7259, 90), None, "120"),
        ((30, 30), None, "1"),
        ((7200, None), None, "INFINITE"),
        ((7200, 3600), 5400, "90"),
        ((None, None), 5400, "90"),
    ],
)
def test_slurm_starts_no_job_that_all_pools_of_its_partition_are_too_short_for(
    tmp_path: Path, pools_s: tuple[int | None, int | None], own_s: int | None, max_time: str
) -> None:
    asked = good()
    first, second = [
        {**asked["pools"]["t4"], **({"max_job_time_s": each} if each else {})} for each in pools_s
    ]
    asked["pools"] = {"t4": first, "more": second}
    asked["partitions"]["gpu"] = {"pools": ["t4", "more"]} | (
        {"max_time_s": own_s} if own_s else {}
    )
    file = load(tmp_path, asked)

    line = SlurmPartition("gpu", ("t4",), settings=file.partition_settings["gpu"]).line
    assert f" MaxTime={max_time} " in line
    (made,) = file.cluster.partitions
    assert made.max_time_s == (None if max_time == "INFINITE" else int(max_time) * 60)


def test_a_usual_time_limit_that_no_pool_of_the_partition_takes_is_refused(tmp_path: Path) -> None:
    asked = good({"partitions.gpu.default_time_s": 7200, "pools.t4.max_job_time_s": 3600})

    asked["partitions"]["gpu"]["max_time_s"] = 9000

    (longest, said) = sorted(problems(tmp_path, asked), reverse=True)
    assert longest.startswith("partitions.gpu.max_time_s 9000, and its pools take jobs of at most")
    assert said.startswith("partitions.gpu.default_time_s 7200, and its pools take jobs of at most")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"max_time_s": 90}, "max_time_s Slurm counts minutes: must be a multiple of 60, like 120"),
        ({"max_time_s": 3600, "default_time_s": 7200}, "jobs without a limit would never start"),
        ({"min_nodes": 4, "max_nodes": 2}, "min_nodes is 4, more than max_nodes (2)"),
        ({"priority_tier": 70000}, "priority_tier must be 0-65533, is 70000"),
        ({"preempt_mode": "requeue"}, "but nothing preempts: add to slurm.settings PreemptType"),
        ({"grace_time_s": 60}, "grace_time_s needs preempt_mode"),
        ({"allow_accounts": ["lab"]}, "allow_accounts needs accounting"),
        ({"qos": "gold"}, "qos needs accounting: add accounting: true to slurm"),
        ({"allow_qos": ["a"], "deny_qos": ["b"]}, "Slurm ignores the second"),
        ({"allow_groups": ["a,b"]}, "the name of a group of users"),
        ({"allow_groups": ["ALL"]}, "ALL has a meaning of its own in slurm.conf"),
        ({"def_mem_per_gpu_mib": 1, "def_mem_per_cpu_mib": 1}, "Slurm knows one of them"),
        ({"over_subscribe": "force:4"}, "over_subscribe must be"),
        ({"MaxTime": "1-00:00"}, "unknown name"),
    ],
)
def test_what_slurm_would_refuse_or_ignore_is_refused(
    tmp_path: Path, more: dict[str, object], said: str
) -> None:
    told = problems(tmp_path, good({"partitions.gpu": {"pools": ["t4"], **more}}))

    assert any(said in line for line in told), told


def test_accounts_are_those_that_slurm_knows_however_they_are_written(tmp_path: Path) -> None:
    """Source: sacctmgr(1): its database is maintained in lower case."""
    change = {
        "budget_by_account": {"Interns": {"usd_per_day": 10}},
        "time_limit_ratio_by_account": {"Interns": 0.5},
        "waiting": {"by_account": {"Interns": 7}, "by_qos": {"High": 9}},
    }

    found = load(tmp_path, good(change)).cluster

    assert found.budgets.keys() >= {account_scope("interns")}
    assert found.time_limit_ratios == {"interns": 0.5}
    assert (found.waiting.accounts, found.waiting.qos) == ({"interns": 7}, {"high": 9})
