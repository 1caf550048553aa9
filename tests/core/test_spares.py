"""Spare nodes: bought and kept while the waiting that they save is worth more than they cost."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import launches, orders
from tests.make import (
    A10G,
    NOW_S,
    T4,
    T4_BIG,
    cluster,
    digest,
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
from tidegate.core.fleet.week import hour_at
from tidegate.core.model.calendar import Wanted
from tidegate.core.model.cluster import Cluster, Limits, Pool
from tidegate.core.model.ec2 import Market
from tidegate.core.model.ledger import Launch, LaunchRecord, Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Learn, Plan
from tidegate.core.model.pool_history import (
    Arrivals,
    FailedLaunch,
    HourSeen,
    PoolHistory,
    SpareNode,
    Week,
)
from tidegate.core.model.slurm import Association, Job, SetBy
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.waiting import Waiting
from tidegate.core.passes.steer import CLOSED
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

PRICE = Waiting(20.0)
OFTEN = SpareNode(0.2, 0.2, 0.2, 0.2)  # a job for it in every fifth boot: 4 USD an hour at 20
SELDOM = SpareNode(0.001, 0.001, 0.001, 0.001)
BOOT_S = 300.0


def steady(**more: object) -> Pool:
    return replace(pool(types=(T4,), markets=(Market.ON_DEMAND,)), **more)  # type: ignore[arg-type]


def waiting(of: Cluster | None = None, price: Waiting = PRICE) -> Cluster:
    return replace(of or cluster(steady()), waiting=price)


def known(*spare: SpareNode, of: str = T4.name, newest_job: int = 50) -> PoolHistory:
    arrivals = Arrivals(of, int(NOW_S // BOOT_S), spare=spare)
    return PoolHistory("t4", arrivals=(arrivals,), newest_job=newest_job)


def seen(
    *history: PoolHistory,
    jobs: Sequence[Job] = (),
    idle: int = 0,
    of: Cluster | None = None,
    market: Market = Market.ON_DEMAND,
) -> Snapshot:
    on = offering(T4, market=market)
    names = [f"i-{n}" for n in range(idle)]
    found = snapshot(
        jobs,
        [node(name, idle_s=500) for name in names],
        of=of or waiting(),
        instances=[instance(name, on) for name in names],
        records=[record(name, on, age_s=600) for name in names],
    )
    return replace(found, pool_history=history)


def bought(made: Plan) -> list[tuple[int, str]]:
    return [(each.count, each.offerings[0].instance_type) for each in launches(made)]


def learnt(made: Plan) -> dict[str, PoolHistory]:
    actions = [each for each in made.actions if isinstance(each, Learn)]
    return {each.pool_history.pool: each.pool_history for each in actions}


def test_spare_nodes_are_bought_for_what_comes_often_and_the_reason_says_both_sides():
    made = plan(seen(known(OFTEN, OFTEN, SELDOM)))

    assert bought(made) == [(2, T4.name)]
    assert "saves 4.00 USD of waiting an hour" in launches(made)[0].reason
    assert "idles for 0.42" in launches(made)[0].reason


def test_a_spare_node_comes_as_the_type_for_which_jobs_come():
    alike = replace(T4, name=A10G.name)
    of = waiting(cluster(steady(instance_types=(T4, alike), zones=("us-east-1a", "us-east-1b"))))
    prices = dict.fromkeys(of.prices, 0.526)

    (launch,) = launches(plan(seen(known(OFTEN), of=replace(of, prices=prices))))

    assert {each.instance_type for each in launch.offerings} == {T4.name}
    assert {each.zone for each in launch.offerings} == {"us-east-1a", "us-east-1b"}


@pytest.mark.parametrize(
    "of",
    [
        waiting(price=Waiting()),
        waiting(price=Waiting(0.1)),
        waiting(cluster(steady(limits=Limits(nodes=0)))),
    ],
)
def test_none_where_waiting_costs_nothing_or_less_than_they_do_or_a_limit_is_reached(of):
    assert bought(plan(seen(known(OFTEN), of=of))) == []


def of_week(*, is_better: bool, weeks: int = 3) -> Arrivals:
    """Nothing came lately; four jobs in the hour after this one, in each of the last weeks."""
    hour = hour_at(NOW_S + BOOT_S)
    week, of = divmod(hour + 72, 168)
    seen = HourSeen(of, week - 1, newest=(4.0, 4.0, 0.5))
    errors = (9.0, 1.0) if is_better else (1.0, 9.0)
    known = Week(hour - weeks * 168, hour, 0.0, *errors, hours=(seen,))
    return Arrivals(T4.name, int(NOW_S // BOOT_S), week=known)


def test_what_an_hour_of_the_week_brings_is_there_before_it_and_the_reason_says_how_sure_that_is():
    history = PoolHistory("t4", arrivals=(of_week(is_better=True, weeks=1),), newest_job=50)

    (launch,) = launches(plan(seen(history)))

    assert "by what " in launch.reason
    assert ":00 UTC brought in 1 weeks (4.0 +- 0.0 g4dn.xlarge filled) a spare" in launch.reason


def test_an_hour_of_the_week_buys_nothing_where_what_came_lately_has_been_less_wrong():
    history = PoolHistory("t4", arrivals=(of_week(is_better=False),), newest_job=50)

    assert bought(plan(seen(history))) == []


def test_that_an_hour_of_the_week_was_never_seen_is_said():
    assert ":00 UTC was seen yet)" in launches(plan(seen(known(OFTEN))))[0].reason


def test_none_while_the_cluster_is_stopped():
    stopped = replace(seen(known(OFTEN)), wanted=Wanted(False, "stopped for the night"))

    assert bought(plan(stopped)) == []


def test_none_while_a_job_waits_for_a_limit_that_they_would_fill():
    of = waiting(cluster(steady(limits=Limits(nodes=2))))
    jobs = [job(n, is_exclusive=True) for n in range(1, 4)]

    made = plan(seen(known(OFTEN), jobs=jobs, of=of))

    assert [each.for_jobs for each in launches(made)] == [("1", "2")]


def test_none_is_kept_for_a_limit_either_where_a_cap_holds_another_job():
    """The queue is served again then, without the job that was refused for the limit."""
    of = waiting(cluster(steady(instance_types=(T4, T4_BIG), limits=Limits(nodes=1))))
    large, capped = job(1, gpus=4, priority=9), job(2, qos="normal")
    quiet = seen(known(OFTEN, newest_job=2), idle=1, of=of)

    def let_go(*jobs: Job) -> int:
        cap = Association("qos normal", qos="normal", in_all=0)
        heard = digest(jobs, [node("i-0", idle_s=500)], associations=[cap])
        return len(orders(plan(replace(quiet, digest=heard)), OrderKind.RELEASE))

    assert let_go() == 0
    assert let_go(large) == 1
    assert let_go(large, capped) == 1


def test_nodes_that_are_idle_or_on_their_way_are_spare_ones_already():
    booting = record("i-9", phase=Phase.LAUNCHED)
    idle = seen(known(OFTEN, OFTEN), idle=1)
    coming = replace(
        seen(known(OFTEN, OFTEN)),
        instances=(instance("i-9"),),
        nodes=(booting,),
    )

    assert bought(plan(idle)) == [(1, T4.name)]
    assert bought(plan(coming)) == [(1, T4.name)]


def test_nodes_in_doubt_are_spare_ones_also_where_a_job_hopes_for_them():
    of = waiting(cluster(steady(zones=("us-east-1a", "us-east-1b"), limits=Limits(nodes=9))))
    on = tuple(each for _, each in of.pools[0].offerings())
    launch = Launch("5eed-0-0", "t4", on, 2, 1, (), 0.5, "", "spare")
    doubted = LaunchRecord(launch, NOW_S - 5, fleet_request(launch, "test", placement(of)))

    def bought_beside(*jobs: Job) -> list[tuple[int, str]]:
        quiet = seen(known(OFTEN, OFTEN), jobs=jobs, of=of)
        return bought(plan(replace(quiet, launches=(doubted,))))

    assert bought_beside() == []
    assert bought_beside(job(1, nodes=10, is_exclusive=True)) == []


def test_a_node_that_a_job_takes_is_replaced_at_once():
    made = plan(seen(known(OFTEN), idle=1, jobs=[job(51, is_exclusive=True)]))

    assert [each.for_jobs for each in launches(made)] == [()]


def test_idle_spare_nodes_stay_and_the_others_go():
    made = plan(seen(known(OFTEN), idle=3))

    (release,) = orders(made, OrderKind.RELEASE)
    assert len(release.names) == 2


def test_a_node_stays_while_it_pays_for_itself_though_it_would_not_be_bought():
    usd = waiting().prices[next(o for _, o in waiting().pools[0].offerings())]
    kept = SpareNode(*[1.2 * usd / (20 + usd)] * 4)

    assert bought(plan(seen(known(kept)))) == []
    assert orders(plan(seen(known(kept), idle=1)), OrderKind.RELEASE) == []


def test_what_was_often_yesterday_is_let_go_today():
    yesterday = replace(
        known(OFTEN), arrivals=(Arrivals(T4.name, int(NOW_S // 300) - 288, spare=(OFTEN,)),)
    )

    made = plan(seen(yesterday, idle=1))

    assert len(orders(made, OrderKind.RELEASE)) == 1


def test_jobs_count_once_by_the_node_that_each_would_be_bought():
    jobs = [
        job(50),
        job(51, is_exclusive=True),
        job(52, nodes=2),
        job("53", count=3, gpus=4),
        job(54, state="RUNNING", on=["i-0"], started_at_s=NOW_S - 5),
    ]
    of = waiting(cluster(steady(instance_types=(T4, T4_BIG))))

    found = learnt(plan(seen(known(), jobs=jobs, idle=1, of=of)))["t4"]

    assert found.newest_job == 54
    counted = {each.instance_type: (each.jobs, each.nodes) for each in found.arrivals}
    assert counted == {T4.name: (3, 4), T4_BIG.name: (3, 3)}
    again = replace(seen(found, jobs=jobs, idle=1, of=of), now_s=NOW_S + 5)
    assert learnt(plan(again)) == {}


def test_what_is_remembered_of_two_pools_is_told_in_one_order():
    two = cluster(steady(), replace(steady(), name="a10g", instance_types=(A10G,)))
    jobs = [job(51, on=["i-0"]), job(52, gpu_type="a10g", on=["i-1"])]
    of = waiting(two)

    there, back = (seen(known(), jobs=each, idle=2, of=of) for each in (jobs, jobs[::-1]))

    assert set(learnt(plan(there))) == {"t4", "a10g"}
    assert plan(there) == plan(back)


def test_what_root_submits_brings_nobody_after_it():
    """Probes and checks of nodes, which wait or start at once."""
    jobs = [job(50, user="root"), job(54, user="root", state="RUNNING", on=["i-0"]), job(55)]
    of = waiting(cluster(steady(instance_types=(T4,))))

    found = learnt(plan(seen(known(), jobs=jobs, idle=1, of=of)))["t4"]

    assert found.newest_job == 55
    assert [(each.instance_type, each.jobs) for each in found.arrivals] == [(T4.name, 1)]


def test_the_first_look_counts_nobody_and_knows_where_to_begin():
    found = learnt(plan(seen(jobs=[job(70), job(71)])))

    assert [(each.newest_job, each.arrivals) for each in found.values()] == [(71, ())]


def test_numbers_that_begin_anew_are_counted_from_there():
    found = learnt(plan(seen(known(newest_job=90_000), jobs=[job(3)])))
    next_one = learnt(plan(seen(*found.values(), jobs=[job(3), job(4)])))

    assert found["t4"].newest_job == 3
    assert next_one["t4"].arrivals[0].jobs == 1


def test_numbers_that_begin_anew_are_known_of_every_pool():
    other = replace(known(newest_job=95_000), pool="gone")  # of a pool that the file has no more

    found = learnt(plan(seen(known(newest_job=90_000), other, jobs=[job(3)])))
    again = learnt(plan(seen(*found.values(), jobs=[job(3)])))

    assert {name: each.newest_job for name, each in found.items()} == {"t4": 3, "gone": 3}
    assert again == {}


def test_what_else_is_remembered_of_a_pool_is_told_beside_it():
    booted = record("i-0", offering(T4, Market.ON_DEMAND), age_s=100, phase=Phase.LAUNCHED)
    before = replace(known(), failed=(FailedLaunch("l-9", NOW_S - 200, NOW_S - 100),))
    up = replace(seen(before, jobs=[job(51)], idle=1), nodes=(booted,))

    reasons = [each.reason for each in plan(up).actions if isinstance(each, Learn)]

    assert ["which nodes jobs came for" in each for each in reasons] == [False, True]
    assert learnt(plan(up))["t4"].joined_at_s == NOW_S
    assert learnt(plan(up))["t4"].newest_job == 51


def test_nothing_is_remembered_where_waiting_costs_nothing():
    made = plan(seen(known(), jobs=[job(99)], of=waiting(price=Waiting())))

    assert learnt(made) == {}


def test_a_job_counts_as_much_as_its_waiting_costs_beside_the_dearest():
    of = waiting(price=Waiting(20.0, accounts={"students": 5.0}))
    jobs = [job(51, account="students"), job(52, account="staff")]

    found = learnt(plan(seen(known(), jobs=jobs, of=of)))["t4"]

    assert found.arrivals[0].jobs == pytest.approx(1.25)


@pytest.mark.parametrize(
    ("partitions", "qos", "account", "usd"),
    [
        (("gpu",), "", "", 20.0),
        (("gpu", "night"), "", "", 20.0),
        (("night",), "", "", 1.0),
        (("night",), "high", "", 90.0),
        (("night",), "high", "students", 5.0),
    ],
)
def test_the_account_goes_before_the_qos_and_that_before_the_partition(
    partitions, qos, account, usd
):
    price = Waiting(20.0, {"night": 1.0}, {"high": 90.0}, {"students": 5.0})

    assert price.usd(partitions, qos, account) == usd
    assert price.most_usd == 90.0


def test_the_node_report_says_that_it_is_a_spare_one():
    report = prospects(seen(known(OFTEN), idle=1))

    assert report["i-0"].held == "spare, of 1 g4dn.xlarge that save more waiting than they cost"


def test_a_node_that_is_closed_to_smaller_jobs_is_a_spare_one_all_the_same():
    idle = seen(known(OFTEN), idle=1)
    assert idle.digest is not None
    closed = node("i-0", state="IDLE+DRAIN+DYNAMIC_NORM", reason=str(CLOSED), set_by=SetBy.US)
    reading = replace(idle.digest.reading, nodes=(closed,))

    made = plan(replace(idle, digest=replace(idle.digest, reading=reading)))

    assert bought(made) == []


@pytest.mark.parametrize(("checkpoint_s", "is_bought"), [(None, False), (600.0, True)])
def test_spot_is_spare_only_where_an_interruption_costs_little(checkpoint_s, is_bought):
    """Slurm would start long jobs there before anybody could keep them off."""
    spot = waiting(cluster(steady(markets=(Market.SPOT,), checkpoint_s=checkpoint_s)))
    both = waiting(cluster(replace(spot.pools[0], markets=(Market.SPOT, Market.ON_DEMAND))))

    made = plan(seen(known(OFTEN), of=spot))
    mixed = plan(seen(known(OFTEN), of=both))
    idle = plan(seen(known(OFTEN), idle=1, of=spot, market=Market.SPOT))
    counted = learnt(plan(seen(known(), jobs=[job(51)], of=spot)))

    assert bought(made) == ([(1, T4.name)] if is_bought else [])
    assert [each.offerings[0].market is Market.SPOT for each in launches(mixed)] == [is_bought]
    assert bool(orders(idle, OrderKind.RELEASE)) is not is_bought
    assert bool(counted["t4"].arrivals[0].jobs) is is_bought
