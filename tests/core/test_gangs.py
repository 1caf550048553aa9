"""Gangs: all or nothing, gated until complete."""

import dataclasses

from tests.core.reading import ended, launches, orders, why
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
from tidegate.core.model.cluster import Limits
from tidegate.core.model.ec2 import Market
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Job, Node
from tidegate.core.planner import plan


def test_a_gang_is_bought_whole_and_gated() -> None:
    made = plan(snapshot([job(9, nodes=3, gpus=4, gpu_type="a10g")]))

    launch = launches(made)[0]
    assert (launch.count, launch.min_count, launch.gated_for) == (3, 3, "9")
    assert "all or none" in launch.reason


def test_a_gang_over_the_limit_buys_nothing_at_all() -> None:
    small = cluster(pool("a10g", (A10G,), limits=Limits(nodes=2)))

    made = plan(snapshot([job(nodes=3, gpus=4, gpu_type="a10g")], of=small))

    assert launches(made) == []
    assert "pool a10g is limited to 2 nodes" in why(made)


def test_a_gang_opens_in_one_order_when_all_its_nodes_are_there() -> None:
    names = ["i-1", "i-2"]
    gang = job(9, nodes=2, gpus=4, gpu_type="a10g")
    drained = [node(n, A10G, state="IDLE+DRAIN+DYNAMIC_NORM") for n in names]
    known = [record(n, offering(A10G), pool="a10g", gated_for="9") for n in names]
    running = [instance(n, offering(A10G), pool="a10g") for n in names]

    one_there = plan(
        snapshot([gang], drained[:1], instances=running, records=[known[0], booting(known[1])])
    )
    all_there = plan(snapshot([gang], drained, instances=running, records=known))

    assert orders(one_there, OrderKind.UNDRAIN) == []
    assert [order.names for order in orders(all_there, OrderKind.UNDRAIN)] == [("i-1", "i-2")]


def booting(known: NodeRecord) -> NodeRecord:
    return dataclasses.replace(known, phase=Phase.LAUNCHED)


def test_a_gated_node_whose_gang_is_gone_opens_for_others() -> None:
    drained = node(state="IDLE+DRAIN+DYNAMIC_NORM")

    made = plan(snapshot([], [drained], instances=[instance()], records=[record(gated_for="9")]))

    assert orders(made, OrderKind.UNDRAIN)[0].names == ("i-1",)


def test_no_small_job_counts_on_a_gated_node() -> None:
    drained = node(state="IDLE+DRAIN+DYNAMIC_NORM")
    gang = job(9, nodes=2, priority=5)

    made = plan(
        snapshot([gang, job(1)], [drained], instances=[instance()], records=[record(gated_for="9")])
    )

    assert {x.for_jobs: x.count for x in launches(made)} == {("9",): 1, ("1",): 1}


def test_room_beside_a_gang_is_no_room_for_others_while_it_is_gated() -> None:
    drained = node("i-1", T4_BIG, state="IDLE+DRAIN+DYNAMIC_NORM")
    gang = job(9, nodes=2, gpus=2, priority=5)
    on = offering(T4_BIG)

    made = plan(
        snapshot(
            [gang, job(1, gpus=2)],
            [drained],
            instances=[instance(on=on)],
            records=[record(on=on, gated_for="9")],
        )
    )

    assert {x.for_jobs: x.count for x in launches(made)} == {("9",): 1, ("1",): 1}


def test_a_gang_that_loses_a_second_node_while_a_first_one_is_replaced_buys_one_more() -> None:
    on = offering(A10G)
    gang = job(9, nodes=3, gpus=4, gpu_type="a10g", on=["i-1", "i-2", "i-3"])
    busy = [node(n, A10G, state="ALLOCATED", gpus_alloc=4) for n in ("i-1", "i-2", "i-3")]
    names = ("i-1", "i-2", "i-3", "i-4")
    made = plan(
        snapshot(
            [gang],
            busy,
            instances=[instance(n, on, pool="a10g") for n in names],
            records=[
                record("i-1", on, pool="a10g", phase=Phase.INTERRUPTED),
                record("i-2", on, pool="a10g", phase=Phase.INTERRUPTED),
                record("i-3", on, pool="a10g"),
                record("i-4", on, pool="a10g", phase=Phase.LAUNCHED, gated_for="9"),
            ],
        )
    )

    assert [(x.count, x.gated_for) for x in launches(made)] == [(1, "9")]


