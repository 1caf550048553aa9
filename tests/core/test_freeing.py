"""Jobs wait for running nodes whose jobs end before a new node would have booted."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.core.reading import launches
from tests.make import (
    NOW_S,
    T4,
    T4_BIG,
    cluster,
    instance,
    job,
    node,
    offering,
    pool,
    record,
    snapshot,
)
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.plan import Plan
from tidegate.core.model.slurm import Job, Node
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.waiting import Waiting
from tidegate.core.planner import plan

HOUR_S = 3600.0
BOOT_S = 300.0
LARGE = cluster(pool(types=(T4_BIG,)))


def seen(jobs: Sequence[Job], there: Node, of: Cluster, kind: InstanceType = T4_BIG) -> Snapshot:
    on = offering(kind)
    return snapshot(
        jobs,
        [there],
        of=of,
        instances=[instance(on=on, age_s=HOUR_S)],
        records=[record(on=on, age_s=HOUR_S)],
        age_s=0.0,
    )


def busy(job_id: int, ends_in_s: float = BOOT_S, state: str = "RUNNING", **more: Any) -> Job:
    times: dict[str, Any] = {"started_at_s": NOW_S - HOUR_S, "time_limit_s": HOUR_S + ends_in_s}
    return replace(job(job_id, on=["i-1"], **{**times, **more}), state=state)


def of_small(ends_in_s: float, *waiting: Job, ratio: float = 1.0, **more: Any) -> Plan:
    """A node with one GPU, which a job has."""
    of = replace(cluster(pool(types=(T4,))), time_limit_ratio=ratio)
    full = node(state="ALLOCATED", gpus_alloc=1)
    return plan(seen([busy(7, ends_in_s, **more), *(waiting or [job(1)])], full, of, T4))


def counts(made: Plan) -> list[tuple[int, tuple[str, ...]]]:
    return [(x.count, x.for_jobs) for x in launches(made)]


@pytest.mark.parametrize("ends_in_s", [0.0, BOOT_S])
def test_a_node_that_frees_sooner_than_a_boot_takes_is_waited_for(ends_in_s: float) -> None:
    soon = of_small(ends_in_s)

    assert launches(soon) == []
    assert (soon.served[0].by, "free sooner" in soon.served[0].reason) == (("i-1",), True)


@pytest.mark.parametrize(
    ("ends_in_s", "more"),
    [
        (BOOT_S + 1, {}),
        (-1.0, {}),  # it has outlived its limit, and nobody knows for how long
        (BOOT_S, {"time_limit_s": None}),
        (BOOT_S, {"started_at_s": None}),
        (BOOT_S, {"state": "SUSPENDED"}),
    ],
)
def test_one_that_frees_later_or_at_a_time_that_nobody_knows_is_not(
    ends_in_s: float, more: dict[str, Any]
) -> None:
    made = of_small(ends_in_s, **more)

    assert counts(made) == [(1, ("1",))]


def test_jobs_that_end_early_as_a_rule_free_their_nodes_early() -> None:
    # Half of 4,000 s are over, so it is taken to run to the end; half of 7,700 s are not.
    assert counts(of_small(400, ratio=0.5)) == [(1, ("1",))]
    assert counts(of_small(4_000, ratio=0.5)) == []


@pytest.mark.parametrize(("usd_per_hour", "is_bought"), [(0.0, False), (0.1, False), (0.5, True)])
def test_a_guessed_end_is_waited_for_while_that_costs_less_than_a_boot(
    usd_per_hour: float, *, is_bought: bool
) -> None:
    """Half of 7,700 s: 250 s are left, which one in sixteen such jobs keeps to. Its own node's boot
    costs 0.013 USD on spot.
    """
    of = replace(cluster(pool(types=(T4,))), time_limit_ratio=0.5, waiting=Waiting(usd_per_hour))
    full = node(state="ALLOCATED", gpus_alloc=1)

    made = plan(seen([busy(7, 4_100), job(1)], full, of, T4))
    by_its_limit = plan(seen([busy(7, BOOT_S), job(1)], full, of, T4))

    assert counts(made) == ([(1, ("1",))] if is_bought else [])
    assert counts(by_its_limit) == []  # Slurm ends it: to wait saves time and money


def test_only_as_many_jobs_wait_as_the_freed_node_holds() -> None:
    assert counts(of_small(200, job(1), job(2))) == [(1, ("2",))]


def test_a_node_that_is_about_to_go_is_not_waited_for() -> None:
    drained = node(state="ALLOCATED+DRAIN", gpus_alloc=1, reason="bad fan")

    made = plan(seen([busy(7), job(1)], drained, cluster(pool(types=(T4,))), T4))

    assert counts(made) == [(1, ("1",))]


# A node with one GPU, 8 CPUs and 10,000 MiB to spare: three jobs have the rest of it.
FIRST: dict[str, Any] = {"gpus": 1, "cpus": 10, "memory_mib": 20_000}
SECOND: dict[str, Any] = {"gpus": 1, "cpus": 10, "memory_mib": 30_000}
THIRD: dict[str, Any] = {"gpus": 1, "cpus": 20, "memory_mib": T4_BIG.slurm_memory_mib - 60_000}
CROWDED = replace(
    node(type_=T4_BIG, state="MIXED", gpus_alloc=3),
    cpus_alloc=40,
    memory_alloc_mib=T4_BIG.slurm_memory_mib - 10_000,
)
FREED: dict[str, Any] = {"gpus": 3, "cpus": 28, "memory_mib": 60_000}


@pytest.mark.parametrize(
    ("asks", "is_waiting"),
    [
        (FREED, True),
        ({**FREED, "gpus": 4}, False),
        ({**FREED, "cpus": 29}, False),
        ({**FREED, "memory_mib": 60_001}, False),
        ({**FREED, "is_exclusive": True}, False),  # the third stays
    ],
)
def test_what_jobs_give_back_comes_to_what_is_free_beside_them(
    asks: dict[str, Any], *, is_waiting: bool
) -> None:
    there = [busy(7, **FIRST), busy(8, **SECOND), busy(9, HOUR_S, **THIRD)]

    made = plan(seen([*there, job(1, **asks)], CROWDED, LARGE))

    assert (counts(made) == []) is is_waiting


@pytest.mark.parametrize(
    "asks", [{"gpus": 3}, {"gpus": 0, "cpus": 40}, {"gpus": 0, "memory_mib": 100_000}]
)
def test_no_more_comes_back_than_slurm_has_given(asks: dict[str, Any]) -> None:
    """What a job is said to have may be more: then both that wait would count on the node."""
    greedy = busy(7, gpus=4, cpus=48, memory_mib=T4_BIG.slurm_memory_mib)
    there = replace(node(type_=T4_BIG, state="MIXED", gpus_alloc=2), memory_alloc_mib=1000)

    made = plan(seen([greedy, job(1, **asks), job(2, **asks)], there, LARGE))

    assert counts(made) == [(1, ("2",))]


def test_a_job_that_has_its_node_alone_gives_all_of_it_back() -> None:
    whole = replace(CROWDED, gpus_alloc=4, cpus_alloc=48, memory_alloc_mib=CROWDED.memory_mib)
    there = busy(7, is_exclusive=True)

    assert counts(plan(seen([there, job(1, gpus=4, cpus=48)], whole, LARGE))) == []
    assert counts(plan(seen([there, job(1, is_exclusive=True)], whole, LARGE))) == []


def test_a_node_that_another_waiting_job_has_taken_meanwhile_is_not_free_for_one_alone() -> None:
    jobs = [busy(7), job(1, gpus=0, gpu_type=""), job(2, is_exclusive=True)]

    made = plan(seen(jobs, node(type_=T4_BIG, state="MIXED", gpus_alloc=1), LARGE))

    assert counts(made) == [(1, ("2",))]
