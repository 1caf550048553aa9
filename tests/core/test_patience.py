"""`idle_s: auto`: how long an idle node is worth its price."""

from dataclasses import replace

import pytest

from tests.core.reading import orders
from tests.make import NOW_S, cluster, instance, job, node, pool, record, snapshot
from tidegate.core.fleet.idle_time import SEEN_MAX, boot_worth_s, idle_s
from tidegate.core.model.cluster import Pool
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Learn, Plan
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.waiting import Waiting
from tidegate.core.planner import plan

AUTO = replace(pool(), is_idle_auto=True, boot_s=300.0)


def kept_s(
    pool_history: PoolHistory, place: int = 0, of: Pool = AUTO, worth_s: float = 300.0
) -> float:
    return idle_s(of, pool_history, place, now_s=NOW_S, boot_worth_s=worth_s)


def seen(*waits_s: float, every_s: float = 10_000.0) -> PoolHistory:
    """A node became free now and then, and a job came so long after each time."""
    freed = [NOW_S - (len(waits_s) - number) * every_s for number in range(len(waits_s))]
    taken = [at_s + wait_s for at_s, wait_s in zip(freed, waits_s, strict=True)]
    return PoolHistory("t4", taken_at_s=tuple(taken), freed_at_s=tuple(freed))


@pytest.mark.parametrize(
    ("waits_s", "idle"),
    [
        ((200.0,) * 10, 200.0),  # always soon: kept until then
        ((400.0,) * 10, 0.0),  # always later than a boot takes: not at all
        ((100.0,) * 5 + (5000.0,) * 5, 100.0),  # half of them soon: those are worth it
        ((250.0,) * 2 + (5000.0,) * 8, 0.0),  # seldom soon
        ((10.0,) * 4, 300.0),  # too little seen: as long as a boot takes
    ],
)
def test_a_node_is_kept_while_that_costs_less_than_another_boot(waits_s, idle):
    assert kept_s(seen(*waits_s)) == pytest.approx(idle)


@pytest.mark.parametrize(
    ("waits_s", "idle"),
    [
        ((400.0,) * 10, 400.0),  # a boot is worth more than that
        ((4000.0,) * 10, 0.0),
        ((10.0,) * 4, 900.0),  # too little seen: as long as a boot is worth
    ],
)
def test_a_boot_is_worth_the_wait_for_it_as_well(waits_s, idle):
    assert kept_s(seen(*waits_s), worth_s=900.0) == pytest.approx(idle)


@pytest.mark.parametrize(
    ("waiting", "usd_per_hour", "worth_s"),
    [
        (Waiting(), 0.5, 300.0),
        (Waiting(2.0), 0.5, 1500.0),
        (Waiting(2.0), 4.0, 450.0),
        (Waiting(2.0, partitions={"gpu": 1.0}), 0.5, 900.0),
        (Waiting(2.0, accounts={"team": 99.0}), 0.5, 1500.0),  # nobody knows whose job comes
        (Waiting(2.0), 0.0, 300.0),  # paid for in advance
    ],
)
def test_what_a_boot_is_worth_follows_from_both_prices(waiting, usd_per_hour, worth_s):
    of = replace(cluster(AUTO), waiting=waiting)

    assert boot_worth_s(of, AUTO, usd_per_hour) == pytest.approx(worth_s)


def test_the_cost_of_the_chosen_time_is_the_least_of_all():
    pool_history = seen(20, 60, 150, 280, 310, 700, 900, 2000)
    waits = [t - f for t, f in zip(pool_history.taken_at_s, pool_history.freed_at_s, strict=True)]

    def cost(time_s: float) -> float:
        return sum(wait if wait <= time_s else time_s + 300 for wait in waits)

    chosen = kept_s(pool_history)
    assert cost(chosen) == min(cost(time_s) for time_s in range(3000))


def test_a_second_idle_node_waits_for_the_second_job():
    pool_history = seen(*(100.0,) * 10, every_s=400.0)

    assert kept_s(pool_history) == pytest.approx(100.0)
    assert kept_s(pool_history, 1) == 0.0


def test_a_node_that_nobody_took_for_long_was_never_taken():
    freed = tuple(NOW_S - 10_000 + 100 * number for number in range(8))

    assert kept_s(PoolHistory("t4", freed_at_s=freed)) == 0.0


def test_a_fixed_time_stays_what_it_is():
    assert kept_s(seen(*(200.0,) * 10), of=pool(idle_s=77.0)) == 77.0


@pytest.mark.parametrize(("usd_per_hour", "goes"), [(0.0, True), (0.05, True), (0.2, False)])
def test_the_dearer_waiting_is_the_longer_an_idle_node_is_kept(usd_per_hour, goes):
    """It has idled for 450 s and costs 0.2 USD an hour: a boot of 300 s is worth 600 at as much."""
    of = replace(cluster(AUTO), waiting=Waiting(usd_per_hour))
    nodes, instances, records = [node(idle_s=450.0)], [instance(age_s=5000)], [record(age_s=5000)]

    made = plan(snapshot([], nodes, of=of, instances=instances, records=records))

    assert bool(orders(made, OrderKind.RELEASE)) is goes


def learnt_from(made: Plan) -> list[PoolHistory]:
    return [each.pool_history for each in made.actions if isinstance(each, Learn)]


def test_what_is_seen_is_noted_once_and_only_where_it_counts():
    jobs = [
        job(1, on=["i-1"], started_at_s=NOW_S - 40),
        job(2, on=["i-2"], started_at_s=NOW_S - 30),
    ]
    idle = replace(node("i-3", idle_s=50.0))
    names = ("i-1", "i-2", "i-3")
    of = snapshot(
        jobs,
        [node("i-1", state="ALLOCATED"), node("i-2", state="ALLOCATED"), idle],
        of=cluster(AUTO),
        instances=[instance(name, age_s=5000) for name in names],
        records=[record("i-1", age_s=340), *(record(name, age_s=5000) for name in names[1:])],
    )

    (pool_history,) = learnt_from(plan(of))

    # Job 1 came when its node was launched.
    assert pool_history.taken_at_s == (NOW_S - 340, NOW_S - 30)
    assert pool_history.freed_at_s == (NOW_S - 50,)
    assert learnt_from(plan(replace(of, pool_history=(pool_history,)))) == []
    assert learnt_from(plan(replace(of, cluster=cluster(pool())))) == []


def test_what_is_remembered_is_bounded():
    known = replace(seen(*(10.0,) * SEEN_MAX), pool="t4")
    of = snapshot(
        [job(1, on=["i-1"], started_at_s=NOW_S - 1)],
        [node("i-1", state="ALLOCATED")],
        of=cluster(AUTO),
        instances=[instance(age_s=5000)],
        records=[record(age_s=5000)],
    )

    (pool_history,) = learnt_from(plan(replace(of, pool_history=(known,))))

    assert len(pool_history.taken_at_s) == SEEN_MAX
    assert pool_history.taken_at_s[-1] == NOW_S - 1


@pytest.mark.parametrize(("idle_for_s", "goes"), [(150.0, False), (250.0, True)])
def test_an_idle_node_goes_when_its_time_is_over(idle_for_s, goes):
    of = snapshot(
        [],
        [node(idle_s=idle_for_s)],
        of=cluster(AUTO),
        instances=[instance(age_s=5000)],
        records=[record(age_s=5000)],
    )

    made = plan(replace(of, pool_history=(seen(*(200.0,) * 10),)))

    assert bool(orders(made, OrderKind.RELEASE)) is goes
