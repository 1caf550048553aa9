"""What a pool promises: limits, minimum, headroom, flexibility, job time."""

from dataclasses import replace

import pytest

from tests.core.reading import launches, orders, why
from tests.make import (
    A10G,
    T4,
    T4_BIG,
    cluster,
    digest,
    instance,
    job,
    node,
    offering,
    pool,
    record,
    snapshot,
)
from tidegate.core.model.cluster import Limits, Pool
from tidegate.core.model.ec2 import InstanceType, Market, Offering
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

HOUR_S = 3600.0


def only(**more: object) -> Pool:
    return replace(pool(types=(T4,)), **more)  # type: ignore[arg-type]


def counts(made: Plan) -> list[tuple[int, tuple[str, ...]]]:
    return [(x.count, x.for_jobs) for x in launches(made)]


def of_idle(number: int, of: Pool, jobs: int = 0) -> Snapshot:
    names = [f"i-{n}" for n in range(number)]
    return snapshot(
        [job(n) for n in range(jobs)],
        [node(name, idle_s=500) for name in names],
        of=cluster(of),
        instances=[instance(name) for name in names],
        records=[record(name, age_s=600) for name in names],
    )


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(vcpus=11), "limited to 11 vCPUs, 8 are used"),
        (Limits(memory_mib=40_000), "limited to 40000 MiB of memory, 32768 are used"),
        (Limits(gpus=2), "limited to 2 GPUs, 2 are used"),
        (Limits(nodes=2), "limited to 2 nodes, 2 are used"),
        (Limits(usd_per_hour=0.5), "limited to 0.50 USD per hour, 0.40 are spent"),
    ],
)
def test_every_limit_holds_for_pool_and_cluster_and_says_so(limits: Limits, words: str) -> None:
    jobs = [job(n) for n in range(1, 5)]
    by_pool = plan(snapshot(jobs, of=cluster(only(limits=limits, markets=(Market.SPOT,)))))
    whole = cluster(only(markets=(Market.SPOT,)), limits=limits)
    by_cluster = plan(snapshot(jobs, of=whole))

    for made in (by_pool, by_cluster):
        assert counts(made) == [(2, ("1", "2"))]
        assert words in why(made, "3")


def test_a_limit_goes_to_the_first_in_the_queue() -> None:
    jobs = [job(1, priority=1), job(2, priority=3), job(3, priority=2)]

    made = plan(snapshot(jobs, of=cluster(only(limits=Limits(nodes=2)))))

    assert counts(made) == [(2, ("2", "3"))]


def test_when_a_large_node_is_over_the_limit_the_first_jobs_get_smaller_ones() -> None:
    # Four jobs would share one large node; the limit of 3 GPUs leaves room for small ones.
    cheap_large = replace(
        cluster(pool(limits=Limits(gpus=3))),
        prices={each: 0.1 if each.instance_type == T4_BIG.name else 0.2 for each in both()},
    )

    made = plan(snapshot([job(n) for n in range(1, 5)], of=cheap_large))

    assert counts(made) == [(3, ("1", "2", "3"))]
    assert launches(made)[0].offerings[0].instance_type == T4.name


def both():
    return [each for _, each in pool().offerings()]


def test_a_pool_that_is_full_gives_way_to_the_next() -> None:
    first = only(name="first", weight=9, limits=Limits(nodes=1))

    made = plan(snapshot([job(1), job(2)], of=cluster(first, only(name="second"))))

    assert [(x.pool, x.for_jobs) for x in launches(made)] == [("first", ("1",)), ("second", ("2",))]


def test_a_pool_launches_what_it_lacks_of_its_minimum() -> None:
    made = plan(of_idle(1, only(min_nodes=3)))

    assert counts(made) == [(2, ())]
    assert "keeps at least 3 nodes" in launches(made)[0].reason


def test_nodes_in_flight_and_nodes_for_jobs_count_for_the_minimum() -> None:
    of = cluster(only(min_nodes=3), pool("a10g", (A10G,)))
    booting = record("i-1", phase=Phase.LAUNCHED)
    jobs = [job(1), job(2), job(3, gpu_type="a10g")]

    made = plan(snapshot(jobs, of=of, instances=[instance("i-1")], records=[booting]))

    assert sorted(counts(made)) == [(1, ()), (1, ("2",)), (1, ("3",))]


def test_idle_nodes_of_the_minimum_stay() -> None:
    made = plan(of_idle(3, only(min_nodes=2)))

    assert [order.names for order in orders(made, OrderKind.RELEASE)] == [("i-0",)]


def test_headroom_is_what_no_job_will_use() -> None:
    made = plan(of_idle(2, only(headroom_nodes=2), jobs=1))

    assert counts(made) == [(1, ())]
    assert orders(made, OrderKind.RELEASE) == []


def test_the_minimum_counts_as_headroom_while_it_is_free() -> None:
    made = plan(of_idle(2, only(headroom_nodes=2, min_nodes=2)))

    assert made.actions == ()


def test_a_minimum_never_passes_a_limit() -> None:
    made = plan(of_idle(1, only(min_nodes=5, limits=Limits(nodes=2))))

    assert counts(made) == [(1, ())]


