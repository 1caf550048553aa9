"""Nodes that are stopped as they leave, and started instead of new ones."""

from dataclasses import replace

import pytest

from tests.core.reading import ended, launches, orders
from tests.make import (
    A10G,
    NOW_S,
    T4,
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
from tidegate.core.fleet.stopped import KEPT_MAX_S
from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.ec2 import Instance, InstanceState, Market, Offering, Template
from tidegate.core.model.ledger import Cordon, LaunchRecord, LaunchStatus, NodeRecord, Phase
from tidegate.core.model.orders import OrderKind, OrderOutcome, OrderResult, PendingOrder
from tidegate.core.model.plan import Mark, Plan, Reprice, Rest, Stop
from tidegate.core.model.resting import Resting
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

ON_DEMAND = offering(T4, Market.ON_DEMAND)
DISK_USD = 0.011
RELEASE = PendingOrder("o-1", OrderKind.RELEASE, NOW_S - 3000, "empty")
LET_GO = OrderResult("o-1", OrderKind.RELEASE, "i-1", OrderOutcome.DONE)
TEMPLATE = Template("lt-t4", "2", "two")


def keeping(stopped_nodes: int = 1, **more: object) -> Cluster:
    of = pool(types=(T4,), markets=(Market.ON_DEMAND,))
    fields = {"stopped_nodes": stopped_nodes, "stopped_usd_per_hour": DISK_USD, **more}
    return cluster(replace(of, **fields))  # type: ignore[arg-type]


def of_pool(of: Cluster) -> Pool:
    return of.pools[0]


def released(name: str = "i-1", **more: object) -> NodeRecord:
    """It idled, and Slurm has let it go."""
    known = record(name, ON_DEMAND, phase=Phase.RELEASED, order=RELEASE)
    return replace(known, **more)  # type: ignore[arg-type]


def stopped(name: str = "i-1", ago_s: float = 600.0, **more: object) -> NodeRecord:
    known = released(name, stopped_at_s=NOW_S - ago_s, usd_per_hour=DISK_USD)
    return replace(known, **more)  # type: ignore[arg-type]


def shown(name: str = "i-1", state: InstanceState = InstanceState.STOPPED) -> Instance:
    return instance(name, ON_DEMAND, state=state)


def stops(made: Plan) -> list[str]:
    return [n for each in made.actions if isinstance(each, Stop) for n in each.instance_ids]


def starts(made: Plan) -> list[str]:
    return [each.starts for each in launches(made)]


def leaving(of: Cluster, **more: object) -> Snapshot:
    running = shown(state=InstanceState.RUNNING)
    known = replace(released(), **more)  # type: ignore[arg-type]
    return snapshot(of=of, records=[known], instances=[running])


def waiting(of: Cluster | None = None, nodes: int = 1, known: NodeRecord | None = None) -> Snapshot:
    """A job waits, and one node is stopped."""
    asked = job(7, nodes=nodes)
    return snapshot([asked], of=of or keeping(), records=[known or stopped()], instances=[shown()])


def test_what_idled_out_is_stopped_where_its_pool_keeps_such_nodes() -> None:
    made = plan(leaving(keeping()))

    assert stops(made) == ["i-1"]
    assert ended(made) == []


def test_without_the_option_it_is_terminated() -> None:
    made = plan(leaving(keeping(0)))

    assert (stops(made), ended(made)) == ([], ["i-1"])


@pytest.mark.parametrize(
    "more",
    [
        {"order": replace(RELEASE, code="unhealthy")},
        {"order": None},
        {"offering": offering(T4, Market.SPOT)},
        {"cordon": Cordon("AWS Health: X", NOW_S - 60)},
        {"reclaim_at_s": NOW_S + 60},
        {"layout": "1g"},
        {"silent_s": 1860.0},
    ],
)
def test_what_left_for_another_reason_or_is_not_on_demand_is_terminated(
    more: dict[str, object],
) -> None:
    made = plan(leaving(keeping(), **more))

    assert stops(made) == []
    assert ended(made) == ["i-1"]


def test_one_in_a_placement_group_is_terminated() -> None:
    """It would start beside what is left of its gang alone, where EC2 may have no room."""
    seen = leaving(keeping())
    (running,) = seen.instances
    grouped = replace(seen, instances=(replace(running, placement_group="demo-t4-a"),))

    made = plan(grouped)

    assert (stops(made), ended(made)) == ([], ["i-1"])


def test_a_pool_stops_no_more_than_it_keeps() -> None:
    of = keeping(2)
    names = ("i-1", "i-2", "i-3")
    seen = snapshot(
        of=of,
        records=[stopped("i-0"), *(released(each) for each in names)],
        instances=[shown("i-0"), *(shown(each, InstanceState.RUNNING) for each in names)],
    )

    made = plan(seen)

    assert (stops(made), ended(made)) == (["i-1"], ["i-2", "i-3"])


def test_it_is_told_again_while_its_planner_may_have_died() -> None:
    running = shown(state=InstanceState.RUNNING)

    made = plan(snapshot(of=keeping(), records=[stopped(ago_s=30.0)], instances=[running]))

    assert (stops(made), ended(made)) == (["i-1"], [])


def test_what_somebody_started_is_terminated() -> None:
    running = shown(state=InstanceState.RUNNING)

    made = plan(snapshot(of=keeping(), records=[stopped()], instances=[running]))

    assert (stops(made), ended(made)) == ([], ["i-1"])


def test_what_somebody_started_is_left_alone_while_the_head_is_silent() -> None:
    """Slurm may have it again, with a job."""
    back = shown(state=InstanceState.RUNNING)
    known = [stopped(), replace(released("i-2"), order=None)]
    running = [back, shown("i-2", state=InstanceState.RUNNING)]
    silent = snapshot(of=keeping(0), records=known, instances=running, age_s=400.0)

    assert ended(plan(silent)) == ["i-2"]


def test_a_stopped_node_costs_its_disk() -> None:
    dear = replace(stopped(), usd_per_hour=0.526)

    made = plan(snapshot(of=keeping(), records=[dear], instances=[shown()]))

    assert [(a.instance_id, a.usd_per_hour) for a in made.actions if isinstance(a, Reprice)] == [
        ("i-1", DISK_USD)
    ]


@pytest.mark.parametrize(
    ("of", "ago_s", "said"),
    [
        (keeping(0), 600.0, "pool t4 keeps 0 stopped nodes"),
        (keeping(zones=("us-east-1b",)), 600.0, "has no g4dn.xlarge/us-east-1a/on-demand any more"),
        (keeping(), KEPT_MAX_S + 1, "it was stopped for 30 days"),
        (cluster(pool("a10g")), 600.0, "its pool t4 is not in the cluster file any more"),
    ],
)
def test_what_is_of_no_more_use_ends(of: Cluster, ago_s: float, said: str) -> None:
    made = plan(snapshot(of=of, records=[stopped(ago_s=ago_s)], instances=[shown()]))

    assert ended(made) == ["i-1"]
    assert any(said in getattr(each, "reason", "") for each in made.actions)


def test_of_too_many_those_go_that_stand_longest() -> None:
    old, new = stopped("i-1", 900.0), stopped("i-2", 800.0)

    made = plan(snapshot(of=keeping(), records=[old, new], instances=[shown(), shown("i-2")]))

    assert ended(made) == ["i-1"]


def test_what_is_made_from_another_template_ends() -> None:
    seen = snapshot(of=keeping(), records=[stopped(template="one")], instances=[shown()])

    made = plan(replace(seen, templates=(("t4", TEMPLATE),)))

    assert ended(made) == ["i-1"]


@pytest.mark.parametrize("instances", [[], [shown(state=InstanceState.SHUTTING_DOWN)]])
def test_what_ended_meanwhile_is_forgotten(instances: list[Instance]) -> None:
    made = plan(snapshot(of=keeping(), records=[stopped()], instances=instances))

    assert [a.phase for a in made.actions if isinstance(a, Mark)] == [Phase.TERMINATED]


def test_a_stopped_node_is_started_instead_of_a_new_one() -> None:
    made = plan(waiting())

    (launch,) = launches(made)
    assert (launch.starts, launch.count, launch.for_jobs) == ("i-1", 1, ("7",))
    assert launch.offerings == (ON_DEMAND,)
    assert "which was stopped" in launch.reason


def test_what_is_lacking_beside_it_is_bought() -> None:
    jobs = [job(number, gpus=1) for number in (1, 2, 3)]
    seen = snapshot(jobs, of=keeping(), records=[stopped()], instances=[shown()])

    made = plan(seen)

    assert [(each.starts, each.count) for each in launches(made)] == [("i-1", 1), ("", 2)]
    assert [each.for_jobs for each in launches(made)] == [("1",), ("2", "3")]
    assert len({each.launch_id for each in launches(made)}) == 2


@pytest.mark.parametrize(
    ("num_jobs", "launches_max", "started"),
    [
        (1, 1, ["i-1"]),
        (2, 2, ["i-1", "i-2"]),
        (2, 1, [""]),
        (3, 2, ["i-1", ""]),
    ],
)
def test_a_start_is_a_launch_among_those_that_one_look_may_make(
    num_jobs: int, launches_max: int, started: list[str]
) -> None:
    seen = snapshot(
        [job(n) for n in range(num_jobs)],
        of=keeping(3),
        records=[stopped(f"i-{n}") for n in (1, 2, 3)],
        instances=[shown(f"i-{n}") for n in (1, 2, 3)],
    )

    made = plan(seen, launches_max=launches_max)

    assert starts(made) == started
    assert sum(each.count for each in launches(made)) == num_jobs


@pytest.mark.parametrize(("num_big", "started"), [(1, ["i-2", "i-1"]), (2, ["", "i-1"])])
def test_what_is_started_of_one_launch_leaves_room_for_the_next(
    num_big: int, started: list[str]
) -> None:
    big = Offering(A10G.name, ON_DEMAND.zone, Market.ON_DEMAND)
    of = keeping()
    second = replace(of_pool(of), name="a10g", instance_types=(A10G,), stopped_nodes=2)
    of = cluster(of_pool(of), second)
    others = [replace(stopped(name), pool="a10g", offering=big) for name in ("i-2", "i-3")]
    seen = snapshot(
        [job(1), *(job(2 + n, gpus=4, gpu_type="a10g") for n in range(num_big))],
        of=of,
        records=[stopped("i-1"), *others],
        instances=[shown("i-1"), *(replace(shown(e.instance_id), offering=big) for e in others)],
    )

    made = plan(seen, launches_max=2)

    assert starts(made) == started
    assert sum(each.count for each in launches(made)) == 1 + num_big


def test_a_gang_is_launched_as_a_whole() -> None:
    assert starts(plan(waiting(nodes=2))) == [""]


@pytest.mark.parametrize(
    "known",
    [
        stopped(ago_s=120.0),  # orders and digests of its former life may be under way
        stopped(order=replace(RELEASE, not_after_s=NOW_S + 10)),
        stopped(usd_per_hour=0.526),  # what it ran is counted by this look, and ends its account
    ],
)
def test_it_is_not_started_before_its_former_life_is_over(known: NodeRecord) -> None:
    assert starts(plan(waiting(known=known))) == [""]


def test_one_that_still_stops_is_not_started() -> None:
    seen = waiting()

    made = plan(replace(seen, instances=(shown(state=InstanceState.STOPPING),)))

    assert starts(made) == [""]


def test_where_ec2_refused_a_start_nothing_is_started() -> None:
    of = keeping(zones=("us-east-1a", "us-east-1b"))
    rest = Resting(ON_DEMAND, NOW_S + 60, 1, "InsufficientInstanceCapacity", "none")

    made = plan(replace(waiting(of), resting=(rest,)))

    (launch,) = launches(made)
    assert (launch.starts, launch.offerings[0].zone) == ("", "us-east-1b")


def test_one_is_started_once() -> None:
    seen = waiting()
    (launch,) = launches(plan(seen))
    request = fleet_request(launch, "test", placement(seen.cluster))
    in_doubt = LaunchRecord(launch, NOW_S - 5, request, LaunchStatus.RECORDED)

    made = plan(replace(seen, launches=(in_doubt,)))

    assert (launches(made), stops(made), ended(made)) == ([], [], [])


def test_a_start_in_doubt_whose_node_has_joined_is_left_alone() -> None:
    seen = waiting()
    (launch,) = launches(plan(seen))
    request = fleet_request(launch, "test", placement(seen.cluster))
    in_doubt = LaunchRecord(launch, NOW_S - 5, request, LaunchStatus.RECORDED)
    running = replace(shown(state=InstanceState.RUNNING), launch_id=launch.launch_id)
    joined = snapshot(
        [job(7, on=["i-1"])],
        [node("i-1", state="ALLOCATED+DYNAMIC_NORM", gpus_alloc=1)],
        of=seen.cluster,
        records=[stopped()],
        instances=[running],
        launches=[in_doubt],
        results=[LET_GO],
    )

    made = plan(joined)

    assert (stops(made), ended(made), orders(made, OrderKind.RELEASE)) == ([], [], [])


def started(age_s: float, phase: Phase = Phase.LAUNCHED) -> NodeRecord:
    return replace(record("i-1", ON_DEMAND, age_s=age_s, phase=phase), is_started=True)


@pytest.mark.parametrize("phase", [Phase.LAUNCHED, Phase.JOINED])
def test_what_ec2_still_shows_as_stopped_is_on_its_way(phase: Phase) -> None:
    nodes = [node("i-1")] if phase is Phase.JOINED else []

    made = plan(
        snapshot([job(7)], nodes, of=keeping(), records=[started(20.0, phase)], instances=[shown()])
    )

    assert (launches(made), ended(made)) == ([], [])
    assert [each.by for each in made.served] == [("i-1",)]


def test_what_ec2_stops_again_as_it_starts_ends_and_its_offering_rests() -> None:
    made = plan(snapshot(of=keeping(), records=[started(120.0)], instances=[shown()]))

    assert ended(made) == ["i-1"]
    assert [each.offering for each in made.actions if isinstance(each, Rest)] == [ON_DEMAND]


def test_a_start_tells_a_node_nothing_of_its_former_launch() -> None:
    seen = waiting()
    (launch,) = launches(plan(seen))

    tags = dict(fleet_request(launch, "test", placement(seen.cluster)).tags)

    assert tags["tidegate:launch"] == launch.launch_id
    assert [tags[f"tidegate:{each}"] for each in ("gate", "mig", "data", "account")] == [""] * 4