def test_a_member_that_never_came_is_ended_and_only_it_is_bought_again() -> None:
    gang = job(9, nodes=2, gpus=4, gpu_type="a10g")
    there = node("i-1", A10G, state="IDLE+DRAIN+DYNAMIC_NORM")
    on = offering(A10G)
    lost = record("i-2", on, pool="a10g", phase=Phase.LAUNCHED, gated_for="9", age_s=1000)

    made = plan(
        snapshot(
            [gang],
            [there],
            instances=[
                instance("i-1", on, pool="a10g"),
                instance("i-2", on, pool="a10g", age_s=1000),
            ],
            records=[record("i-1", on, pool="a10g", gated_for="9"), lost],
        )
    )

    assert ended(made) == ["i-2"]
    assert [(x.count, x.gated_for) for x in launches(made)] == [(1, "9")]
    assert orders(made, OrderKind.UNDRAIN) == []


def test_a_gang_that_moves_to_another_place_is_bought_there_once() -> None:
    """Its place is at rest and one of its nodes goes: the whole gang boots elsewhere by now."""
    two_zones = cluster(pool("a10g", (A10G,), zones=("us-east-1a", "us-east-1b")))
    running = job(9, nodes=2, gpus=4, gpu_type="a10g", on=["i-1", "i-2"])
    here, there = offering(A10G), offering(A10G, zone="us-east-1b")
    resting = [
        Resting(offering(A10G, market), NOW_S + 100, 1, "spot interruption", "")
        for market in Market
    ]
    lost = record("i-1", here, pool="a10g", phase=Phase.INTERRUPTED)
    kept = record("i-2", here, pool="a10g")
    moving = [booting(record(n, there, pool="a10g", gated_for="9")) for n in ("i-3", "i-4")]
    nodes = [node(n, A10G, state="ALLOCATED", gpus_alloc=4) for n in ("i-1", "i-2")]

    def made(records: list[NodeRecord], resting: list[Resting] = resting) -> Plan:
        seen = [instance(r.instance_id, r.offering, pool="a10g") for r in records]
        return plan(
            snapshot(
                [running], nodes, of=two_zones, instances=seen, records=records, resting=resting
            )
        )

    assert [launch.count for launch in launches(made([lost, kept]))] == [2]
    assert [launch.count for launch in launches(made([lost, kept], []))] == [1]
    assert launches(made([lost, kept, *moving])) == []
    assert launches(made([lost, kept, *moving], [])) == []  # its place has some again: too late
    assert [launch.count for launch in launches(made([lost, kept, *moving[:1]]))] == [1]


def test_what_a_greater_gang_holds_in_vain_a_lesser_one_may_use() -> None:
    """Else its nodes idle, go, and are bought again, for ever."""
    small = cluster(pool("a10g", (A10G,), limits=Limits(nodes=2)))
    greater = job(8, nodes=4, gpus=4, gpu_type="a10g", priority=5)
    lesser = job(9, nodes=2, gpus=4, gpu_type="a10g")
    names = ["i-1", "i-2"]

    made = plan(
        snapshot(
            [greater, lesser],
            [node(n, A10G, idle_s=1000) for n in names],
            of=small,
            instances=[instance(n, offering(A10G), pool="a10g") for n in names],
            records=[record(n, offering(A10G), pool="a10g") for n in names],
        )
    )

    assert [each.job_id for each in made.served] == ["9"]
    assert orders(made, OrderKind.RELEASE) == []


