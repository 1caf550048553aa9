"""A stopped node on demand is started where spot would have to boot, if that pays."""

from dataclasses import replace

import pytest

from tests.core.reading import launches
from tests.core.test_sick_places import twice
from tests.core.test_stopped_nodes import ON_DEMAND, keeping, shown, stopped
from tests.make import A10G, T4, T4_BIG, instance, job, node, offering, record, snapshot
from tidegate.core.model.cluster import Cluster, Limits
from tidegate.core.model.ec2 import Market
from tidegate.core.model.ledger import Launch, Phase
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.slurm import Job, Shape
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.waiting import Waiting
from tidegate.core.planner import plan

HOUR_S = 3600.0
SPOT_USD = 0.2
ON_DEMAND_USD = 0.526
SMALL = Shape(0, "", 1, 1000)


def spot_first(usd_per_job_hour: float = 50.0, **more: object) -> Cluster:
    """A node boots in 300 s and starts in 60."""
    of = keeping(9, markets=(Market.SPOT, Market.ON_DEMAND), **more)
    prices = {**of.prices, offering(): SPOT_USD}
    return replace(of, prices=prices, waiting=Waiting(usd_per_job_hour))


def waiting(*jobs: Job, of: Cluster | None = None, num_stopped: int = 1) -> Snapshot:
    names = [f"i-{number}" for number in range(1, num_stopped + 1)]
    return snapshot(
        jobs,
        of=of or spot_first(),
        records=[stopped(name) for name in names],
        instances=[shown(name) for name in names],
    )


def started(seen: Snapshot) -> list[str]:
    """The nodes that start; "": spot is bought."""
    made = launches(plan(seen))
    for each in made:
        market = Market.ON_DEMAND if each.starts else Market.SPOT
        assert each.offerings[0] == replace(ON_DEMAND, market=market)
    return [each.starts for each in made]


def an_hour(job_id: int = 7, *, nodes: int = 1, constraint: str = "", comment: str = "") -> Job:
    return job(job_id, nodes=nodes, time_limit_s=HOUR_S, constraint=constraint, comment=comment)


def test_a_short_job_starts_what_is_stopped_and_hears_both_sides() -> None:
    seen = waiting(an_hour())

    assert started(seen) == ["i-1"]
    (launch,) = launches(plan(seen))
    assert launch.usd_per_hour_each == ON_DEMAND_USD
    on_spot = plan(replace(seen, nodes=(), instances=())).usd_per_hour
    assert plan(seen).usd_per_hour - on_spot == pytest.approx(ON_DEMAND_USD - SPOT_USD)
    # 0.28 USD on spot, with what 0.05 interruptions an hour are reckoned at, and 0.53 on demand.
    assert "instead of a new one on spot: it is up 240 s sooner, for 0.26 USD more; " in (
        launch.reason
    )


@pytest.mark.parametrize(("usd_per_job_hour", "names"), [(0.0, [""]), (4.5, [""]), (6.0, ["i-1"])])
def test_the_price_of_waiting_decides(usd_per_job_hour: float, names: list[str]) -> None:
    assert started(waiting(an_hour(), of=spot_first(usd_per_job_hour))) == names


def test_where_it_pays_for_some_nodes_only_the_others_are_bought() -> None:
    assert sorted(started(waiting(an_hour(7), an_hour(8), num_stopped=1))) == ["", "i-1"]


def test_a_long_job_that_spot_suits_waits_for_it() -> None:
    of = spot_first(3.0, checkpoint_s=600.0)

    assert started(waiting(job(7, time_limit_s=2 * HOUR_S), of=of)) == [""]
    assert started(waiting(job(7, time_limit_s=HOUR_S / 10), of=of)) == ["i-1"]


@pytest.mark.parametrize(
    "asks", [an_hour(constraint="spot"), an_hour(comment="tidegate:deadline=1900000000")]
)
def test_a_job_that_asks_for_spot_or_has_a_deadline_gets_what_was_planned(asks: Job) -> None:
    assert started(waiting(asks)) == [""]