def test_a_job_longer_than_the_pool_allows_is_told_so() -> None:
    short = cluster(only(max_job_time_s=HOUR_S))

    fitting = plan(snapshot([job(time_limit_s=HOUR_S)], of=short))
    long = plan(snapshot([job(time_limit_s=2 * HOUR_S)], of=short))
    unlimited = plan(snapshot([job()], of=short))

    assert counts(fitting) == [(1, ("1",))]
    assert why(long) == "pool t4 takes jobs of at most 1.0 h, the job has 2.0 h"
    assert why(unlimited) == "pool t4 takes jobs of at most 1.0 h, the job has no time limit"


NEAR = InstanceType("g4ad.xlarge", 4, 16384, 1, "t4")
DEAR = InstanceType("g4zz.xlarge", 4, 16384, 1, "t4")


def three(**more: object) -> Snapshot:
    of = replace(pool(types=(T4,)), instance_types=(T4, NEAR, DEAR), **more)  # type: ignore[arg-type]
    usd = {T4.name: 0.2, NEAR.name: 0.25, DEAR.name: 0.9}
    made = replace(cluster(pool(types=(T4,))), pools=(of,))
    steady = {Market.ON_DEMAND: 2.0}
    prices = {
        each: usd[each.instance_type] * steady.get(each.market, 1.0) for _, each in of.offerings()
    }
    return snapshot([job()], of=replace(made, prices=prices))


def named(made: Plan) -> list[str]:
    return [each.instance_type for each in launches(made)[0].offerings]


def test_beside_the_cheapest_stand_types_of_a_like_price_only() -> None:
    assert named(plan(three())) == [T4.name, NEAR.name]


def test_a_pool_that_wants_more_types_gets_dearer_ones_as_well() -> None:
    assert named(plan(three(min_types=3))) == [T4.name, NEAR.name, DEAR.name]
    assert named(plan(three(min_types=9))) == [T4.name, NEAR.name, DEAR.name]


def test_a_node_of_the_minimum_may_come_as_any_type_of_a_like_price() -> None:
    alone = three(min_nodes=1)
    assert alone.digest is not None

    made = plan(replace(alone, digest=digest()))

    assert (named(made), counts(made)) == ([T4.name, NEAR.name], [(1, ())])


def test_a_strict_pool_refuses_rather_than_name_fewer_types() -> None:
    made = plan(three(min_types=4, is_min_types_strict=True))

    assert launches(made) == []
    assert why(made) == "pool t4 wants 4 types to choose from, 3 fit"


def test_a_strict_pool_counts_the_dearest_type_that_it_must_name() -> None:
    short = Limits(usd_per_hour=0.5)

    assert launches(plan(three(min_types=3, is_min_types_strict=True, limits=short))) == []
    relaxed = plan(three(min_types=3, limits=short))
    assert named(relaxed) == [T4.name, NEAR.name]
    assert "names 2 of the 3 instance types that the pool wants" in launches(relaxed)[0].reason
    assert "instance types" not in launches(plan(three(min_types=3)))[0].reason


def test_an_alternative_never_passes_a_limit() -> None:
    made = plan(three(limits=Limits(usd_per_hour=0.24)))

    assert named(made) == [T4.name]
    assert launches(made)[0].usd_per_hour_each == 0.2


def test_a_fraction_of_a_gpu_is_bought_for_who_asks_for_its_type_and_for_no_whole_one() -> None:
    fraction = InstanceType("g6f.large", 2, 8192, 1, "l4-3gb", gpu_memory_mib=2861)
    of = cluster(pool("t4", (T4,)))
    of = replace(of, pools=(replace(of.pools[0], instance_types=(fraction,)),))
    of = replace(of, prices={offering(fraction): 0.1})

    made = plan(snapshot([job(1, gpu_type="l4-3gb"), job(2, gpu_type="l4")], of=of))

    assert [(x.pool, x.for_jobs) for x in launches(made)] == [("t4", ("1",))]
    assert "g6f.large has l4-3gb GPUs, not l4" in why(made, "2")


def test_a_request_names_at_most_100_offerings() -> None:
    zones = tuple(f"us-east-1{letter}" for letter in "abcdef")
    types = tuple(replace(T4, name=f"g{n}.xlarge") for n in range(20))
    of = replace(pool(types=(T4,), zones=zones), instance_types=types)
    prices = {each: 0.2 + 0.0001 * n for n, (_, each) in enumerate(of.offerings())}
    made = plan(snapshot([job()], of=replace(cluster(pool()), pools=(of,), prices=prices)))

    assert len(launches(made)[0].offerings) == 100


def test_a_pool_may_have_its_offerings_and_no_others() -> None:
    of = only(markets=(Market.SPOT, Market.CAPACITY_BLOCK), zones=("us-east-1a", "us-east-1b"))
    every = [
        Offering(kind.name, zone, market)
        for kind in (T4, T4_BIG)
        for zone in ("us-east-1a", "us-east-1b", "us-east-1c")
        for market in Market
    ]
    own = [each for _, each in of.offerings()]

    assert len(own) == 4
    assert sorted(each for each in every if of.may_have(each)) == sorted(own)
