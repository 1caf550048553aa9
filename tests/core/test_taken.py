"""Nodes that EC2 takes by a known time or any moment now: what runs there is saved."""

from dataclasses import replace

import pytest

from tests.core.reading import orders
from tests.make import NOW_S, T4, ZONE, cluster, instance, job, node, pool, record, snapshot
from tidegate.core.model.cluster import Cluster, Reservation
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ledger import Cordon, NodeRecord
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.plan import Plan, Send
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

BLOCK = Offering("g4dn.xlarge", ZONE, Market.CAPACITY_BLOCK)
SAVES_ITSELF = job(1, on=["i-1"], comment="tidegate:ckpt=USR1@20")
MARGIN_S = cluster().timings.requeue_margin_s
NOTICE_S = cluster().timings.spot_notice_s


def with_block(ends_in_s: float) -> Cluster:
    held = Reservation(
        "cr-1", "g4dn.xlarge", ZONE, 1, Market.CAPACITY_BLOCK, NOW_S - 9000, NOW_S + ends_in_s
    )
    of = cluster(pool(types=(T4,)))
    using = replace(of.pools[0], markets=(Market.CAPACITY_BLOCK,))
    return replace(of, pools=(using,), reservations=(held,), prices={held.offering: 0})


def in_block(ends_in_s: float, of: Job = SAVES_ITSELF) -> Snapshot:
    mine = NodeRecord("i-1", "l-0", "t4", BLOCK, NOW_S - 8000, 0.0)
    return snapshot(
        [of],
        [node(state="ALLOCATED+DRAIN", gpus_alloc=1, reason="tidegate: its capacity block ends")],
        of=with_block(ends_in_s),
        instances=[instance(on=BLOCK)],
        records=[mine],
    )


def under_maintenance(starts_in_s: float, of: Job = SAVES_ITSELF) -> Snapshot:
    """AWS Health announced it just now."""
    cordon = Cordon("AWS Health: AWS_EC2_RETIREMENT", NOW_S, NOW_S + starts_in_s)
    return snapshot(
        [of],
        [node(state="ALLOCATED+DRAIN", gpus_alloc=1, reason=f"tidegate: {cordon.reason}")],
        instances=[instance()],
        records=[replace(record(), cordon=cordon)],
    )


def saved(made: Plan) -> tuple[list[Order], list[Order]]:
    return orders(made, OrderKind.SIGNAL), orders(made, OrderKind.REQUEUE)


@pytest.mark.parametrize("ends_in_s", [2401.0, 9000.0])
def test_until_40_minutes_before_the_end_of_its_block_a_job_is_left_alone(ends_in_s: float) -> None:
    assert saved(plan(in_block(ends_in_s))) == ([], [])


def test_then_a_job_that_asks_for_it_is_signalled_and_requeued_after_its_grace() -> None:
    (signal,), (requeue,) = saved(plan(in_block(2399.0)))

    assert (signal.names, signal.text) == (("1",), "USR1")
    assert (requeue.names, requeue.delay_s, requeue.on_nodes) == (("1",), 20, ("i-1",))


def test_one_that_does_not_runs_until_ec2_may_end_it_30_minutes_before() -> None:
    signals, (requeue,) = saved(plan(in_block(2399.0, job(1, on=["i-1"]))))

    assert signals == []
    assert requeue.delay_s == pytest.approx(599 - MARGIN_S, abs=1)


def test_one_that_may_not_be_requeued_runs_to_the_end() -> None:
    stubborn = job(1, on=["i-1"], is_requeueable=False)

    assert saved(plan(in_block(2399.0, stubborn))) == ([], [])


@pytest.mark.parametrize(
    "snapshot", [in_block(1000.0), under_maintenance(-60), under_maintenance(0)]
)
def test_where_the_time_is_over_already_jobs_are_saved_as_after_a_notice(
    snapshot: Snapshot,
) -> None:
    (signal,), (requeue,) = saved(plan(snapshot))

    assert (signal.names, requeue.names, requeue.delay_s) == (("1",), ("1",), 20)


def test_a_job_without_a_checkpoint_gets_the_time_of_a_notice_and_is_requeued() -> None:
    _, (requeue,) = saved(plan(under_maintenance(-3600, job(1, on=["i-1"]))))

    assert requeue.delay_s == pytest.approx(NOTICE_S - MARGIN_S, abs=1)


def test_a_spot_node_that_outlives_its_notice_is_not_asked_again() -> None:
    seen = under_maintenance(-60)
    late = replace(seen.nodes[0], cordon=None, reclaim_at_s=NOW_S - 5)

    assert saved(plan(replace(seen, nodes=(late,)))) == ([], [])


def idle_in_block(state: str, *jobs: Job, reason: str = "") -> Plan:
    """One idle node of a block that takes no more jobs."""
    seen = in_block(1000.0)
    idle = node(state=state, reason=reason)
    return plan(
        snapshot(jobs, [idle], of=seen.cluster, instances=seen.instances, records=seen.nodes)
    )


def told(made: Plan) -> list[tuple[OrderKind, tuple[str, ...]]]:
    sent = [each.order for each in made.actions if isinstance(each, Send)]
    return [(each.kind, each.names) for each in sent if each.kind is not OrderKind.WEIGHT]


WAITS_FOR_IT = job(2, required_nodes=("i-1",))


def test_an_idle_node_for_which_a_job_waits_is_closed_and_not_deleted() -> None:
    """Slurm would end the job with its node, so the agent keeps the node from a release."""
    assert told(idle_in_block("IDLE", WAITS_FOR_IT)) == [(OrderKind.DRAIN, ("i-1",))]


def test_it_is_asked_for_once() -> None:
    ours = "tidegate: its capacity block ends"

    assert told(idle_in_block("IDLE+DRAIN", WAITS_FOR_IT, reason=ours)) == []


@pytest.mark.parametrize(
    "jobs", [(), (job(2, required_nodes=("i-2",)),), (job(2, on=["i-9"], required_nodes=("i-1",)),)]
)
def test_it_goes_where_no_job_waits_for_it(jobs: tuple[Job, ...]) -> None:
    assert told(idle_in_block("IDLE", *jobs)) == [(OrderKind.RELEASE, ("i-1",))]
