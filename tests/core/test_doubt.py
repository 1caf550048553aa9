"""Launches of which nobody knows yet whether EC2 was asked for them."""

from dataclasses import replace
from typing import Any

import pytest

from tests.core.reading import launches
from tests.make import (
    A10G,
    NOW_S,
    T4,
    cluster,
    digest,
    instance,
    job,
    offering,
    placement,
    pool,
    snapshot,
)
from tidegate.core.model.cluster import Limits, Pool, Timings
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ledger import Launch, LaunchRecord
from tidegate.core.model.plan import Resume
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request


def test_a_launch_that_another_planner_has_taken_is_left_until_all_of_it_would_show() -> None:
    found = launches(plan(snapshot([job()])))[0]
    request = fleet_request(found, "test", placement(cluster()))
    lease_s = Timings().describe_lag_s
    taken = LaunchRecord(found, NOW_S - 600, request, taken_at_s=NOW_S - lease_s + 1)
    left = replace(taken, taken_at_s=NOW_S - lease_s)

    assert plan(snapshot([job()], launches=[taken])).actions == ()
    (resumed,) = plan(snapshot([job()], launches=[left])).actions
    assert isinstance(resumed, Resume)
    assert resumed.reason == "recorded 600 s ago and never finished: its planner died"


@pytest.mark.parametrize(
    "asks",
    [
        {"gpu_type": "a10g"},
        {"gpu_type": "", "constraint": A10G.name},
        {"gpu_type": "", "cpus": 5},
        {"gpu_type": "", "memory_mib": 20_000},
        {"gpu_type": "", "gpus": 2},
    ],
)
def test_a_node_in_doubt_is_for_a_job_that_every_offering_of_it_would_do_for(
    asks: dict[str, Any],
) -> None:
    """Whatever comes: where only the first would do, another job would have lost its place."""
    mixed = _in_doubt(2, offering(A10G), offering(T4))
    either = [job(n, gpu_type="") for n in (1, 2)]

    made = plan(_seen([job(3, priority=9, **asks), *either], mixed))

    assert [one.for_jobs for one in launches(made)] == [("3",)]


def test_a_job_that_only_the_first_offering_would_do_for_waits_for_what_comes() -> None:
    mixed = _in_doubt(1, offering(A10G), offering(T4))

    assert launches(plan(_seen([job(gpu_type="a10g")], mixed))) == []
    assert [one.count for one in launches(plan(_seen([job(gpu_type="t4")], mixed)))] == [1]


def test_of_a_launch_in_doubt_what_ec2_shows_counts_as_what_it_is() -> None:
    mixed = _in_doubt(1, offering(A10G), offering(T4))
    shown = instance(on=offering(T4), pool="mixed", launch_id=mixed.launch.launch_id)

    def bought(gpu_type: str) -> int:
        seen = replace(_seen([job(gpu_type=gpu_type)], mixed), instances=(shown,))
        return len(launches(plan(seen)))

    assert (bought("t4"), bought("a10g")) == (0, 1)


def test_of_two_that_ec2_shows_each_counts_as_what_it_is() -> None:
    mixed = _in_doubt(2, offering(A10G), offering(T4))
    shown = [
        instance(name, offering(of), pool="mixed", launch_id=mixed.launch.launch_id)
        for name, of in (("i-1", A10G), ("i-2", T4))
    ]
    seen = _seen([job(1, gpu_type="t4"), job(2, gpu_type="a10g")], mixed)

    assert launches(plan(replace(seen, instances=tuple(shown)))) == []


def test_a_job_does_not_count_on_spot_in_doubt_that_it_would_be_kept_off() -> None:
    """It would be sent on demand, and the node that came be another's."""
    spot, steady = offering(T4), offering(T4, Market.ON_DEMAND)
    of = cluster(_mixed())
    of = replace(of, prices={**of.prices, spot: 0.99 * of.prices[steady]})

    def bought(time_limit_s: float, *offerings: Offering) -> int:
        asked = job(gpu_type="t4", time_limit_s=time_limit_s)
        seen = snapshot([asked], of=of, launches=[_in_doubt(1, *offerings)])
        return len(launches(plan(seen)))

    assert (bought(7200.0, spot), bought(1.0, spot)) == (1, 0)
    assert (bought(7200.0, spot, steady), bought(1.0, spot, steady)) == (1, 0)


