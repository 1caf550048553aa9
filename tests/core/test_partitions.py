"""What a partition's limits let in, where Slurm's pending reason does not tell it."""

from dataclasses import replace

import pytest

from tests.make import A10G, NOW_S, T4, cluster, digest, job, pool, snapshot
from tidegate.core.demand.demand import Need, demand
from tidegate.core.explain.answer import answer
from tidegate.core.explain.verdicts import verdicts_of
from tidegate.core.model.cluster import Cluster, Partition
from tidegate.core.model.plan import Unmet
from tidegate.core.model.slurm import Job, Shape, Spread
from tidegate.core.model.why import Why
from tidegate.core.planner import plan

DOWN = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
SHORT = Partition("short", ("t4",), max_time_s=3600.0)
LONG = Partition("long", ("a10g",))


def of(*partitions: Partition) -> Cluster:
    return replace(cluster(pool("t4", (T4,)), pool("a10g", (A10G,))), partitions=partitions)


def asked(*names: str, **more: object) -> Job:
    return replace(job(1, gpu_type=""), partitions=names, **{"reason": "None", **more})  # type: ignore[arg-type]


def judged(
    one: Job, *partitions: Partition, version: str = "22.05.8"
) -> tuple[tuple[Need, ...], tuple[Unmet, ...]]:
    reading = replace(digest([one]).reading, version=version)
    return demand(reading, of(*partitions), frozenset(), NOW_S)


@pytest.mark.parametrize("reason", ["", "None", "Priority", "PartitionConfig", DOWN])
def test_a_job_over_its_partitions_time_buys_nothing_before_slurm_says_so(reason: str) -> None:
    needs, unmet = judged(asked("short", time_limit_s=5400.0, reason=reason), SHORT)

    assert needs == ()
    assert unmet[0].reason == (
        "its partition short takes jobs of at most 60 minutes, it asks 90 (max_time_s)"
    )
    assert unmet[0].why_nots[0].kind is Why.PARTITION


@pytest.mark.parametrize(
    ("partition", "more", "option"),
    [
        (Partition("p", ("t4",), max_nodes=2), {"nodes": 3}, "max_nodes"),
        (
            Partition("p", ("t4",), min_nodes=3),
            {"nodes": 2, "reason": "PartitionConfig"},
            "min_nodes",
        ),
        (
            Partition("p", ("t4",), max_mem_per_node_mib=8000),
            {"shape": Shape(memory_mib=9000)},
            "max_mem_per_node_mib",
        ),
        (Partition("p", ("t4",), state="down"), {}, "state"),
        (
            Partition("p", ("t4",), allow_accounts=("lab",)),
            {"account": "x", "reason": DOWN},
            "allow_accounts",
        ),
        (
            Partition("p", ("t4",), deny_accounts=("x",)),
            {"account": "x", "reason": DOWN},
            "deny_accounts",
        ),
        (
            Partition("p", ("t4",), allow_qos=("gold",)),
            {"qos": "normal", "reason": DOWN},
            "allow_qos",
        ),
        (Partition("p", ("t4",), deny_qos=("gold",)), {"qos": "gold", "reason": DOWN}, "deny_qos"),
    ],
)
def test_each_limit_stops_the_job_and_is_named(
    partition: Partition, more: dict[str, object], option: str
) -> None:
    needs, unmet = judged(asked("p", **more), partition)

    assert needs == ()
    assert f"({option})" in unmet[0].reason


def test_what_slurm_itself_let_in_is_let_in() -> None:
    """A QOS with the flag PartitionTimeLimit lifts the limit."""
    needs, unmet = judged(asked("short", time_limit_s=5400.0, reason=DOWN, qos="over"), SHORT)

    assert [need.pools for need in needs] == [("t4",)]
    assert unmet == ()


@pytest.mark.parametrize("reason", ["None", "PartitionTimeLimit", DOWN])
@pytest.mark.parametrize("names", [("short", "long"), ("long", "short")])
def test_of_several_partitions_those_that_take_the_job_count(
    names: tuple[str, str], reason: str
) -> None:
    """Slurm shows the reason of the one that it looked at last; no node of the other helps."""
    needs, unmet = judged(asked(*names, time_limit_s=5400.0, reason=reason), SHORT, LONG)

    assert [need.pools for need in needs] == [("a10g",)]
    assert unmet == ()


def test_a_job_that_none_of_its_partitions_takes_buys_nothing_whatever_slurm_says() -> None:
    narrow = Partition("narrow", ("a10g",), max_nodes=2)

    needs, unmet = judged(
        asked("short", "narrow", time_limit_s=5400.0, nodes=3, reason=DOWN), SHORT, narrow
    )

    assert (needs, len(unmet)) == ((), 1)


def test_a_job_that_names_no_nodes_gets_as_many_as_its_partition_gives_at_least() -> None:
    """Without -N Slurm starts it on MinNodes; fewer nodes would stand idle."""
    needs, _ = judged(asked("p", nodes=1), Partition("p", ("t4",), min_nodes=3))

    assert [(need.nodes, need.is_gang) for need in needs] == [(3, True)]


def test_a_job_is_spread_over_no_more_nodes_than_its_partition_allows() -> None:
    """8 GPUs on 1 node or on 2, 4 or 8: T4s of one GPU would need 8, MaxNodes is 2."""
    spreads = tuple(Spread(n, Shape(gpus=8 // n)) for n in (2, 4, 8))
    one = asked("p", shape=Shape(gpus=8), spreads=spreads)

    needs, _ = judged(one, Partition("p", ("t4", "a10g"), max_nodes=2))

    assert [(need.nodes, need.shape.gpus) for need in needs] == [(2, 4)]


def test_accounts_below_an_allowed_one_are_let_in_from_23_11_on() -> None:
    """The digest does not hold the tree of accounts: there Slurm's own word decides."""
    lab = Partition("p", ("t4",), allow_accounts=("lab",))
    refused = "Job's account not permitted to use this partition (lab allows lab not sub)"

    below, _ = judged(asked("p", account="sub", reason=DOWN), lab, version="24.11.5")
    none, unmet = judged(asked("p", account="sub", reason=refused), lab, version="24.11.5")

    assert len(below) == 1
    assert (none, len(unmet)) == ((), 1)


def test_a_higher_tier_comes_first_whatever_its_priority() -> None:
    urgent = Partition("urgent", ("t4",), priority_tier=10)
    jobs = [
        replace(job(1, priority=9), partitions=("usual",)),
        replace(job(2, priority=1), partitions=("urgent",)),
    ]

    needs, _ = demand(
        digest(jobs).reading, of(Partition("usual", ("t4",)), urgent), frozenset(), NOW_S
    )

    assert [need.job_id for need in needs] == ["2", "1"]


def test_why_names_the_limit_and_what_to_do() -> None:
    seen = snapshot([asked("short", time_limit_s=5400.0, reason="PartitionConfig")], of=of(SHORT))

    found = answer("1", seen, verdicts_of(plan(seen), seen))

    assert "at most 60 minutes, it asks 90 (max_time_s)" in found.headline
    assert found.change == (
        "scontrol update JobId=1 TimeLimit=60, or submit it to another partition",
    )
