"""Gangs that start from stopped nodes: every node that they lack, or none."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import launches, why
from tests.core.test_stopped_nodes import DISK_USD, ON_DEMAND, keeping, of_pool, shown, stopped
from tests.make import A10G, NOW_S, T4, cluster, instance, job, placement, record, snapshot
from tidegate.core.model.cluster import Cluster, Limits, SpendingBudget
from tidegate.core.model.ec2 import InstanceState, Market, Offering
from tidegate.core.model.ledger import Charge, Launch, LaunchRecord, LaunchStatus, NodeRecord, Phase
from tidegate.core.model.plan import Plan, Resume
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

ELSEWHERE = replace(ON_DEMAND, zone="us-east-1b")
BOTH = ("us-east-1a", "us-east-1b")
BIG = Offering(A10G.name, ON_DEMAND.zone, Market.ON_DEMAND)


def waiting(
    jobs: Sequence[Job], names: Sequence[str], of: Cluster | None = None, **on: Offering
) -> Snapshot:
    """Jobs wait, and these nodes are stopped, in the first zone unless it says otherwise."""
    found = {each.replace("_", "-"): where for each, where in on.items()}
    known = [replace(stopped(name), offering=found.get(name, ON_DEMAND)) for name in names]
    there = [replace(shown(one.instance_id), offering=one.offering) for one in known]
    return snapshot(jobs, of=of or keeping(9), records=known, instances=there)


def started(made: Plan) -> list[tuple[str, str]]:
    """Which node starts for which gang; "": nodes are bought for it."""
    return [(each.starts, each.gated_for) for each in launches(made)]


def test_a_gang_is_started_where_a_stopped_node_stands_for_each_of_its_nodes() -> None:
    made = plan(waiting([job(7, nodes=2)], ["i-1", "i-2"]))

    assert started(made) == [("i-1", "7"), ("i-2", "7")]
    for each in launches(made):
        assert (each.count, each.min_count, each.for_jobs, each.gangs) == (1, 1, ("7",), ())
        assert each.offerings == (ON_DEMAND,)
    assert len({each.launch_id for each in launches(made)}) == 2
    assert [each.by for each in made.served] == [("new g4dn.xlarge 1", "new g4dn.xlarge 2")]


def test_what_is_started_for_a_gang_joins_closed() -> None:
    seen = waiting([job(7, nodes=2)], ["i-1", "i-2"])

    for each in launches(plan(seen)):
        tags = dict(fleet_request(each, "test", placement(seen.cluster)).tags)
        assert tags["tidegate:gate"] == "drain"


def test_a_gang_for_which_too_few_stand_is_bought_whole() -> None:
    """What is started beside it would wait for what boots, and is not there for the next job."""
    made = plan(waiting([job(7, nodes=3)], ["i-1", "i-2"]))

    assert [(each.starts, each.count) for each in launches(made)] == [("", 3)]


@pytest.mark.parametrize(
    ("there", "zones"),
    [(["i-1", "i-4"], ["us-east-1b", "us-east-1b"]), (["i-1"], [])],
)
def test_a_gang_is_started_in_one_zone(there: list[str], zones: list[str]) -> None:
    made = plan(
        waiting(
            *([job(7, nodes=2)], [*there, "i-2"], keeping(9, zones=BOTH)),
            i_2=ELSEWHERE,
            i_4=ELSEWHERE,
        )
    )

    found = [each.offerings[0].zone for each in launches(made) if each.starts]
    assert found == zones
    assert sum(each.count for each in launches(made)) == 2


def test_of_equal_gangs_the_first_are_started_and_the_others_bought() -> None:
    made = plan(waiting([job(n, nodes=2) for n in (7, 8, 9)], ["i-1", "i-2", "i-3"]))

    assert started(made) == [("i-1", "7"), ("i-2", "7"), ("", "8")]
    rest = launches(made)[-1]
    assert (rest.count, rest.min_count, rest.gangs, rest.for_jobs) == (4, 2, ("8", "9"), ("8", "9"))


def test_the_last_of_equal_gangs_is_bought_as_one_alone() -> None:
    made = plan(waiting([job(n, nodes=2) for n in (7, 8)], ["i-1", "i-2"]))

    rest = launches(made)[-1]
    assert (rest.count, rest.min_count, rest.gangs, rest.gated_for) == (2, 2, (), "8")


def test_tasks_of_an_array_of_gangs_are_started_one_by_one() -> None:
    made = plan(waiting([job(7, nodes=2, count=2)], ["i-1", "i-2", "i-3"]))

    assert started(made) == [("i-1", "7"), ("i-2", "7"), ("", "7")]
    assert [each.count for each in launches(made)] == [1, 1, 2]


def test_in_a_placement_group_none_is_started() -> None:
    of = keeping(9, placement_group=True)

    made = plan(waiting([job(7, nodes=2), job(8)], ["i-1", "i-2"], of))

    assert started(made) == [("", "7"), ("i-1", "")]


def test_where_spot_is_bought_first_none_is_started() -> None:
    of = keeping(9, markets=(Market.SPOT, Market.ON_DEMAND))
    of = replace(of, prices={**of.prices, replace(ON_DEMAND, market=Market.SPOT): 0.2})

    assert started(plan(waiting([job(7, nodes=2)], ["i-1", "i-2"], of))) == [("", "7")]


@pytest.mark.parametrize(("launches_max", "num_started"), [(2, 2), (1, 0)])
def test_a_plan_that_may_hold_fewer_launches_buys_the_gang(
    launches_max: int, num_started: int
) -> None:
    made = plan(waiting([job(7, nodes=2)], ["i-1", "i-2"]), launches_max=launches_max)

    assert sum(bool(each.starts) for each in launches(made)) == num_started
    assert len(launches(made)) <= launches_max
    assert sum(each.count for each in launches(made)) == 2


def test_a_gang_over_a_limit_starts_none() -> None:
    made = plan(
        waiting([job(7, nodes=3)], ["i-1", "i-2", "i-3"], keeping(3, limits=Limits(nodes=2)))
    )

    assert launches(made) == []
    assert "pool t4 is limited to 2 nodes" in why(made, "7")


def test_where_the_money_is_spent_none_is_started() -> None:
    of = replace(keeping(2), budgets={"cluster": SpendingBudget(usd_per_day=1.0)})
    spent = (Charge("2027-01-15", "cluster", 2.0),)

    made = plan(replace(waiting([job(7, nodes=2)], ["i-1", "i-2"], of), spent=spent))

    assert launches(made) == []


def test_where_ec2_has_refused_none_is_started() -> None:
    rest = Resting(ON_DEMAND, NOW_S + 60, 1, "InsufficientInstanceCapacity", "none")
    of = keeping(9, zones=BOTH)

    made = plan(replace(waiting([job(7, nodes=2)], ["i-1", "i-2"], of), resting=(rest,)))

    (launch,) = launches(made)
    assert (launch.starts, launch.offerings[0].zone) == ("", "us-east-1b")


@pytest.mark.parametrize("state", [None, InstanceState.SHUTTING_DOWN, InstanceState.STOPPING])
def test_with_one_that_is_gone_the_gang_is_bought(state: InstanceState | None) -> None:
    seen = waiting([job(7, nodes=2)], ["i-1", "i-2"])
    left = [shown("i-1"), *([shown("i-2", state)] if state else [])]

    made = plan(replace(seen, instances=tuple(left)))

    assert [(each.starts, each.count) for each in launches(made)] == [("", 2)]


def lacking_one(*, of_zone: str = ON_DEMAND.zone) -> Snapshot:
    """One node of the gang boots, since another was lost, and one is stopped."""
    booting = record("i-1", ON_DEMAND, phase=Phase.LAUNCHED, gated_for="7")
    standing = replace(stopped("i-2"), offering=replace(ON_DEMAND, zone=of_zone))
    return snapshot(
        [job(7, nodes=2)],
        of=keeping(9, zones=BOTH),
        records=[booting, standing],
        instances=[
            instance("i-1", ON_DEMAND),
            replace(shown("i-2"), offering=standing.offering),
        ],
    )


def test_what_a_gang_lacks_is_started_beside_what_it_has_and_nowhere_else() -> None:
    here, there = plan(lacking_one()), plan(lacking_one(of_zone="us-east-1b"))

    assert started(here) == [("i-2", "7")]
    assert [(each.starts, each.offerings) for each in launches(there)] == [("", (ON_DEMAND,))]


def doubted(launch: Launch, seen: Snapshot, age_s: float) -> LaunchRecord:
    request = fleet_request(launch, "test", placement(seen.cluster))
    return LaunchRecord(launch, NOW_S - age_s, request, LaunchStatus.RECORDED)


def test_a_gang_whose_start_is_in_doubt_is_finished_and_bought_no_second_time() -> None:
    """The planner died after the first of two starts was written down."""
    seen = waiting([job(7, nodes=2)], ["i-1", "i-2"])
    first, second = launches(plan(seen))
    up = replace(
        record("i-1", ON_DEMAND, age_s=50, phase=Phase.LAUNCHED, gated_for="7"),
        launch_id=first.launch_id,
        is_started=True,
    )
    half = replace(
        seen,
        nodes=(up, seen.nodes[1]),
        instances=(instance("i-1", ON_DEMAND, launch_id=first.launch_id), shown("i-2")),
    )

    young = plan(replace(half, launches=(doubted(second, seen, 5),)))
    old = plan(replace(half, launches=(doubted(second, seen, 50),)))

    assert launches(young) == launches(old) == []
    assert [set(each.by) for each in young.served] == [{"i-1", f"{second.launch_id}.0"}]
    assert [a.launch_id for a in old.actions if isinstance(a, Resume)] == [second.launch_id]


def of_kinds(num_big: int) -> Snapshot:
    """A job of one T4 node and two of another kind, of which so many stand stopped."""
    of = keeping(9)
    big = replace(of_pool(of), name="a10g", instance_types=(A10G,))
    others: list[NodeRecord] = [
        replace(stopped(f"i-{n}"), pool="a10g", offering=BIG) for n in range(2, 2 + num_big)
    ]
    asked = job(9, nodes=3, gpus=1, gpu_type="", constraint="[t4*1&a10g*2]")
    return snapshot(
        [asked],
        of=cluster(of_pool(of), big),
        records=[stopped("i-1"), *others],
        instances=[
            shown("i-1"),
            *(replace(shown(o.instance_id), offering=BIG, pool="a10g") for o in others),
        ],
    )


def test_a_gang_of_kinds_is_started_when_all_of_each_kind_stand() -> None:
    whole, short = plan(of_kinds(2)), plan(of_kinds(1))

    assert sorted(started(whole)) == [("i-1", "9"), ("i-2", "9"), ("i-3", "9")]
    assert [(each.starts, each.count) for each in launches(short)] == [("", 1), ("", 2)]


def test_nothing_of_it_costs_more_than_a_launch() -> None:
    assert stopped().usd_per_hour == DISK_USD
    made = plan(waiting([job(7, nodes=2)], ["i-1", "i-2"]))

    assert {each.usd_per_hour_each for each in launches(made)} == {0.526}
    assert made.usd_per_hour == pytest.approx(2 * 0.526)
    assert {each.offerings[0].instance_type for each in launches(made)} == {T4.name}
