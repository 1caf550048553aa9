"""Right sizes: what a whole queue costs decides, not what one job costs."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from tests.core.reading import launches, orders, why
from tests.make import (
    A10G,
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
from tidegate.core.buy.launches import MIN_CAPACITY_MAX
from tidegate.core.model.cluster import Cluster, Limits
from tidegate.core.model.ec2 import InstanceType, Market, Offering
from tidegate.core.model.ledger import Launch, Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan, Send, Terminate
from tidegate.core.model.slurm import Job
from tidegate.core.offers.catalogue import NEAR, Catalogue, balance, entry
from tidegate.core.planner import plan

ZONES = ("us-east-1a", "us-east-1b")
SMALL = InstanceType("c1.small", 2, 4096, 0, "")
MEDIUM = InstanceType("m1.medium", 8, 32768, 0, "")


def market(usd: dict[InstanceType, float], zones: tuple[str, ...] = ZONES[:1], **more: object):
    """One pool of these types at these on-demand prices."""
    of = replace(
        pool(types=(T4,), zones=zones, markets=(Market.ON_DEMAND,)),
        instance_types=tuple(usd),
        **more,  # type: ignore[arg-type]
    )
    prices = {Offering(t.name, z, Market.ON_DEMAND): p for t, p in usd.items() for z in zones}
    return replace(cluster(pool(types=(T4,))), pools=(of,), prices=prices)


def counts(made: Plan) -> dict[str, int]:
    return {each.offerings[0].instance_type: each.count for each in launches(made)}


def shares(number: int) -> list[Job]:
    return [job(n) for n in range(number)]


def test_where_cores_have_one_thread_jobs_get_cores_and_limits_count_vcpus():
    of = market({replace(MEDIUM, vcpus_per_cpu=2): 0.4}, limits=Limits(vcpus=16))

    queue = [job(n, gpus=0, gpu_type="", cpus=4) for n in (1, 2, 3)]
    larger = plan(snapshot([job(gpus=0, gpu_type="", cpus=5)], of=of))

    assert counts(plan(snapshot(queue[:2], of=of))) == {MEDIUM.name: 2}
    assert counts(plan(snapshot(queue, of=of))) == {MEDIUM.name: 2}
    on = Offering(MEDIUM.name, ZONES[0], Market.ON_DEMAND)
    booting = replace(record(phase=Phase.LAUNCHED), offering=on)
    more = plan(snapshot(queue[:2], of=of, instances=[instance(on=on)], records=[booting]))
    assert counts(more) == {MEDIUM.name: 1}
    assert "m1.medium has 4 CPUs, the job asks 5" in why(larger)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1, {T4.name: 1}),
        (3, {T4.name: 3}),
        (4, {T4_BIG.name: 1}),  # 3.0 against 4 x 0.8
        (5, {T4.name: 1, T4_BIG.name: 1}),
        (8, {T4_BIG.name: 2}),
    ],
)
def test_equal_jobs_share_a_large_node_once_that_is_cheaper(
    number: int, expected: dict[str, int]
) -> None:
    of = market({T4: 0.8, T4_BIG: 3.0})

    assert counts(plan(snapshot(shares(number), of=of))) == expected


def test_different_jobs_share_a_node_that_none_of_them_fills() -> None:
    of = market({T4_BIG: 3.0})
    jobs = [job(1, gpus=3), job(2, gpus=1, cpus=20), job(3, gpus=0, gpu_type="", cpus=20)]

    made = plan(snapshot(jobs, of=of))

    assert counts(made) == {T4_BIG.name: 1}
    assert len({each.by for each in made.served}) == 1


def test_a_job_that_wants_cpus_and_one_that_wants_memory_share_a_balanced_node() -> None:
    of = market({SMALL: 0.10, MEDIUM: 0.39})
    # Alone: four jobs of two CPUs on four small nodes, and a medium one for the memory.
    jobs = [job(n, gpus=0, gpu_type="", cpus=2, memory_mib=1000) for n in range(3)]
    jobs += [job(9, gpus=0, gpu_type="", cpus=2, memory_mib=28_000)]

    made = plan(snapshot(jobs, of=of))

    assert counts(made) == {MEDIUM.name: 1}


def test_a_long_job_does_not_keep_the_node_of_short_ones() -> None:
    of = market({T4: 0.8, T4_BIG: 3.0}, boot_s=0.0)
    short = [job(n, gpus=1, time_limit_s=3600.0) for n in range(3)]
    long = job(9, gpus=1, time_limit_s=360_000.0)

    made = plan(snapshot([*short, long], of=of))

    assert counts(made) == {T4.name: 4}


def test_a_long_job_does_not_fill_up_a_dear_node_that_is_needed_for_less() -> None:
    of = market({T4_BIG: 3.0, SMALL: 0.01}, boot_s=0.0)
    short = job(1, gpus=4, time_limit_s=3600.0)
    long = job(2, gpus=0, gpu_type="", time_limit_s=360_000.0)

    assert counts(plan(snapshot([short, long], of=of))) == {T4_BIG.name: 1, SMALL.name: 1}


def test_an_exclusive_job_has_its_node_to_itself() -> None:
    of = market({T4_BIG: 3.0})

    made = plan(snapshot([job(1, is_exclusive=True), job(2), job(3)], of=of))

    assert counts(made) == {T4_BIG.name: 2}
    assert len({each.by for each in made.served if each.job_id != "1"}) == 1


@pytest.mark.parametrize(
    ("asks", "expected"),
    [
        ({"gpus": 0, "is_exclusive": True}, 1),
        ({"gpus": 0, "cpus": 20}, 2),
        ({"gpus": 0, "cpus": 0, "memory_mib": 60_000}, 3),
        ({"gpus": 1}, 4),
        ({"gpus": 0, "cpus": 10}, 4),
    ],
)
def test_as_many_tasks_of_an_array_go_to_a_node_as_fit(asks: dict[str, Any], expected: int) -> None:
    on = offering(T4_BIG)
    made = plan(
        snapshot(
            [job(1, count=9, **asks)],
            [node("i-1", T4_BIG)],
            instances=[instance(on=on)],
            records=[record(on=on)],
        )
    )

    assert made.served[0].by.count("i-1") == expected


def test_an_array_is_spread_over_as_many_nodes_as_it_needs() -> None:
    of = market({T4_BIG: 3.0})

    made = plan(snapshot([job("4", count=10)], of=of))

    assert counts(made) == {T4_BIG.name: 3}
    assert len(made.served[0].by) == 10


def test_a_plan_of_many_launches_is_cut_and_says_what_comes_next() -> None:
    jobs = [job(n, nodes=2, memory_mib=1000 + n, priority=-n) for n in range(25)]

    made = plan(snapshot(jobs))

    assert (len(launches(made)), made.is_cut, len(made.unmet)) == (20, True, 5)
    assert {each.reason for each in made.unmet} == {
        "a plan holds 20 launches, it is in the next one"
    }


def test_the_first_in_the_queue_are_in_a_plan_that_is_cut() -> None:
    jobs = [job(1, priority=1), job(2, gpus=4, gpu_type="a10g"), job(3, nodes=2, priority=2)]
    of = cluster(pool(types=(T4,)), pool("a10g", (A10G,)))

    made = plan(snapshot(jobs, of=of), launches_max=2)

    assert [each.for_jobs for each in launches(made)] == [("3",), ("1",)]
    assert (made.is_cut, why(made, "2")) == (
        True,
        "a plan holds 2 launches, it is in the next one",
    )


def test_a_gang_above_ec2s_minimum_capacity_is_bought_in_chunks_of_one_zone() -> None:
    of = market({T4: 0.8}, zones=ZONES)

    made = plan(snapshot([job(9, nodes=2500)], of=of))

    bought = launches(made)
    assert [(x.count, x.min_count, x.gated_for) for x in bought] == [
        (MIN_CAPACITY_MAX, MIN_CAPACITY_MAX, "9"),
        (MIN_CAPACITY_MAX, MIN_CAPACITY_MAX, "9"),
        (500, 500, "9"),
    ]
    assert len({each.zone for x in bought for each in x.offerings}) == 1


@pytest.mark.parametrize("nodes", [2, MIN_CAPACITY_MAX])
def test_a_gang_of_one_chunk_may_come_in_any_zone_and_one_with_a_placement_group_in_one(
    nodes: int,
) -> None:
    anywhere = plan(snapshot([job(9, nodes=nodes)], of=market({T4: 0.8}, zones=ZONES)))
    placed = market({T4: 0.8}, zones=ZONES, placement_group=True)

    assert [x.zone for x in launches(anywhere)[0].offerings] == list(ZONES)
    assert [
        x.zone for x in launches(plan(snapshot([job(9, nodes=nodes)], of=placed)))[0].offerings
    ] == [ZONES[0]]


def test_the_rest_of_a_gang_is_bought_in_the_zone_where_it_has_nodes() -> None:
    of = market({T4: 0.8}, zones=ZONES)
    on = Offering(T4.name, ZONES[1], Market.ON_DEMAND)
    made = plan(
        snapshot(
            [job(9, nodes=3)],
            of=of,
            instances=[instance("i-1", on)],
            records=[replace(record("i-1", gated_for="9", phase=Phase.LAUNCHED), offering=on)],
        )
    )

    (launch,) = launches(made)
    assert (launch.count, {each.zone for each in launch.offerings}) == (2, {ZONES[1]})


def test_nodes_of_a_gang_lie_in_one_zone_even_when_two_zones_have_some() -> None:
    of = market({T4: 0.8}, zones=ZONES)
    names = ["i-1", "i-2", "i-3"]
    on = [Offering(T4.name, zone, Market.ON_DEMAND) for zone in (ZONES[0], ZONES[1], ZONES[1])]
    made = plan(
        snapshot(
            [job(9, nodes=3)],
            [node(name) for name in names],
            of=of,
            instances=[instance(name, o) for name, o in zip(names, on, strict=True)],
            records=[replace(record(n), offering=o) for n, o in zip(names, on, strict=True)],
        )
    )

    assert made.served[0].by[:2] == ("i-2", "i-3")
    assert launches(made)[0].count == 1


def test_components_of_a_heterogeneous_job_come_together_or_not_at_all() -> None:
    parts = [job("5", het_job_id="5"), job("6", nodes=2, het_job_id="5")]

    made = plan(snapshot(parts))
    short = plan(snapshot(parts, of=cluster(pool(limits=Limits(nodes=2)))))

    assert [(x.count, x.gated_for, x.for_jobs) for x in launches(made)] == [
        (2, "5", ("6",)),
        (1, "5", ("5",)),
    ]
    assert launches(short) == []
    assert "limited to 2 nodes" in why(short, "5")
    assert why(short, "5") == why(short, "6")


def test_a_component_leaves_the_only_node_of_another_to_it() -> None:
    parts = [job("5", het_job_id="5"), job("6", memory_mib=60_000, het_job_id="5")]
    types = {"i-1": T4_BIG, "i-2": T4}

    made = plan(
        snapshot(
            parts,
            [node(name, of) for name, of in types.items()],
            instances=[instance(name, offering(of)) for name, of in types.items()],
            records=[record(name, offering(of)) for name, of in types.items()],
        )
    )

    assert launches(made) == []
    assert {each.job_id: each.by for each in made.served} == {"5": ("i-2",), "6": ("i-1",)}


def test_what_a_refused_gang_gave_back_serves_the_next_job() -> None:
    parts = [job("5", het_job_id="5", priority=9), job("6", nodes=2, het_job_id="5", priority=9)]

    made = plan(snapshot([*parts, job(7)], of=cluster(pool(types=(T4,), limits=Limits(nodes=2)))))

    assert [x.for_jobs for x in launches(made)] == [("7",)]


def test_a_node_that_a_refused_gang_gave_back_is_not_empty_where_others_came_beside_it() -> None:
    on = offering(T4_BIG)
    gang, beside = job(5, nodes=2, priority=9), job(6, priority=5)

    made = plan(
        snapshot(
            [gang, beside, job(7, is_exclusive=True)],
            [node(type_=T4_BIG)],
            of=cluster(pool(limits=Limits(nodes=1))),
            instances=[instance(on=on)],
            records=[record(on=on)],
        )
    )

    assert {each.job_id: each.by for each in made.served} == {"6": ("i-1",)}


@pytest.mark.parametrize("asks", [{"gpus": 2}, {"cpus": 5}, {"memory_mib": 20_000}])
def test_a_gang_that_has_its_nodes_alone_counts_on_none_that_are_too_small(
    asks: dict[str, Any],
) -> None:
    names = ["i-1", "i-2"]
    made = plan(
        snapshot(
            [job(9, nodes=2, is_exclusive=True, **asks)],
            [node(name) for name in names],
            instances=[instance(name) for name in names],
            records=[record(name) for name in names],
        )
    )

    assert counts(made) == {T4_BIG.name: 2}


def test_a_node_that_a_refused_gang_gave_back_has_all_its_room_again() -> None:
    gang = job(5, nodes=3, cpus=2, memory_mib=9_000, priority=9)
    whole = job(7, cpus=T4.vcpus, memory_mib=T4.slurm_memory_mib)

    made = plan(
        snapshot(
            [gang, whole],
            [node()],
            of=cluster(pool(types=(T4,), limits=Limits(nodes=2))),
            instances=[instance()],
            records=[record()],
        )
    )

    assert {each.job_id: each.by for each in made.served} == {"7": ("i-1",)}


def test_orders_and_ends_come_before_purchases() -> None:
    lost = record("i-2", age_s=1000, phase=Phase.LAUNCHED)
    made = plan(
        snapshot(
            [job(1, gpus=4)],
            [node("i-1", idle_s=400)],
            instances=[instance("i-1"), instance("i-2", age_s=1000)],
            records=[record("i-1", age_s=500), lost],
        )
    )

    kinds = [type(each) for each in made.actions if isinstance(each, Send | Terminate | Launch)]
    assert kinds == [Send, Terminate, Launch]
    assert orders(made, OrderKind.RELEASE)[0].names == ("i-1",)


def test_two_kinds_of_jobs_use_up_both_cpus_and_memory() -> None:
    assert balance((0, 8, 32), (0, 2, 2), (0, 1, 7)) == (2, 4)
    assert balance((0, 8, 32), (0, 2, 2), (0, 4, 4)) == (0, 0)
    assert balance((0, 8, 32), (0, 1, 8), (0, 1, 7)) == (0, 0)


def test_the_cheapest_per_job_are_those_that_a_full_search_finds() -> None:
    chance = Random(7)
    entries = []
    for number in range(60):
        cpus, memory_mib = chance.choice((2, 8, 32)), 1024 * chance.randint(2, 200)
        kind = InstanceType(f"x{number}", cpus, memory_mib, chance.choice((0, 0, 1, 4)), "t4")
        usd = cpus * 0.04 + memory_mib / 400_000 + kind.gpus * chance.uniform(0.5, 0.7)
        entries.append(entry(kind, [(usd, offering(kind))]))
    of = Catalogue(tuple(sorted(entries, key=lambda each: each.usd_per_hour)))

    for _ in range(300):
        need = (chance.choice((0, 1, 2)), chance.randint(1, 8), chance.randint(100, 30_000))
        mask = of.fit(need)
        whole = sorted((of.price_per_job(need, n), n) for n in range(60) if mask >> n & 1)
        found = of.nearest(need, mask)
        assert found == [each for each in whole if each[0] <= NEAR * whole[0][0]][: len(found)]
        assert found or not whole


def test_a_catalogue_says_what_is_within_what_is_left() -> None:
    of: Cluster = cluster(pool(limits=Limits(gpus=3, usd_per_hour=0.3)))

    made = plan(snapshot([job(1, gpus=1), job(2, gpus=4)], of=of))

    assert counts(made) == {T4.name: 1}
    assert "limited to 3 GPUs" in why(made, "2")
