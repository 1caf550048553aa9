"""`stopped_nodes: auto`: kept while a start saves more waiting than the disk costs."""

from dataclasses import replace

import pytest

from tests.core.reading import ended, launches, orders
from tests.core.test_stopped_nodes import (
    DISK_USD,
    ON_DEMAND,
    keeping,
    leaving,
    shown,
    starts,
    stopped,
    stops,
)
from tests.make import NOW_S, job, node, record, snapshot
from tidegate.core.buy.steering import Steering
from tidegate.core.demand.demand import demand
from tidegate.core.explain.answer import boots_for_s
from tidegate.core.fleet.idle_time import boot_worth_s
from tidegate.core.fleet.members import members
from tidegate.core.fleet.worth import kept_s, start_share
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import InstanceState, Market
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.pool_history import Arrivals, PoolHistory, SpareNode
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.waiting import Waiting
from tidegate.core.offers.limits import Usage
from tidegate.core.offers.offers import OfferGroups
from tidegate.core.planner import plan

OFTEN = SpareNode(0.2, 0.2, 0.2, 0.2)
HOUR_S = 3600.0
# A boot of 300 s less a start of 60 s, at 50 USD an hour.
SAVES_USD = 240 / 3600 * 50


def auto(usd_per_job_hour: float = 50.0, **more: object) -> Cluster:
    of = keeping(5, is_stopped_auto=True, **more)
    return replace(of, waiting=Waiting(usd_per_job_hour))


def standing(of: Cluster, ago_s: float) -> Snapshot:
    return snapshot(of=of, records=[stopped(ago_s=ago_s)], instances=[shown()])


def test_it_is_kept_until_its_disk_has_cost_what_a_start_saves() -> None:
    worth_s = SAVES_USD / DISK_USD * HOUR_S

    still = plan(standing(auto(), worth_s - 60))
    after = plan(standing(auto(), worth_s + 60))

    assert (ended(still), ended(after)) == ([], ["i-1"])
    said = "has cost 3.33 USD since it was stopped, and a start saves 3.33 USD of waiting"
    assert any(said in getattr(each, "reason", "") for each in after.actions)


@pytest.mark.parametrize("state", [InstanceState.STOPPED, InstanceState.RUNNING])
def test_so_it_is_while_the_head_is_silent_but_for_what_runs_again(state: InstanceState) -> None:
    """A cluster that is stopped over a weekend has no head to hear."""
    worth_s = SAVES_USD / DISK_USD * HOUR_S
    of = {ago_s: standing(auto(), worth_s + ago_s) for ago_s in (-60, 60)}
    silent = {ago_s: replace(each, digest_age_s=40_000.0) for ago_s, each in of.items()}
    shows = {ago_s: replace(s, instances=(shown(state=state),)) for ago_s, s in silent.items()}

    assert ended(plan(shows[-60])) == []
    assert ended(plan(shows[60])) == (["i-1"] if state is InstanceState.STOPPED else [])


@pytest.mark.parametrize("of", [auto(0.0), auto(50.0, start_s=300.0)])
def test_where_a_start_saves_nothing_none_is_stopped_and_none_kept(of: Cluster) -> None:
    assert (stops(plan(leaving(of))), ended(plan(leaving(of)))) == ([], ["i-1"])
    assert ended(plan(standing(of, 600.0))) == ["i-1"]


def test_a_number_stays_a_number_without_a_price_of_waiting() -> None:
    of = replace(keeping(1), waiting=Waiting(0.0))

    assert ended(plan(standing(of, 20 * 24 * HOUR_S))) == []


def test_no_more_are_stopped_than_the_pool_may_have() -> None:
    names = [f"i-{number}" for number in range(5)]
    full = [stopped(each) for each in names]
    seen = leaving(auto())
    (last,) = [replace(each, instance_id="i-9") for each in seen.nodes]
    running = replace(seen.instances[0], instance_id="i-9")

    made = plan(replace(seen, nodes=(*full, last), instances=(running, *(shown(n) for n in names))))

    assert (stops(made), ended(made)) == ([], ["i-9"])


def test_the_price_of_the_pool_s_dearest_partition_counts() -> None:
    of = auto(0.0)
    (partition,) = of.partitions
    dear = replace(of, waiting=Waiting(0.0, partitions={partition.name: 10.0}))

    assert kept_s(dear, dear.pools[0]) == pytest.approx(SAVES_USD / 5 / DISK_USD * HOUR_S)


