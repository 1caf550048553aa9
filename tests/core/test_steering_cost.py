"""What a job costs on a node of others and on its own one: at which point the one gets dearer."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import launches, orders
from tests.core.test_steering import (
    HOUR_S,
    ON_DEMAND,
    busy,
    closed,
    closings,
    fleet,
    large,
    seen,
    small,
    weights,
)
from tests.make import (
    A10G,
    NOW_S,
    T4,
    T4_BIG,
    USD_PER_HOUR,
    cluster,
    job,
    node,
    offering,
    pool,
    snapshot,
)
from tidegate.core.buy.steering import Steering, left_s, outlasts_s
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Market
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan
from tidegate.core.model.pool_history import Arrivals, PoolHistory, SpareNode
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.waiting import Waiting
from tidegate.core.offers.limits import Usage
from tidegate.core.offers.offers import OfferGroups
from tidegate.core.passes.steer import weight_of
from tidegate.core.planner import plan

BOOT_S = 300.0
USD, BIG_USD = (USD_PER_HOUR[each.name][Market.ON_DEMAND] for each in (T4, T4_BIG))
NEAR_S = 5.0  # so near to the point at which both cost the same


def own_cost(runs_s: float, wait_usd_per_hour: float = 0.0) -> float:
    """Of the boot and the run of a small node; times 3,600, as all costs here."""
    return USD * (BOOT_S + runs_s) + wait_usd_per_hour * BOOT_S


def beside(left: float, gpus: int = 3, job_id: int = 8) -> Job:
    """A job on the large node that runs on for so long."""
    there = job(job_id, gpus=gpus, on=["i-big"], time_limit_s=left + 60)
    return replace(there, started_at_s=NOW_S - 60)


def about(*runs_s: float, **more: object) -> list[Job]:
    """Small jobs that have just begun on nodes of their own."""
    return [
        replace(small(n, **more), state="RUNNING", node_names=(f"i-{n}",), time_limit_s=each_s)
        for n, each_s in enumerate(runs_s)
    ]


def dear_from(runs_s: float, factor: float = 1.0) -> float:
    """Others must run on for less for small jobs of this mean to be dearer there by the factor.

    Of what they are said to run on half is counted on.
    """
    lives_s = runs_s**2 * BIG_USD / (factor * own_cost(runs_s)) - runs_s
    return lives_s / 0.5


@pytest.mark.parametrize("runs_s", [(HOUR_S,), (HOUR_S, 3 * HOUR_S), (HOUR_S, 2 * HOUR_S, 60.0)])
def test_a_node_closes_where_jobs_as_long_as_those_about_would_be_dearer_there(
    runs_s: tuple[float, ...],
) -> None:
    even_s = dear_from(sum(runs_s) / len(runs_s))

    def closes(left: float) -> bool:
        return bool(closings(plan(seen([*about(*runs_s), beside(left)], [busy(gpus=3)]))))

    assert (closes(even_s - NEAR_S), closes(even_s + NEAR_S)) == (True, False)


def test_a_node_on_which_a_job_starts_now_is_not_closed_under_it() -> None:
    jobs = [*about(HOUR_S), beside(600)]

    assert closings(plan(seen(jobs, [busy(gpus=3)])))
    assert not closings(plan(seen([*jobs, small(7)], [busy(gpus=3)])))


def test_on_a_full_node_the_first_job_that_ends_makes_room_and_the_last_one_counts() -> None:
    even_s = dear_from(HOUR_S)

    def closes(left: float) -> bool:
        there = [beside(left + 600, gpus=2), beside(600, gpus=2, job_id=9)]
        return bool(closings(plan(seen([*about(HOUR_S), *there], [busy(gpus=4)]))))

    assert (closes(even_s - NEAR_S), closes(even_s + NEAR_S)) == (True, False)


def test_a_job_that_wants_its_node_alone_never_runs_beside_others() -> None:
    long = beside(9 * dear_from(HOUR_S))

    assert closings(plan(seen([*about(HOUR_S, is_exclusive=True), long], [busy(gpus=3)])))
    assert not closings(plan(seen([*about(HOUR_S), long], [busy(gpus=3)])))


def test_a_closed_node_opens_only_where_the_loss_has_become_half_as_large() -> None:
    even_s = dear_from(HOUR_S, factor=0.5)

    def opens(left: float) -> bool:
        shown = seen([*about(HOUR_S), beside(left)], [closed(gpus=3)])
        return bool(orders(plan(shown), OrderKind.UNDRAIN))

    assert (opens(even_s - NEAR_S), opens(even_s + NEAR_S)) == (False, True)


OFTEN = PoolHistory(
    "t4",
    arrivals=(Arrivals(T4.name, int(NOW_S // BOOT_S), spare=(SpareNode(0.2, 0.2, 0.2, 0.2),)),),
    newest_job=50,
)


@pytest.mark.parametrize(
    ("of", "history", "waits"),
    [
        (fleet(), (), 0.0),
        (replace(fleet(), waiting=Waiting(20.0)), (), 20.0),
        (replace(fleet(), waiting=Waiting(20.0)), (OFTEN,), 0.0),  # spare ones are kept
        (cluster(*fleet().pools, replace(pool("slow"), boot_s=9000.0)), (), 0.0),
        # Nodes of another partition, which boot at once.
        (replace(fleet(), pools=(*fleet().pools, replace(pool("others"), boot_s=1.0))), (), 0.0),
    ],
)
def test_a_waiting_job_is_worth_a_node_that_it_prolongs_for_less_than_its_own_would_cost(
    of: Cluster, history: tuple[PoolHistory, ...], waits: float
) -> None:
    most_s = own_cost(HOUR_S, waits) / BIG_USD  # on top of what the others run
    even_s = (HOUR_S - most_s) / 0.5

    def opened(left: float) -> tuple[bool, int]:
        made = _planned(of, history, [small(), beside(left)])
        return bool(orders(made, OrderKind.UNDRAIN)), len(launches(made)[:1])

    assert opened(even_s - NEAR_S) == (False, 1)
    assert opened(even_s + NEAR_S)[0]


def test_the_reason_says_how_much_sooner_a_job_starts_on_a_dear_node_and_for_how_much() -> None:
    """Of the four GPUs one is free, and the others' jobs end as soon as nobody counts on them."""
    jobs = [small(), beside(1.0)]
    more_usd = (BIG_USD * (HOUR_S - 0.5) - USD * (HOUR_S + BOOT_S)) / HOUR_S

    quick_at_100 = replace(fleet(), waiting=Waiting(100.0))
    quick = _planned(quick_at_100, (), jobs)
    (free,) = _planned(quick_at_100, (), [small(), beside(9 * HOUR_S)]).served

    assert quick.served[0].reason.endswith(
        f"; it starts 300 s sooner than on a node of its own, for {more_usd:.2f} USD more"
    )
    assert "sooner" not in free.reason