@pytest.mark.parametrize(("usd", "names"), [(0.5, [""]), (0.6, ["i-1"])])
def test_a_limit_that_leaves_too_little_for_it_buys_spot(usd: float, names: list[str]) -> None:
    of = spot_first(limits=Limits(usd_per_hour=usd))

    assert started(waiting(an_hour(), of=of)) == names


def test_limits_hold_for_all_that_are_started() -> None:
    of = spot_first(limits=Limits(usd_per_hour=0.8))

    names = started(waiting(an_hour(7), an_hour(8), of=of, num_stopped=2))

    assert sorted(map(bool, names)) == [False, True]


@pytest.mark.parametrize(("num_stopped", "names"), [(1, [""]), (2, ["i-1", "i-2"])])
def test_a_gang_is_started_whole_or_bought(num_stopped: int, names: list[str]) -> None:
    gang = waiting(an_hour(nodes=2), num_stopped=num_stopped)

    assert started(gang) == names


def test_none_is_started_where_nodes_become_sick() -> None:
    """A start takes a host as a launch does, and there is spot for the job elsewhere."""
    seen = waiting(an_hour())
    sick = PoolHistory("t4", findings=twice(ON_DEMAND))

    assert started(replace(seen, pool_history=(sick,))) == [""]


def test_of_another_type_none_is_started() -> None:
    seen = waiting(an_hour())
    other = replace(ON_DEMAND, instance_type=A10G.name)
    known = [replace(each, offering=other) for each in seen.nodes]

    assert T4.name != A10G.name
    assert started(replace(seen, nodes=tuple(known))) == [""]


def on_large_nodes(*jobs: Job, usd_per_job_hour: float = 1.0) -> list[Launch]:
    """What is launched for small jobs that share nodes, of which one stands stopped."""
    of = replace(spot_first(), waiting=Waiting(usd_per_job_hour, accounts={"patient": 0.0}))
    large = replace(of.pools[0], instance_types=(T4_BIG,))
    on = replace(ON_DEMAND, instance_type=T4_BIG.name)
    prices = {on: 0.6, replace(on, market=Market.SPOT): 0.1}
    seen = waiting(*jobs, of=replace(of, pools=(large,), prices=prices))
    nodes = tuple(replace(each, offering=on) for each in seen.nodes)
    instances = tuple(replace(each, offering=on) for each in seen.instances)
    return launches(plan(replace(seen, nodes=nodes, instances=instances)))


@pytest.mark.parametrize(("account", "starts"), [("", "i-1"), ("patient", "")])
def test_each_of_many_jobs_on_a_node_has_its_say(account: str, starts: str) -> None:
    """A launch's record names twenty."""
    many = [replace(an_hour(number), shape=SMALL) for number in range(1, 22)]
    last = replace(an_hour(22), shape=SMALL, account=account)

    (launch,) = on_large_nodes(*many, last)

    assert launch.starts == starts


def test_the_waits_of_other_nodes_jobs_pay_for_no_start() -> None:
    two_cpus = replace(SMALL, cpus=2)
    jobs = [replace(an_hour(number), shape=two_cpus) for number in range(1, 49)]

    (bought,) = on_large_nodes(*jobs, usd_per_job_hour=0.3)
    assert (bought.count, bought.starts) == (2, "")
    assert "i-1" in [each.starts for each in on_large_nodes(*jobs, usd_per_job_hour=0.6)]


def test_of_a_heterogeneous_job_no_component_is_started_by_another_s_wishes() -> None:
    """Both go by the leader's id, and the leader, whose node is there, takes either market."""
    leader, other = replace(an_hour(7), het_job_id="7"), an_hour(8, constraint="spot")
    seen = waiting(leader, replace(other, het_job_id="7"))
    up = record("i-9", offering(), phase=Phase.JOINED)
    digest = replace(seen.heard, reading=replace(seen.heard.reading, nodes=(node("i-9"),)))
    instances = (*seen.instances, instance("i-9", offering()))

    (launch,) = launches(
        plan(replace(seen, nodes=(*seen.nodes, up), instances=instances, digest=digest))
    )

    assert (launch.for_jobs, launch.starts) == (("8",), "")