def test_the_one_that_was_stopped_last_is_started_first() -> None:
    known = [stopped("i-1", 900.0), stopped("i-2", 500.0), stopped("i-3", 700.0)]
    instances = [shown(each.instance_id) for each in known]

    made = plan(snapshot([job(7)], of=auto(), records=known, instances=instances))

    assert starts(made) == ["i-2"]


def often(of: Cluster, num_stopped: int) -> Snapshot:
    known = [stopped(f"i-{number}") for number in range(num_stopped)]
    arrivals = Arrivals("g4dn.xlarge", int(NOW_S // 300), spare=(OFTEN,))
    seen = snapshot(of=of, records=known, instances=[shown(one.instance_id) for one in known])
    return replace(seen, pool_history=(PoolHistory("t4", arrivals=(arrivals,)),))


def test_a_spare_node_saves_only_a_start_where_one_stands_stopped() -> None:
    without, beside = (plan(often(auto(5.0), number)) for number in (0, 1))

    assert len(launches(without)) == 1
    assert launches(beside) == []


def test_where_a_boot_takes_no_time_a_start_saves_nothing() -> None:
    pool = replace(keeping().pools[0], boot_s=0.0)

    assert (start_share(pool), start_share(replace(pool, boot_s=300.0))) == (1.0, 0.2)


def test_a_spare_node_that_is_worth_it_by_the_start_alone_is_had_all_the_same() -> None:
    assert starts(plan(often(auto(50.0), 1))) == ["i-0"]


def test_the_next_boot_of_what_is_stopped_is_a_start() -> None:
    of = auto()

    boot, start = (
        boot_worth_s(of, of.pools[0], 1.0, is_stopped=is_stopped) for is_stopped in (False, True)
    )

    assert (boot, start) == (300 * 51, 60 * 51)


def test_what_was_started_is_expected_sooner_than_what_was_launched() -> None:
    known = replace(record("i-1", ON_DEMAND, age_s=20.0), is_started=True)
    seen = snapshot(of=auto(), records=[known], instances=[shown()])

    (started,) = members(seen)
    (launched,) = members(replace(seen, nodes=(replace(known, is_started=False),)))

    assert (boots_for_s(started, seen), boots_for_s(launched, seen)) == (40.0, 280.0)


@pytest.mark.parametrize(("num_stopped", "gone"), [(0, ["i-1"]), (1, [])])
def test_an_idle_node_that_would_be_stopped_goes_sooner(num_stopped: int, gone: list[str]) -> None:
    """It has idled for longer than a start takes, and for less than a boot."""
    of = replace(keeping(1, is_idle_auto=True), waiting=Waiting(0.0))
    idle = node("i-1", idle_s=120.0)
    running = shown("i-1", InstanceState.RUNNING)
    known = [record("i-1", ON_DEMAND), stopped("i-2")][: num_stopped + 1]
    seen = snapshot([], [idle], of=of, records=known, instances=[running, shown("i-2")])

    made = plan(seen)

    assert [n for each in orders(made, OrderKind.RELEASE) for n in each.names] == gone


@pytest.mark.parametrize(("num_jobs", "up_s"), [(1, 60.0), (2, 60.0), (3, 300.0)])
def test_a_node_of_its_own_is_a_start_where_one_stands_for_each_job(
    num_jobs: int, up_s: float
) -> None:
    seen = snapshot([job(number, gpus=1) for number in range(1, num_jobs + 1)], of=auto())
    needs, _ = demand(seen.heard.reading, seen.cluster, frozenset())
    steering = Steering(seen, OfferGroups(seen), Usage(seen.cluster, {}), needs=needs)
    steering.starts = {("t4", "g4dn.xlarge"): 2}

    own = steering.own_node(needs[0], Market.ON_DEMAND)

    assert own is not None
    assert own.boot_s == up_s


@pytest.mark.parametrize(("is_grouped", "up_s"), [(False, 60.0), (True, 300.0)])
def test_so_are_nodes_of_a_gang_but_in_a_placement_group(is_grouped: bool, up_s: float) -> None:
    of = auto()
    of = replace(of, pools=(replace(of.pools[0], placement_group=is_grouped),))
    seen = snapshot([job(7, nodes=2)], of=of)
    needs, _ = demand(seen.heard.reading, seen.cluster, frozenset())
    steering = Steering(seen, OfferGroups(seen), Usage(seen.cluster, {}), needs=needs)
    steering.starts = {("t4", "g4dn.xlarge"): 2}

    own = steering.own_node(needs[0], Market.ON_DEMAND)

    assert own is not None
    assert own.boot_s == up_s
