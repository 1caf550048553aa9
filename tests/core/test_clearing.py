"""Idle nodes that are paid for in advance, within a limit that keeps a job waiting."""

from collections.abc import Sequence
from dataclasses import replace

from tests.core.reading import launches, orders, why
from tests.make import (
    NOW_S,
    T4,
    T4_BIG,
    ZONE,
    cluster,
    instance,
    job,
    node,
    offering,
    pool,
    record,
    snapshot,
)
from tidegate.core.model.budgets import Budget, Disruption
from tidegate.core.model.cluster import Cluster, Limits, Reservation
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.orders import OrderKind, PendingOrder
from tidegate.core.model.plan import Plan
from tidegate.core.model.slurm import Association, Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

RESERVED = Offering(T4.name, ZONE, Market.RESERVED)
BIG = job(1, gpus=4, cpus=4)
TOLD = PendingOrder("o-1", OrderKind.RELEASE, NOW_S + 30)


def reserving(limits: Limits) -> Cluster:
    of = cluster(pool(types=(T4, T4_BIG)))
    using = replace(
        of.pools[0],
        markets=(Market.RESERVED, *of.pools[0].markets),
        disruption=Disruption((Budget(percent=100.0),)),
    )
    held = Reservation("cr-1", T4.name, ZONE, 3, Market.RESERVED, NOW_S - 60, None)
    prices = {**of.prices, held.offering: 0.0}
    return replace(of, pools=(using,), reservations=(held,), prices=prices, limits=limits)


def seen(
    limits: Limits,
    *,
    jobs: Sequence[Job] = (BIG,),
    idle: int = 1,
    idle_s: float = 400,
    told: Sequence[str] = (),
) -> Snapshot:
    names = [f"i-{number}" for number in range(1, idle + 1)]
    return snapshot(
        list(jobs),
        [node(name, idle_s=idle_s) for name in names],
        of=reserving(limits),
        instances=[instance(name, RESERVED) for name in names],
        records=[
            NodeRecord(
                name,
                "l-0",
                "t4",
                RESERVED,
                NOW_S - 500,
                0.0,
                phase=Phase.JOINED,
                order=TOLD if name in told else None,
            )
            for name in names
        ],
    )


def released(made: Plan) -> list[str]:
    return [name for order in orders(made, OrderKind.RELEASE) for name in order.names]


def test_a_prepaid_node_goes_where_a_limit_counts_it_that_a_job_waits_for() -> None:
    made = plan(seen(Limits(nodes=1)))

    (order,) = orders(made, OrderKind.RELEASE)
    assert order.names == ("i-1",)
    assert order.text.endswith("and a limit counts it that job 1 waits for (empty)")
    assert order.only_if == ("IDLE",)
    assert "limited to 1 nodes" in why(made, "1")


def test_it_stays_for_its_pools_idle_time_and_where_the_limit_has_room_beside_it() -> None:
    assert released(plan(seen(Limits(nodes=1), idle_s=30))) == []
    beside = plan(seen(Limits(nodes=2)))
    assert released(beside) == []
    assert [each.count for each in launches(beside)] == [1]


def test_it_stays_where_the_limit_would_refuse_the_job_all_the_same() -> None:
    assert released(plan(seen(Limits(gpus=3)))) == []
    assert released(plan(seen(Limits(gpus=4)))) == ["i-1"]
    assert released(plan(seen(Limits(usd_per_hour=0.01)))) == []


def test_no_more_go_than_the_job_needs() -> None:
    two = job(2, gpus=4, cpus=4, nodes=2)

    assert released(plan(seen(Limits(nodes=3), idle=3))) == ["i-1"]
    assert released(plan(seen(Limits(nodes=3), idle=3, jobs=[two]))) == ["i-1", "i-2"]
    assert released(plan(seen(Limits(nodes=3), idle=3, told=["i-3"]))) == []


def test_what_a_job_counts_on_itself_does_not_go_for_it() -> None:
    """Three like them are needed: with one less a third would be within the limit."""
    three = job(3, nodes=3, constraint=T4.name)
    here = seen(Limits(nodes=2), idle=2, jobs=[three])

    assert released(plan(here)) == []


def test_it_goes_too_where_a_cap_holds_another_job() -> None:
    """The plan is then made again without the job, which holds no place under the cap."""
    capped = job(2, gpus=8, cpus=4)
    here = seen(Limits(nodes=1), jobs=[BIG, capped])
    assert here.digest
    caps = (Association("qos normal", qos=BIG.qos, per_job=4),)
    reading = replace(here.digest.reading, associations=caps)

    made = plan(replace(here, digest=replace(here.digest, reading=reading)))

    assert "allows 4 GPUs" in why(made, "2")
    assert released(made) == ["i-1"]


def test_a_node_that_the_limit_does_not_count_stays() -> None:
    """The limit is of the pool that the other one is in."""
    here = seen(Limits(), idle=2, jobs=[replace(BIG, constraint="b")])
    using = here.cluster.pools[0]
    limited = replace(using, name="b", limits=Limits(nodes=1))
    of = replace(here.cluster, pools=(using, limited))
    parts = tuple(replace(each, pools=("t4", "b")) for each in of.partitions)
    records = (here.nodes[0], replace(here.nodes[1], pool="b"))

    made = plan(replace(here, cluster=replace(of, partitions=parts), nodes=records))

    assert released(made) == ["i-2"]


def test_it_goes_for_the_first_job_that_it_helps() -> None:
    """A job on two nodes waits before it, and one like that: no limit of one node has them."""
    first = [job(each, nodes=2, gpus=4, cpus=4, priority=9) for each in (7, 8)]

    (order,) = orders(plan(seen(Limits(nodes=1), jobs=[*first, BIG])), OrderKind.RELEASE)

    assert order.names == ("i-1",)
    assert order.text.endswith("that job 1 waits for (empty)")


def keeping(min_nodes: int, shown: Snapshot) -> Snapshot:
    of = shown.cluster
    return replace(shown, cluster=replace(of, pools=(replace(of.pools[0], min_nodes=min_nodes),)))


def test_what_its_pool_keeps_in_any_case_does_not_go() -> None:
    """Nor does a part of what had to go."""
    two = job(2, gpus=4, cpus=4, nodes=2)

    assert released(plan(keeping(1, seen(Limits(nodes=1))))) == []
    assert released(plan(keeping(1, seen(Limits(nodes=2), idle=2)))) == ["i-1"]
    assert released(plan(keeping(1, seen(Limits(nodes=2), idle=2, jobs=[two])))) == []


def test_it_goes_for_a_gang_that_lacks_less_than_one_like_it() -> None:
    """The second has a node behind its gate."""
    gangs = [job(each, nodes=3, gpus=4, cpus=4) for each in (7, 8)]
    shown = seen(Limits(nodes=3), jobs=gangs)
    assert shown.digest
    big = offering(T4_BIG)
    gated = node("i-8", T4_BIG, state="IDLE+DRAIN+DYNAMIC_NORM")
    reading = replace(shown.digest.reading, nodes=(*shown.digest.reading.nodes, gated))
    shown = replace(
        shown,
        digest=replace(shown.digest, reading=reading),
        instances=(*shown.instances, instance("i-8", big)),
        nodes=(*shown.nodes, record("i-8", big, gated_for="8")),
    )

    assert released(plan(shown)) == ["i-1"]