def test_a_gang_that_can_never_be_had_keeps_no_idle_node() -> None:
    small = cluster(pool("a10g", (A10G,), limits=Limits(nodes=1)))
    gang = job(8, nodes=4, gpus=1, gpu_type="a10g", priority=5)
    beside = [job(n, gpus=2, gpu_type="a10g") for n in (1, 2, 3)]

    def made(jobs: list[Job]) -> Plan:
        running = [instance("i-1", offering(A10G), pool="a10g")]
        known = [record("i-1", offering(A10G), pool="a10g")]
        idle = [node("i-1", A10G, idle_s=1000)]
        return plan(snapshot(jobs, idle, of=small, instances=running, records=known))

    assert orders(made([gang]), OrderKind.RELEASE)[0].names == ("i-1",)
    assert [each.job_id for each in made([gang, *beside]).served] == ["1", "2"]


def test_nodes_of_two_tasks_that_both_lack_one_open_for_neither() -> None:
    names = ["i-1", "i-2", "i-3", "i-4"]
    tasks = job(9, nodes=2, gpus=4, gpu_type="a10g", count=2)
    known = [record(n, offering(A10G), pool="a10g", gated_for="9") for n in names]
    running = [instance(n, offering(A10G), pool="a10g") for n in names]
    gated = [node(n, A10G, state="IDLE+DRAIN+DYNAMIC_NORM") for n in names]
    open_one = node("i-3", A10G)

    def opened(nodes: list[Node], joined: int) -> list[tuple[str, ...]]:
        records = [*known[:joined], *map(booting, known[joined:])]
        made = plan(snapshot([tasks], nodes, instances=running, records=records))
        return [order.names for order in orders(made, OrderKind.UNDRAIN)]

    # Of the first task i-2 boots, of the second i-4; i-3 was open before.
    known[1], known[2] = booting(known[1]), record("i-3", offering(A10G), pool="a10g")
    assert opened([gated[0], open_one], joined=3) == []
    assert opened([*gated[:2], open_one], joined=3) == [("i-1", "i-2")]


def test_a_replacement_comes_to_where_the_other_nodes_are_even_when_those_are_leaving() -> None:
    two_zones = cluster(pool("a10g", (A10G,), zones=("us-east-1a", "us-east-1b")))
    there = offering(A10G, zone="us-east-1b")
    running = job(9, nodes=2, gpus=4, gpu_type="a10g", on=["i-1", "i-2"])
    records = [
        record("i-1", there, pool="a10g", phase=Phase.INTERRUPTED),
        record("i-2", there, pool="a10g"),  # EC2 does not show it
    ]
    nodes = [node(n, A10G, state="ALLOCATED", gpus_alloc=4) for n in ("i-1", "i-2")]
    seen = [instance("i-1", there, pool="a10g")]

    made = plan(snapshot([running], nodes, of=two_zones, instances=seen, records=records))

    zones = {each.zone for launch in launches(made) for each in launch.offerings}
    assert zones == {"us-east-1b"}


def test_a_gang_that_is_open_is_whole_though_some_of_an_earlier_try_boots_elsewhere() -> None:
    """In the second after it opens, before Slurm has started it."""
    a, b = (offering(A10G, zone=zone) for zone in ("us-east-1a", "us-east-1b"))
    up = {name: record(name, b, pool="a10g") for name in ("i-1", "i-2", "i-3")}
    late = {name: record(name, a, pool="a10g", gated_for="9") for name in ("i-4", "i-5")}
    known = [*up.values(), *map(booting, late.values())]

    made = plan(
        snapshot(
            [job(9, nodes=3, gpus=4, gpu_type="a10g")],
            [node(name, A10G) for name in up],
            of=cluster(pool("a10g", (A10G,), zones=("us-east-1a", "us-east-1b"))),
            instances=[instance(r.instance_id, r.offering, pool="a10g") for r in known],
            records=known,
            resting=[Resting(a, NOW_S + 100, 1, "spot interruption", "")],
        )
    )

    assert launches(made) == []
    assert [each.by for each in made.served] == [("i-1", "i-2", "i-3")]


