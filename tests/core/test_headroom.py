"""Headroom in the shape of jobs: free GPUs of running nodes count, what lacks is bought."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import launches, orders
from tests.make import (
    NOW_S,
    T4,
    T4_BIG,
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
from tidegate.core.explain.node_report import prospects
from tidegate.core.model.budgets import Budget, Disruption
from tidegate.core.model.calendar import Wanted
from tidegate.core.model.cluster import Cluster, Limits, Pool, Reservation
from tidegate.core.model.ec2 import Instance, InstanceType, Market, Offering
from tidegate.core.model.headroom import Headroom
from tidegate.core.model.idle_use import IdleUse
from tidegate.core.model.ledger import Launch, LaunchRecord, NodeRecord, Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Job, Shape
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

ZONES = ("us-east-1a", "us-east-1b")
ONE_GPU = Shape(gpus=1)
FOUR_GPUS = Shape(gpus=4)
UNLIMITED = Disruption((Budget(percent=100.0),), expire_after_s=3600)


def room(*headroom: Headroom, types: Sequence[InstanceType] = (T4, T4_BIG), **more: object) -> Pool:
    found = pool(types=types, markets=(Market.ON_DEMAND,), zones=ZONES)
    return replace(found, headroom=headroom, **more)  # type: ignore[arg-type]


def seen(
    of: Pool | Cluster,
    nodes: dict[str, InstanceType] | None = None,
    jobs: Sequence[Job] = (),
    *,
    zones: dict[str, str] | None = None,
    idle_s: float = 500,
    age_s: float = 600,
) -> Snapshot:
    """Nodes that are up, on which the GPUs of running jobs are taken."""
    taken: Counter[str] = Counter()
    for each in jobs:
        taken.update(dict.fromkeys(each.node_names, each.shape.gpus))
    places = {
        name: Offering(kind.name, (zones or {}).get(name, ZONES[0]), Market.ON_DEMAND)
        for name, kind in (nodes or {}).items()
    }
    state = {name: "MIXED" if taken[name] else "IDLE" for name in places}
    return snapshot(
        jobs,
        [
            node(name, kind, state=state[name], gpus_alloc=taken[name], idle_s=idle_s)
            for name, kind in (nodes or {}).items()
        ],
        of=of if isinstance(of, Cluster) else cluster(of),
        instances=[instance(name, on, age_s=age_s) for name, on in places.items()],
        records=[record(name, on, age_s=age_s) for name, on in places.items()],
    )


def bought(made: Plan) -> list[tuple[int, str]]:
    return [(each.count, each.offerings[0].instance_type) for each in launches(made)]


def released(made: Plan) -> list[str]:
    return [name for each in orders(made, OrderKind.RELEASE) for name in each.names]


def test_what_lacks_is_bought_on_what_is_cheapest_for_such_a_job():
    made = plan(seen(room(Headroom(ONE_GPU, jobs=3))))

    assert bought(made) == [(3, T4.name)]
    assert "pool t4 keeps room for 3 x [1 GPU" in launches(made)[0].reason
    assert launches(made)[0].for_jobs == ()
    assert bought(plan(seen(room(Headroom(FOUR_GPUS))))) == [(1, T4_BIG.name)]


def test_free_gpus_of_a_busy_node_are_headroom():
    busy = job(1, gpus=2, cpus=2, on=["i-1"])

    assert bought(plan(seen(room(Headroom(ONE_GPU, jobs=2)), {"i-1": T4_BIG}, [busy]))) == []
    assert bought(plan(seen(room(Headroom(ONE_GPU, jobs=3)), {"i-1": T4_BIG}, [busy]))) == [
        (1, T4.name)
    ]
    assert bought(plan(seen(room(Headroom(FOUR_GPUS)), {"i-1": T4_BIG}, [busy]))) == [
        (1, T4_BIG.name)
    ]


def test_what_a_pending_job_takes_is_free_no_more():
    made = plan(seen(room(Headroom(ONE_GPU)), {"i-1": T4}, [job(1)]))

    assert bought(made) == [(1, T4.name)]
    assert launches(made)[0].for_jobs == ()


def test_nodes_on_their_way_are_not_bought_again():
    booting = replace(
        seen(room(Headroom(ONE_GPU))),
        nodes=(record("i-1", offering(T4, Market.ON_DEMAND), phase=Phase.LAUNCHED),),
        instances=(instance("i-1", offering(T4, Market.ON_DEMAND)),),
    )

    assert bought(plan(booting)) == []


def test_only_the_idle_nodes_that_hold_it_stay_the_cheapest_first_and_say_so():
    of = room(Headroom(ONE_GPU, jobs=2))
    found = seen(of, {"i-1": T4_BIG, "i-2": T4, "i-3": T4, "i-4": T4})

    made = plan(found)

    assert sorted(released(made)) == ["i-1", "i-4"]
    assert bought(made) == []
    assert {name for name, use in made.idle.items() if use is IdleUse.KEPT} == {"i-2", "i-3"}
    held = prospects(found)
    assert held["i-2"].held.startswith("pool t4 keeps room for 2 x [1 GPU")
    assert held["i-1"].held == ""


def test_the_nodes_of_one_job_are_in_one_zone():
    of = room(Headroom(FOUR_GPUS, nodes=2))
    apart = {"i-1": T4_BIG, "i-2": T4_BIG}

    assert bought(plan(seen(of, apart, zones={"i-2": ZONES[0]}))) == []
    made = plan(seen(of, apart, zones={"i-2": ZONES[1]}))
    assert [(each.count, {o.zone for o in each.offerings}) for each in launches(made)] == [
        (1, {ZONES[0]})
    ]
    assert released(made) == ["i-2"]

    (first,) = launches(plan(seen(of)))
    assert (first.count, {each.zone for each in first.offerings}) == (2, {ZONES[0]})


def test_where_the_rest_has_to_be_in_a_dear_zone_its_price_there_counts():
    there, elsewhere = (Offering(T4_BIG.name, zone, Market.ON_DEMAND) for zone in ZONES)
    whole = cluster(room(Headroom(FOUR_GPUS, nodes=2)))
    cheap_usd = whole.prices[elsewhere]
    dear = replace(whole, prices={**whole.prices, there: 2 * cheap_usd})
    found = seen(dear, {"i-1": T4_BIG})

    (launch,) = launches(plan(found))
    assert (launch.offerings, launch.usd_per_hour_each) == ((there,), 2 * cheap_usd)

    tight = replace(dear, limits=Limits(usd_per_hour=found.nodes[0].usd_per_hour + cheap_usd + 0.1))
    assert launches(plan(replace(found, cluster=tight))) == []


def test_where_a_zone_has_no_more_the_whole_of_it_is_bought_in_another():
    found = seen(room(Headroom(FOUR_GPUS, nodes=2)), {"i-1": T4_BIG})
    on = Offering(T4_BIG.name, ZONES[0], Market.ON_DEMAND)
    refused = Resting(on, NOW_S + 60, 1, "InsufficientInstanceCapacity", "")

    (launch,) = launches(plan(replace(found, resting=(refused,))))

    assert (launch.count, {each.zone for each in launch.offerings}) == (2, {ZONES[1]})


def test_of_a_job_of_several_nodes_none_is_bought_where_a_limit_has_no_room_for_all():
    of = room(Headroom(FOUR_GPUS, nodes=2), limits=Limits(gpus=7))

    assert bought(plan(seen(of))) == []
    assert bought(plan(seen(room(Headroom(ONE_GPU, jobs=3), limits=Limits(nodes=2))))) == [
        (2, T4.name)
    ]


def test_two_kinds_of_jobs_do_not_share_a_room_but_a_minimum_is_room_as_well():
    both = Headroom(FOUR_GPUS), Headroom(ONE_GPU, jobs=2)

    assert sorted(bought(plan(seen(room(*both))))) == [(1, T4_BIG.name), (2, T4.name)]
    assert sorted(bought(plan(seen(room(*both, min_nodes=2, headroom_nodes=2))))) == [
        (1, T4_BIG.name),
        (2, T4.name),
    ]


def test_what_one_kind_of_jobs_has_is_not_counted_for_another():
    both = Headroom(FOUR_GPUS), Headroom(ONE_GPU, jobs=2)

    assert bought(plan(seen(room(*both), {"i-1": T4_BIG}))) == [(2, T4.name)]
    assert bought(plan(seen(room(*both), {"i-1": T4_BIG, "i-2": T4, "i-3": T4}))) == []


def test_small_jobs_get_nodes_of_their_own_though_a_large_one_costs_less_for_each():
    """The large one would be closed to them."""
    of = cluster(room(Headroom(ONE_GPU, jobs=4)))
    prices = {on: 1.6 if on.instance_type == T4_BIG.name else usd for on, usd in of.prices.items()}

    assert bought(plan(seen(replace(of, prices=prices)))) == [(4, T4.name)]


def test_a_node_that_is_paid_for_is_held_before_one_by_the_hour():
    by_hour = room(Headroom(FOUR_GPUS))
    both = replace(by_hour, markets=(Market.RESERVED, Market.ON_DEMAND))
    paid = Reservation("cr-1", T4_BIG.name, ZONES[0], 1, Market.RESERVED, NOW_S - 9999)
    of = replace(cluster(by_hour), pools=(both,), reservations=(paid,))
    found = seen(of, {"i-1": T4_BIG, "i-2": T4_BIG})
    on = Offering(T4_BIG.name, ZONES[0], Market.RESERVED)
    first, second = found.nodes
    found = replace(
        found,
        nodes=(first, replace(second, offering=on, usd_per_hour=0.0)),
        instances=(found.instances[0], replace(found.instances[1], offering=on)),
    )

    assert released(plan(found)) == ["i-1"]


def test_a_type_without_a_price_or_at_rest_is_passed_over():
    of = cluster(room(Headroom(ONE_GPU)))
    dear_only = {k: v for k, v in of.prices.items() if k.instance_type == T4_BIG.name}

    assert bought(plan(seen(replace(of, prices=dear_only)))) == [(1, T4_BIG.name)]
    assert bought(plan(seen(replace(of, prices={})))) == []


def test_none_while_the_cluster_is_stopped():
    stopped = replace(seen(room(Headroom(ONE_GPU))), wanted=Wanted(False, "for the night"))

    assert bought(plan(stopped)) == []


def old(*headroom: Headroom) -> Pool:
    of = room(*headroom)
    return replace(of, disruption=replace(of.disruption, expire_after_s=3600))


def aged(found: Snapshot, *names: str) -> Snapshot:
    """Only these have had their time."""

    def at_age[Shown: (NodeRecord, Instance)](each: Shown) -> Shown:
        return replace(each, launched_at_s=NOW_S - (4000 if each.instance_id in names else 600))

    nodes, instances = map(at_age, found.nodes), map(at_age, found.instances)
    return replace(found, nodes=tuple(nodes), instances=tuple(instances))


def test_an_old_node_that_holds_it_stays_beside_one_that_does_not():
    found = aged(seen(old(Headroom(FOUR_GPUS)), {"i-1": T4_BIG, "i-2": T4}, idle_s=0), "i-1")

    made = plan(found)

    assert (bought(made), released(made)) == ([(1, T4_BIG.name)], [])


def test_where_new_nodes_do_in_one_zone_an_old_one_in_another_goes():
    nodes = dict.fromkeys(("i-1", "i-2", "i-3", "i-4"), T4_BIG)
    of = old(Headroom(FOUR_GPUS, nodes=2))
    found = seen(of, nodes, zones={"i-3": ZONES[1], "i-4": ZONES[1]})

    assert sorted(released(plan(aged(found, "i-1")))) == ["i-1", "i-2"]


@pytest.mark.parametrize("is_there", [False, True])
def test_an_old_node_that_holds_it_goes_when_a_new_one_has_come(is_there: bool):
    of = room(Headroom(FOUR_GPUS), types=(T4_BIG,))
    of = replace(of, disruption=replace(of.disruption, expire_after_s=3600))
    found = seen(of, {"i-1": T4_BIG}, age_s=4000, idle_s=0)
    if is_there:
        on = found.nodes[0].offering
        new = replace(found.heard.reading.nodes[0], name="i-2")
        reading = replace(found.heard.reading, nodes=(*found.heard.reading.nodes, new))
        found = replace(
            found,
            digest=replace(found.heard, reading=reading),
            nodes=(*found.nodes, record("i-2", on)),
            instances=(*found.instances, instance("i-2", on)),
        )

    made = plan(found)

    assert (bought(made), released(made)) == (
        ([], ["i-1"]) if is_there else ([(1, T4_BIG.name)], [])
    )
    assert NOW_S - found.nodes[0].launched_at_s == 4000


@pytest.mark.parametrize(
    ("headroom", "nodes", "gpus", "buys", "lets_go"),
    [
        (Headroom(ONE_GPU, nodes=2), {"i-1": T4, "i-2": T4}, 4, [(2, T4.name)], []),
        (Headroom(ONE_GPU, nodes=2), {"i-1": T4, "i-2": T4}, 3, [(1, T4.name)], []),
        (Headroom(FOUR_GPUS), {"i-1": T4_BIG}, 8, [(1, T4_BIG.name)], []),
        # Of the smaller type there may be one more, which is of no use.
        (Headroom(FOUR_GPUS), {"i-1": T4_BIG}, 7, [], ["i-1"]),
        (Headroom(ONE_GPU, nodes=2), {"i-1": T4, "i-2": T4_BIG}, 5, [], ["i-1", "i-2"]),
    ],
)
def test_old_nodes_that_hold_it_go_one_by_one_or_before_new_ones_as_limits_leave_room(
    headroom: Headroom,
    nodes: dict[str, InstanceType],
    gpus: int,
    buys: list[tuple[int, str]],
    lets_go: list[str],
):
    of = replace(old(headroom), limits=Limits(gpus=gpus), disruption=UNLIMITED)
    found = seen(of, nodes, idle_s=0)

    made = plan(aged(found, *nodes))

    assert (bought(made), sorted(released(made))) == (buys, lets_go)
    for each in orders(made, OrderKind.RELEASE):
        assert "no room for a new one beside it" in each.text


def test_it_is_said_of_an_old_node_that_others_are_replaced_before_it():
    of = replace(old(Headroom(ONE_GPU, nodes=2)), limits=Limits(gpus=3), disruption=UNLIMITED)

    told = prospects(aged(seen(of, {"i-1": T4, "i-2": T4}), "i-1", "i-2"))

    assert told["i-1"].held == "a new node of pool t4 comes first"
    assert told["i-2"].held.startswith("others of pool t4 are replaced first")


def test_room_in_doubt_is_not_bought_again_while_a_job_hopes_for_it():
    """Its planner died, or has not ended yet."""
    of = cluster(room(Headroom(ONE_GPU, jobs=2), limits=Limits(nodes=9)))
    on = tuple(Offering(T4.name, zone, Market.ON_DEMAND) for zone in ZONES)
    launch = Launch("5eed-0-0", "t4", on, 2, 1, (), 0.5, "", "room")
    doubted = LaunchRecord(launch, NOW_S - 5, fleet_request(launch, "test", placement(of)))

    def bought_beside(*jobs: Job) -> list[tuple[int, str]]:
        return bought(plan(replace(seen(of, jobs=jobs), launches=(doubted,))))

    assert bought_beside() == []
    assert bought_beside(job(1, nodes=10, is_exclusive=True)) == []