def _planned(of: Cluster, history: Sequence[PoolHistory], jobs: Sequence[Job]) -> Plan:
    return plan(replace(seen(jobs, [closed(gpus=3)], of), pool_history=tuple(history)))


@pytest.mark.parametrize(
    ("times", "min_types", "is_worth_it"), [(1.5, 1, True), (1.51, 1, False), (9.0, 2, True)]
)
def test_a_node_that_ec2_might_have_given_for_a_job_is_worth_it_however_long_it_runs(
    times: float, min_types: int, *, is_worth_it: bool
) -> None:
    of = fleet(min_types=min_types)
    of = replace(of, prices={**of.prices, offering(T4_BIG, Market.ON_DEMAND): USD * times})
    shown = seen([small(time_limit_s=99 * HOUR_S)], [closed()], of)
    shown = replace(
        shown, nodes=tuple(replace(each, usd_per_hour=USD * times) for each in shown.nodes)
    )

    assert bool(orders(plan(shown), OrderKind.UNDRAIN)) is is_worth_it


def test_a_node_is_worth_any_job_for_which_nothing_is_sold() -> None:
    rests = [
        Resting(offering(each, Market.ON_DEMAND), NOW_S + 60, 1, "InsufficientInstanceCapacity", "")
        for each in (T4, T4_BIG)
    ]

    made = plan(replace(seen([small()], [closed()]), resting=tuple(rests)))

    assert [one.names for one in orders(made, OrderKind.UNDRAIN)] == [("i-big",)]


def test_who_comes_first_and_cannot_start_there_does_not_keep_a_node_closed() -> None:
    of = cluster(*fleet().pools, pool("a10g", (A10G,), markets=ON_DEMAND))
    first = small(1, priority=9)
    elsewhere = replace(first, shape=replace(first.shape, gpu_type="a10g"))

    made = plan(seen([elsewhere, large(priority=1)], [closed()], of))

    assert [one.names for one in orders(made, OrderKind.UNDRAIN)] == [("i-big",)]