def test_a_gang_that_moves_once_more_uses_what_it_has_in_the_next_place() -> None:
    """Each place lost a node and rests; what is left in the second needs one more there."""
    of = cluster(
        pool("a", (A10G,), zones=("us-east-1a",)),
        pool("b", (A10G, T4_BIG), zones=("us-east-1b",)),
    )
    zones = {"a": "us-east-1a", "b": "us-east-1b"}
    resting = [
        Resting(offering(A10G, market, zone), NOW_S + 100, 1, "spot interruption", "")
        for market in Market
        for zone in zones.values()
    ]
    left = [
        booting(record(f"i-{n}", offering(A10G, zone=zone), pool=n, gated_for="9"))
        for n, zone in zones.items()
    ]
    seen = [instance(r.instance_id, r.offering, pool=r.pool) for r in left]
    gang = job(9, nodes=2, gpus=4, gpu_type="")

    made = plan(snapshot([gang], of=of, instances=seen, records=left, resting=resting))

    assert [(each.pool, each.count) for each in launches(made)] == [("b", 1)]


def test_of_what_another_gang_gives_back_one_takes_no_more_than_it_lacks() -> None:
    limited = cluster(pool(types=(T4, T4_BIG), limits=Limits(nodes=3)))
    greater = job(8, nodes=3, gpus=4, priority=5)
    lesser = job(9, nodes=2, gpus=1)
    types = {"i-1": T4, "i-2": T4_BIG, "i-3": T4_BIG}

    made = plan(
        snapshot(
            [greater, lesser],
            [node(name, of) for name, of in types.items()],
            of=limited,
            instances=[instance(name, offering(of)) for name, of in types.items()],
            records=[record(name, offering(of)) for name, of in types.items()],
        )
    )

    assert [(each.job_id, len(each.by)) for each in made.served] == [("9", 2)]


def test_a_gang_takes_the_place_that_one_before_it_held_in_vain() -> None:
    """What would do for it elsewhere in part must not have its nodes let go and bought again."""
    big, small = pool("big", (A10G,), limits=Limits(nodes=2)), pool("small", (A10G,))
    of = cluster(big, dataclasses.replace(small, limits=Limits(nodes=1)))
    names = {"i-1": "big", "i-2": "big", "i-3": "small"}
    seen = snapshot(
        [
            job(8, nodes=3, gpus=4, gpu_type="a10g", priority=9),
            job(9, nodes=2, gpus=1, gpu_type="a10g", constraint=""),
        ],
        [node(name, A10G) for name in names],
        of=of,
        instances=[instance(n, offering(A10G), pool=p) for n, p in names.items()],
        records=[record(n, offering(A10G), pool=p) for n, p in names.items()],
    )

    made = plan(seen)

    assert "limited" in why(made, "8")
    assert {each.job_id: each.by for each in made.served} == {"9": ("i-1", "i-2")}


def test_what_a_gang_lost_comes_from_what_one_before_it_held_in_vain() -> None:
    on, names = offering(A10G), ["i-1", "i-2", "i-3"]
    greater = job(8, nodes=4, gpus=4, gpu_type="a10g", priority=9)
    running = job(9, nodes=2, gpus=4, gpu_type="a10g", on=names[:2])
    busy = [node(n, A10G, state="ALLOCATED", gpus_alloc=4) for n in names[:2]]
    phases = {"i-1": Phase.INTERRUPTED}

    made = plan(
        snapshot(
            [greater, running],
            [*busy, node("i-3", A10G)],
            of=cluster(pool("a10g", (A10G,), limits=Limits(nodes=4))),
            instances=[instance(n, on, pool="a10g") for n in names],
            records=[record(n, on, pool="a10g", phase=phases.get(n, Phase.JOINED)) for n in names],
        )
    )

    assert "limited to 4 nodes" in why(made, "8")
    assert launches(made) == []
    assert {each.job_id: each.by for each in made.served} == {"9": ("i-3",)}