def test_a_launch_in_doubt_is_hoped_for_when_another_zones_price_moves() -> None:
    """The first of its offerings, which is the likeliest, still does."""
    a, b = (offering(T4, zone=zone) for zone in ("us-east-1a", "us-east-1b"))
    of = cluster(_mixed())
    steady = of.prices[offering(T4, Market.ON_DEMAND)]
    of = replace(of, prices={**of.prices, b: 0.99 * steady})
    asked = job(1, gpu_type="t4", time_limit_s=7200.0)

    made = plan(snapshot([asked], of=of, launches=[_in_doubt(1, a, b)]))

    assert launches(made) == []


def test_what_ec2_shows_of_a_launch_is_the_same_in_any_order() -> None:
    a, b = "us-east-1a", "us-east-1b"
    record_ = _in_doubt(3, offering(T4, zone=a), offering(T4, zone=b))
    shown = [
        instance(name, offering(T4, zone=zone), pool="mixed", launch_id=record_.launch.launch_id)
        for name, zone in (("i-1", a), ("i-2", b), ("i-3", b))
    ]
    seen = _seen([job(1, nodes=2)], record_)

    plans = [plan(replace(seen, instances=tuple(each))) for each in (shown, shown[::-1])]

    assert plans[0] == plans[1]


def test_a_gang_does_not_count_on_nodes_that_may_come_in_any_zone() -> None:
    gang = job(1, nodes=2)
    here = _in_doubt(2, offering(T4))
    anywhere = _in_doubt(2, offering(T4), offering(T4, zone="us-east-1b"))

    assert launches(plan(_seen([gang], here))) == []
    assert [one.count for one in launches(plan(_seen([gang], anywhere)))] == [2]


@pytest.mark.parametrize(("asks_usd", "is_finished"), [(2.0, True), (1.4, True), (2.2, False)])
def test_a_launch_in_doubt_is_finished_at_the_price_of_now_or_not_at_all(
    asks_usd: float, is_finished: bool
) -> None:
    """The limit lets two nodes cost what they did as they were decided, and no more."""
    asked = _at_price(asks_usd, usd_per_hour=4.0)

    (finished,) = [one for one in plan(asked).actions if isinstance(one, Resume)]

    assert finished.may_buy is is_finished


@pytest.mark.parametrize(("asks_usd", "bought"), [(2.0, 1), (1.4, 1), (2.2, 0)])
def test_beside_a_launch_in_doubt_is_bought_what_the_price_of_now_leaves(
    asks_usd: float, bought: int
) -> None:
    asked = _at_price(asks_usd, usd_per_hour=4.0 + cluster(_mixed()).prices[offering(T4)])
    beside = replace(asked, digest=digest([job(9, gpu_type="t4")]))

    assert sum(one.count for one in launches(plan(beside))) == bought


def test_what_nobody_asked_the_market_for_costs_what_it_was_bought_at() -> None:
    asked = _at_price(2.2, usd_per_hour=4.0)
    silent = replace(asked.cluster, quoted=frozenset())

    (finished,) = plan(replace(asked, cluster=silent)).actions

    assert isinstance(finished, Resume)
    assert finished.may_buy


def _at_price(asks_usd: float, *, usd_per_hour: float) -> Snapshot:
    """Two nodes, decided at 2 USD an hour each, of which nobody knows, and a limit."""
    wanted, of = offering(A10G), cluster(_mixed())
    record = _in_doubt(2, wanted)
    record = replace(record, created_at_s=NOW_S - 600)
    limited = replace(
        of,
        limits=Limits(usd_per_hour=usd_per_hour),
        prices={**of.prices, wanted: asks_usd},
        quoted=frozenset({wanted}),
    )
    return snapshot([], of=limited, launches=[record])


def _in_doubt(count: int, *offerings: Offering) -> LaunchRecord:
    launch = Launch(
        launch_id="5eed-0-0",
        pool="mixed",
        offerings=offerings,
        count=count,
        min_count=1,
        for_jobs=("1",),
        usd_per_hour_each=2.0,
        gated_for="",
        reason="it waits",
    )
    of = cluster(_mixed())
    return LaunchRecord(launch, NOW_S - 5, fleet_request(launch, "test", placement(of)))


def _mixed() -> Pool:
    return pool("mixed", (A10G, T4), zones=("us-east-1a", "us-east-1b"))


def _seen(jobs: list[Job], record: LaunchRecord) -> Snapshot:
    return snapshot(jobs, of=cluster(_mixed()), launches=[record])