@pytest.mark.parametrize(
    ("limit_s", "since_s", "expected_s"),
    [
        (4000.0, 500.0, 1500.0),  # half of its limit, by what jobs run as a rule
        (4000.0, 2000.0, 2000.0),  # it is over: until its limit
        (4000.0, 9000.0, 9000.0),  # that too: as long again as it has run
        (10.0, 30.0, 60.0),
        (None, 500.0, 500.0),
        (4000.0, -100.0, 2000.0),  # clocks differ
        (4000.0, None, HOUR_S),
    ],
)
def test_a_job_is_taken_to_run_until_the_first_end_that_is_not_over(
    limit_s: float | None, since_s: float | None, expected_s: float
) -> None:
    started_at_s = None if since_s is None else NOW_S - since_s
    known = job(1, on=["i-1"], time_limit_s=limit_s, started_at_s=started_at_s)

    assert left_s(known, replace(cluster(), time_limit_ratio=0.5), NOW_S) == expected_s


@pytest.mark.parametrize(
    ("cpus_alloc", "gpus_alloc", "type_", "ends_s", "expected_s"),
    [
        (1, 0, T4, [], 0.0),
        (1, 0, T4, [800.0], 400.0),
        (1, 0, T4, [800.0, 200.0], 400.0),
        (1, 1, T4, [800.0, 200.0], 300.0),  # until the first one ends nobody gets in
        (4, 0, T4, [800.0, 200.0], 400.0),  # it is GPUs that jobs come for
        (4, 0, replace(T4, gpus=0), [800.0, 200.0], 300.0),
        (3, 0, replace(T4, gpus=0), [800.0, 200.0], 400.0),
    ],
)
def test_a_node_is_counted_on_to_live_for_half_of_what_its_jobs_are_said_to_run(
    cpus_alloc: int, gpus_alloc: int, type_: object, ends_s: list[float], expected_s: float
) -> None:
    there = replace(node("i-1", type_), cpus_alloc=cpus_alloc, gpus_alloc=gpus_alloc)  # type: ignore[arg-type]
    jobs = [
        job(n, on=["i-1"], time_limit_s=each_s + 100, started_at_s=NOW_S - 60)
        for n, each_s in enumerate(ends_s)
    ]

    # The head wrote its digest 40 s ago.
    assert _steering(snapshot(jobs, [there], age_s=40.0)).lives_s("i-1") == expected_s


def _steering(of: Snapshot) -> Steering:
    return Steering(of, OfferGroups(of), Usage(of.cluster))


@pytest.mark.parametrize(
    ("mean_s", "lives_s", "expected_s"),
    [(600.0, 0.0, 600.0), (600.0, 600.0, 300.0), (600.0, 3000.0, 100.0), (0.0, 0.0, 0.0)],
)
def test_the_longer_a_node_lives_the_less_a_job_prolongs_it(
    mean_s: float, lives_s: float, expected_s: float
) -> None:
    assert outlasts_s(mean_s, lives_s) == expected_s


def test_a_weight_is_what_one_more_job_would_cost_there() -> None:
    """Jobs are taken to run as long as those that are about; an idle node runs for them alone."""
    idle = [node("i-7", T4), node("i-big", T4_BIG)]
    known = [*about(HOUR_S, 3 * HOUR_S), beside(4 * HOUR_S)]
    mean_s = (4 * HOUR_S + 4 * HOUR_S + 60) / 3

    assert weights(plan(seen([], idle))) == {
        "i-7": weight_of(USD * HOUR_S),
        "i-big": weight_of(BIG_USD * HOUR_S),
    }
    assert weights(plan(seen(known, [idle[0], busy(gpus=3)]))) == {
        "i-7": weight_of(USD * mean_s),
        "i-big": weight_of(BIG_USD * outlasts_s(mean_s, 2 * HOUR_S)),
    }


@pytest.mark.parametrize(
    ("cost", "weight"), [(0.0, 1), (1.0, 1), (1.1, 1), (2.0, 3), (1000.0, 21), (2000.0, 23)]
)
def test_weights_are_few_and_grow_by_two_where_the_cost_doubles(cost: float, weight: int) -> None:
    assert weight_of(cost) == weight


@pytest.mark.parametrize(
    ("keeps", "is_first"),
    [
        ({}, False),
        ({"min_nodes": 1}, True),
        ({"headroom_nodes": 1}, True),
        ({"min_nodes": 1, "headroom_nodes": 1}, True),
    ],
)
def test_jobs_start_first_on_nodes_that_a_pool_keeps_in_any_case(
    keeps: dict[str, int], *, is_first: bool
) -> None:
    kept = replace(pool("kept", (T4_BIG,), markets=ON_DEMAND), **keeps)  # type: ignore[arg-type]
    shown = seen([], [node("i-big", T4_BIG), node("i-1", T4)], cluster(*fleet().pools, kept))
    of_kept = replace(shown.nodes[0], pool="kept")

    found = weights(plan(replace(shown, nodes=(of_kept, *shown.nodes[1:]))))

    assert (found.get("i-big", 1) < found.get("i-1", 1)) is is_first
