"""Jobs that count several kinds of nodes: `[t4*1&a10g*2]` is one gang in one zone."""

from dataclasses import replace

import pytest

from tests.core.reading import launches, orders, why
from tests.make import (
    A10G,
    NOW_S,
    T4,
    cluster,
    instance,
    job,
    node,
    offering,
    pool,
    record,
    snapshot,
)
from tidegate.core.model.cluster import Cluster, Limits
from tidegate.core.model.ec2 import InstanceType, Market, Offering
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Job, Node
from tidegate.core.planner import plan

ZONES = ("us-east-1a", "us-east-1b")


def mixed(nodes: int = 3, constraint: str = "[t4*1&a10g*2]", **more: object) -> Job:
    return job(9, nodes=nodes, gpus=1, gpu_type="", constraint=constraint, priority=5, **more)  # type: ignore[arg-type]


def in_zones(**limits: int) -> Cluster:
    """A pool for each GPU in two zones."""
    return cluster(
        pool("t4", (T4,), zones=ZONES, markets=(Market.SPOT,), limits=Limits(**limits)),
        pool("a10g", (A10G,), zones=ZONES, markets=(Market.SPOT,)),
    )


def bought(made: Plan) -> list[tuple[str, int, int, str, set[str]]]:
    return sorted(
        (x.pool, x.count, x.min_count, x.gated_for, {o.zone for o in x.offerings})
        for x in launches(made)
    )


def gated(name: str, of: InstanceType, zone: str = ZONES[0]) -> tuple[Node, NodeRecord]:
    """A node that stands at the gate of job 9."""
    there = replace(
        node(name, of, state="IDLE+DRAIN+DYNAMIC_NORM"), features=(of.gpu_type, of.name, "spot")
    )
    on = offering(of, zone=zone)
    return there, record(name, on, pool=of.gpu_type, gated_for="9")


def at(found: list[tuple[Node, NodeRecord]], queue: list[Job], of: Cluster | None = None) -> Plan:
    return plan(
        snapshot(
            queue,
            [there for there, _ in found],
            of=of or in_zones(),
            instances=[instance(r.instance_id, r.offering, pool=r.pool) for _, r in found],
            records=[r for _, r in found],
        )
    )


def test_each_kind_is_bought_and_all_wait_for_each_other_in_one_zone() -> None:
    made = plan(snapshot([mixed()], of=in_zones()))

    assert bought(made) == [
        ("a10g", 2, 2, "9", {"us-east-1a"}),
        ("t4", 1, 1, "9", {"us-east-1a"}),
    ]
    assert [each.job_id for each in made.served] == ["9"]


def test_further_nodes_are_the_cheapest_that_its_constraint_leaves() -> None:
    made = plan(snapshot([mixed(nodes=5)], of=in_zones()))

    assert [(x.pool, x.count) for x in launches(made)] == [("t4", 1), ("a10g", 2), ("t4", 2)]


def test_a_zone_that_lacks_one_kind_is_not_taken_for_the_other() -> None:
    resting = [Resting(offering(A10G, zone=ZONES[0]), NOW_S + 60, 1, "ICE", "none left")]

    made = plan(snapshot([mixed()], of=in_zones(), resting=resting))

    assert {zone for *_, zones in bought(made) for zone in zones} == {"us-east-1b"}


def test_kinds_that_no_zone_has_together_are_not_bought_at_all() -> None:
    resting = [
        Resting(offering(A10G, zone=ZONES[0]), NOW_S + 60, 1, "ICE", "none left"),
        Resting(offering(T4, zone=ZONES[1]), NOW_S + 60, 1, "ICE", "none left"),
    ]

    made = plan(snapshot([mixed()], of=in_zones(), resting=resting))

    assert launches(made) == []
    assert "rests" in why(made, "9")


@pytest.mark.parametrize("constraint", ["[t4*2&a10g*1]", "[a10g*1&t4*2]"])
def test_one_kind_over_a_limit_keeps_the_others_from_being_bought(constraint: str) -> None:
    made = plan(snapshot([mixed(constraint=constraint), job(1)], of=in_zones(nodes=1)))

    assert [x.for_jobs for x in launches(made)] == [("1",)]
    assert "pool t4 is limited to 1 nodes" in why(made, "9")


def test_the_dearer_zone_is_taken_when_it_is_cheaper_for_all_kinds() -> None:
    of = in_zones()
    prices = dict(of.prices)
    prices[offering(T4, zone=ZONES[0])] = 0.1  # alone, t4 would be bought here
    prices[offering(A10G, zone=ZONES[0])] = 3.0

    made = plan(snapshot([mixed()], of=replace(of, prices=prices)))

    assert {zone for *_, zones in bought(made) for zone in zones} == {"us-east-1b"}


