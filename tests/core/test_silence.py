"""While the head is silent: what AWS takes from running jobs is bought again, once, and no more."""

from dataclasses import replace

import pytest

from tests.core.reading import ended, launches
from tests.make import (
    A10G,
    NOW_S,
    cluster,
    instance,
    job,
    node,
    offering,
    placement,
    pool,
    record,
    snapshot,
)
from tidegate.core.model.calendar import Wanted
from tidegate.core.model.cluster import Limits
from tidegate.core.model.ledger import Launch, LaunchRecord, NodeRecord, Phase
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

SILENT_S = 400.0
BUSY = node(state="MIXED", gpus_alloc=1)


def silent(*jobs: Job, taken_for_s: float = 10.0, others: tuple[NodeRecord, ...] = ()) -> Snapshot:
    """A head last heard long ago; EC2 takes i-1 in two minutes from a notice so long ago."""
    taken = replace(record(phase=Phase.INTERRUPTED), reclaim_at_s=NOW_S + 120 - taken_for_s)
    return snapshot(
        jobs,
        [BUSY],
        instances=[instance(), *(instance(each.instance_id) for each in others)],
        records=[taken, *others],
        age_s=max(SILENT_S, taken_for_s),
    )


def bought(snapshot: Snapshot) -> list[Launch]:
    return launches(plan(snapshot))


def test_a_node_that_is_taken_from_a_running_job_is_replaced_although_the_head_is_silent() -> None:
    (launch,) = bought(silent(job(7, on=["i-1"]), job(8)))

    assert (launch.for_jobs, launch.count) == (("7",), 1)


def test_it_is_replaced_once() -> None:
    booting = record("i-2", phase=Phase.LAUNCHED, age_s=5)

    assert bought(silent(job(7, on=["i-1"]), others=(booting,))) == []


def test_nor_again_while_its_launch_is_in_doubt() -> None:
    seen = silent(job(7, on=["i-1"]))
    (launch,) = bought(seen)
    request = fleet_request(launch, "test", placement(seen.cluster))
    in_doubt = LaunchRecord(launch, NOW_S - 5, request)

    assert bought(replace(seen, launches=(in_doubt,))) == []


@pytest.mark.parametrize(
    "on",
    [
        pytest.param(job(7), id="a job that waits"),
        pytest.param(job(7, on=["i-9"]), id="a job elsewhere"),
        pytest.param(job(7, on=["i-1"], is_requeueable=False), id="one that may not be requeued"),
    ],
)
def test_nothing_else_is_bought(on: Job) -> None:
    assert bought(silent(on)) == []


def test_a_replacement_that_ended_by_itself_is_not_bought_again() -> None:
    bound_s = cluster().timings.boot_bound_s

    assert len(bought(silent(job(7, on=["i-1"]), taken_for_s=bound_s + 110))) == 1
    assert bought(silent(job(7, on=["i-1"]), taken_for_s=bound_s + 130)) == []


def test_limits_hold_in_silence() -> None:
    seen = silent(job(7, on=["i-1"]))
    limited = replace(seen, cluster=cluster(pool(limits=Limits(nodes=1))))

    assert bought(limited) == []


def test_a_stopped_cluster_replaces_nothing() -> None:
    seen = replace(silent(job(7, on=["i-1"])), wanted=Wanted(False, "stopped for the night"))

    assert bought(seen) == []


def test_a_gang_that_lost_one_node_gets_one() -> None:
    names = ["i-1", "i-2", "i-3"]
    gang = job(7, nodes=3, gpus=4, gpu_type="a10g", on=names)
    records = [replace(record(name), pool="a10g", offering=offering(A10G)) for name in names]
    records[0] = replace(records[0], phase=Phase.INTERRUPTED, reclaim_at_s=NOW_S + 100)
    seen = snapshot(
        [gang],
        [node(name, A10G, state="ALLOCATED", gpus_alloc=4) for name in names],
        of=cluster(pool("a10g", (A10G,))),
        instances=[instance(name) for name in names],
        records=records,
        age_s=SILENT_S,
    )

    assert [launch.count for launch in bought(seen)] == [1]


def test_a_gang_that_would_go_elsewhere_as_a_whole_waits_for_the_head() -> None:
    """Its pool has no room for one more node; another one has for all of them."""
    names = ["i-1", "i-2", "i-3"]
    gang = job(7, nodes=3, gpus=4, gpu_type="a10g", on=names)
    records = [replace(record(name), pool="a10g", offering=offering(A10G)) for name in names]
    records[0] = replace(records[0], phase=Phase.INTERRUPTED, reclaim_at_s=NOW_S + 100)
    full = pool("a10g", (A10G,), limits=Limits(nodes=3))
    seen = snapshot(
        [gang],
        [node(name, A10G, state="ALLOCATED", gpus_alloc=4) for name in names],
        of=cluster(full, pool("more", (A10G,))),
        instances=[instance(name, pool="a10g") for name in names],
        records=records,
        age_s=SILENT_S,
    )

    assert bought(seen) == []
    assert [each.count for each in bought(replace(seen, digest_age_s=1.0))] == [3]


def test_what_the_last_digest_would_have_done_waits_for_the_head() -> None:
    idle = replace(BUSY, name="i-2", last_busy_at_s=0.0)
    late = record("i-3", phase=Phase.JOINED)
    seen = silent(job(7, on=["i-1"]), others=(record("i-2"), late))
    digest = seen.digest
    assert digest is not None
    nodes = (BUSY, idle)
    seen = replace(seen, digest=replace(digest, reading=replace(digest.reading, nodes=nodes)))

    made = plan(seen)

    assert ended(made) == []
    assert all(isinstance(action, Launch) for action in made.actions)
    assert "nothing new is launched" in made.notes[0]
