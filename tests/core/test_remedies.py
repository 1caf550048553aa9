"""What a person has to put right, in `why` and in `status`: the cause, and the command."""

from dataclasses import replace

import pytest

from tests.make import (
    A10G,
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
from tidegate.core.explain.answer import Answer, Status, answer
from tidegate.core.explain.overview import overview
from tidegate.core.explain.verdicts import verdicts_of
from tidegate.core.model.cluster import Limits
from tidegate.core.model.ledger import Phase
from tidegate.core.model.pool_history import FailedLaunch, PoolHistory
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Shape, Spread
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

WORDS = "a node did not register within 900 s"


def asked(snapshot: Snapshot) -> Answer:
    return answer("1", snapshot, verdicts_of(plan(snapshot), snapshot))


def booting(failures: int, *, joined_at_s: float = 0.0) -> Snapshot:
    """A node boots for job 1; so many launches of its pool before it gave no good node."""
    failed = [
        FailedLaunch(f"l-{n}", NOW_S - 1200, NOW_S - 300 + n, "aa-1") for n in range(failures)
    ]
    other = offering(T4, zone="us-east-1b")
    rest = Resting(other, NOW_S + 600, 1, "BootBoundExceeded", WORDS)
    seen = snapshot(
        [job(1)],
        records=[record(phase=Phase.LAUNCHED)],
        instances=[instance()],
        resting=[rest] if failures else [],
    )
    return replace(seen, pool_history=(PoolHistory("t4", tuple(failed), joined_at_s),))


def test_a_job_hears_after_the_first_failure_that_nodes_of_its_pool_do_not_come_up() -> None:
    found = asked(booting(1))

    assert found.status is Status.WAITING
    assert found.headline == (
        "job 1 waits: nodes are booting for it, but the last launch of pool t4 gave no good node: "
        f"BootBoundExceeded: {WORDS}"
    )
    assert "tidegate node log NODE" in found.change[0]


@pytest.mark.parametrize("snapshot", [booting(0), booting(1, joined_at_s=NOW_S - 10)])
def test_a_pool_whose_nodes_come_up_is_not_doubted(snapshot: Snapshot) -> None:
    found = asked(snapshot)

    assert found.status is Status.STARTING
    assert found.headline.startswith("job 1 starts soon: nodes are booting for it")


def full(reason: str) -> Snapshot:
    """The pool's only node is drained with this reason."""
    return snapshot(
        [job(1)],
        of=cluster(pool(limits=Limits(nodes=1))),
        records=[record("i-1")],
        instances=[instance("i-1")],
        nodes=[node("i-1", state="IDLE+DRAIN", reason=reason)],
    )


def test_a_pool_that_is_full_of_what_a_person_drained_says_which_and_how_to_give_it_back() -> None:
    found = asked(full("bad fan"))

    assert found.change == (
        "give back i-1, which a person drained and which counts: "
        "scontrol update NodeName=i-1 State=RESUME",
        "have the limits of pool t4 raised",
    )


@pytest.mark.parametrize("reason", ["PartitionDown", "PartitionInactive"])
def test_a_partition_that_is_down_is_told_with_the_command_that_sets_it_up(reason: str) -> None:
    seen = snapshot([job(1, reason=reason), job(2, reason=reason), job(3)])
    up = "scontrol update PartitionName=gpu State=UP"

    found, status = asked(seen), overview(seen, verdicts_of(plan(seen), seen))

    assert found.change == (f"set it up: {up}",)
    assert status.needs_a_look == (
        f"partition gpu takes no jobs and 2 jobs wait for it; set it up: {up}",
    )


def test_what_the_whole_cluster_is_limited_to_is_not_asked_of_a_pool() -> None:
    seen = snapshot(
        [job(1)],
        of=cluster(pool(), limits=Limits(nodes=1)),
        records=[record("i-1")],
        instances=[instance("i-1")],
        nodes=[node("i-1", gpus_alloc=1, state="ALLOCATED")],
    )

    found = asked(seen)

    assert found.headline.startswith("job 1 waits: the cluster is limited to 1 nodes")
    assert found.change == (
        "wait for nodes to be released, or have the limits of the cluster raised",
    )


def test_a_job_that_only_lacks_a_time_limit_hears_of_that_first_and_how_to_give_it_one() -> None:
    timed = replace(pool(), max_job_time_s=8 * 3600.0)

    found = asked(snapshot([job(1, time_limit_s=None)], of=cluster(pool("a10g", (A10G,)), timed)))

    assert found.headline == (
        "job 1 waits: pool t4 takes jobs of at most 8.0 h, the job has no time limit; 1 more below"
    )
    assert found.change == (
        "ask at most 8.0 h, for pool t4: scontrol update JobId=1 TimeLimit=480",
    )


def test_a_job_is_not_told_to_ask_less_time_of_a_pool_without_its_gpus() -> None:
    timed = replace(pool(), max_job_time_s=8 * 3600.0)

    found = asked(snapshot([job(1, gpu_type="l4", time_limit_s=None)], of=cluster(timed)))

    assert found.change == ("ask another kind of GPU: pool t4 has none of this one",)


def test_a_job_whose_gpus_are_spread_over_more_nodes_than_it_names_is_not_told_to_name_fewer() -> (
    None
):
    of = cluster(pool(types=(T4_BIG,), limits=Limits(gpus=4)))
    spreads = (Spread(2, Shape(3, "t4", 1, 1000)),)

    found = asked(snapshot([job(1, gpus=6, spreads=spreads)], of=of))

    assert "allows 1 such nodes; the job asks 2" in found.headline
    assert found.change == ("ask fewer GPUs or tasks, or have the limits of pool t4 raised",)


def test_an_array_at_its_own_limit_hears_how_to_raise_it() -> None:
    found = asked(snapshot([job(1, reason="JobArrayTaskLimit")]))

    assert found.change == (
        "let more run at a time: scontrol update JobId=1 ArrayTaskThrottle=...",
    )


def test_the_year_that_slurm_gives_a_job_without_time_limit_is_none() -> None:
    runs = job(1, state="RUNNING", on=["i-1"], time_limit_s=365 * 86400.0)
    seen = snapshot([runs], records=[record("i-1")], instances=[instance("i-1")])

    found = asked(seen)

    assert found.needs[0].endswith("; no time limit")
    assert not any("by its time limit" in each for each in found.nodes)


def test_the_pool_that_comes_nearest_is_named_before_one_of_another_kind_of_gpu() -> None:
    of = cluster(pool(weight=50), pool("a10g", (A10G,)))

    found = asked(snapshot([job(1, gpus=8, gpu_type="a10g")], of=of))

    assert found.headline == ("job 1 waits: g5.12xlarge has 4 GPUs, the job asks 8; 1 more below")


def test_the_limit_that_only_a_larger_type_meets_is_not_asked_to_be_raised() -> None:
    of = cluster(pool(limits=Limits(gpus=4)), limits=Limits(nodes=1))
    busy = node("i-1", gpus_alloc=1, state="ALLOCATED+DYNAMIC_NORM")
    seen = snapshot(
        [job(1), job(2, state="RUNNING", on=["i-1"])],
        of=of,
        records=[record("i-1")],
        instances=[instance("i-1")],
        nodes=[busy],
    )

    found = asked(seen)

    assert found.change == (
        "wait for nodes to be released, or have the limits of the cluster raised",
    )
    runs = answer("2", seen, None)
    assert runs.nodes[0].endswith("in Slurm, ALLOCATED")