def test_what_is_on_its_way_is_not_bought_again_and_the_rest_follows_it() -> None:
    on = Offering(A10G.name, ZONES[1], Market.SPOT)
    flying = [
        replace(record(n, on, pool="a10g", gated_for="9"), phase=Phase.LAUNCHED)
        for n in ("i-1", "i-2")
    ]
    made = plan(
        snapshot(
            [mixed()],
            of=in_zones(),
            instances=[instance(each.instance_id, on, pool="a10g") for each in flying],
            records=flying,
        )
    )

    assert bought(made) == [("t4", 1, 1, "9", {"us-east-1b"})]


def test_a_gang_that_cannot_be_completed_where_it_began_is_bought_whole_elsewhere() -> None:
    on = Offering(T4.name, ZONES[0], Market.SPOT)
    flying = replace(record("i-1", on, gated_for="9"), phase=Phase.LAUNCHED)
    made = plan(
        snapshot(
            [mixed(constraint="[t4*2&a10g*1]")],
            of=in_zones(),
            instances=[instance("i-1", on)],
            records=[flying],
            resting=[Resting(offering(A10G, zone=ZONES[0]), NOW_S + 60, 1, "ICE", "none left")],
        )
    )

    assert bought(made) == [
        ("a10g", 1, 1, "9", {"us-east-1b"}),
        ("t4", 2, 2, "9", {"us-east-1b"}),
    ]


def test_all_kinds_open_in_one_order_when_all_are_there() -> None:
    found = [gated("i-1", T4), gated("i-2", A10G), gated("i-3", A10G)]

    short = at(found[:2], [mixed()])
    whole = at(found, [mixed()])

    assert orders(short, OrderKind.UNDRAIN) == []
    assert [order.names for order in orders(whole, OrderKind.UNDRAIN)] == [("i-1", "i-2", "i-3")]
    assert launches(whole) == []


def test_what_came_of_one_kind_opens_for_others_when_another_cannot_be_had() -> None:
    there, known = gated("i-1", T4)
    resting = [
        Resting(offering(A10G, zone=zone), NOW_S + 60, 1, "ICE", "none left") for zone in ZONES
    ]

    made = plan(
        snapshot(
            [mixed(nodes=2, constraint="[t4*1&a10g*1]")],
            [there],
            of=in_zones(),
            instances=[instance("i-1", known.offering)],
            records=[known],
            resting=resting,
        )
    )

    assert launches(made) == []
    assert [order.names for order in orders(made, OrderKind.UNDRAIN)] == [("i-1",)]


def test_a_node_that_would_do_for_two_kinds_is_left_to_the_one_that_needs_it() -> None:
    """`spot` is met by both; Slurm gives a node to one kind only."""
    found = [gated("i-1", T4), gated("i-2", A10G)]

    made = at(found, [mixed(nodes=2, constraint="[spot*1&a10g*1]")])

    assert launches(made) == []
    assert [order.names for order in orders(made, OrderKind.UNDRAIN)] == [("i-1", "i-2")]


def test_each_task_of_an_array_is_a_gang_of_its_own() -> None:
    made = plan(snapshot([mixed(count=2)], of=in_zones(nodes=1)))

    assert sorted((x.pool, x.count) for x in launches(made)) == [("a10g", 2), ("t4", 1)]
    assert "the rest of its tasks wait: pool t4 is limited to 1 nodes" in made.served[0].reason


def test_a_lost_member_is_replaced_by_one_of_its_kind_in_their_zone() -> None:
    lost = mixed(on=["i-1", "i-2", "i-3"])
    found = [gated("i-1", T4, ZONES[1]), gated("i-2", A10G, ZONES[1]), gated("i-3", A10G, ZONES[1])]
    busy = [
        (replace(n, state=node(state="ALLOCATED").state), replace(r, gated_for=""))
        for n, r in found
    ]
    busy[1] = (busy[1][0], replace(busy[1][1], phase=Phase.INTERRUPTED))

    # The first node of all is another job's, in another zone.
    made = at([*busy, (node("i-0"), record("i-0", offering(T4, zone=ZONES[0])))], [lost])

    assert bought(made) == [("a10g", 1, 1, "9", {"us-east-1b"})]


def test_a_pool_for_each_kind_is_asked_only_for_its_own() -> None:
    io = replace(pool("io", (T4,), markets=(Market.SPOT,)), labels=("io",))
    of = cluster(io, pool("a10g", (A10G,), markets=(Market.SPOT,)))

    made = plan(snapshot([mixed(nodes=2, constraint="[io*1&a10g*1]")], of=of))

    assert sorted((x.pool, x.count) for x in launches(made)) == [("a10g", 1), ("io", 1)]


def test_nothing_is_bought_for_kinds_of_which_the_job_names_every_node() -> None:
    named = mixed(nodes=2, constraint="[t4*1&a10g*1]", required_nodes=("i-1", "i-2"))
    taken = (node("i-2", A10G, state="ALLOCATED", gpus_alloc=4), gated("i-2", A10G)[1])

    made = at([gated("i-1", T4), (taken[0], replace(taken[1], gated_for=""))], [named])

    assert launches(made) == []
    assert "it waits for i-1 (" in why(made, "9")
