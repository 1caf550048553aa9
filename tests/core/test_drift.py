"""Nodes that are made from another template than their pool's: replaced once a new one is good."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tests.core.reading import launches, orders
from tests.make import NOW_S, cluster, instance, job, node, offering, pool, record, snapshot
from tidegate.core.explain.overview import overview
from tidegate.core.fleet.templates import chosen
from tidegate.core.model.budgets import Budget, Disruption
from tidegate.core.model.cluster import Limits, Pool
from tidegate.core.model.ec2 import FleetRequest, Instance, Market, Override, Template
from tidegate.core.model.ledger import NOT_TAKEN, Launch, LaunchRecord, NodeRecord, Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Learn, Plan, Rest
from tidegate.core.model.pool_history import FailedLaunch, PoolHistory
from tidegate.core.model.resting import TAKEN_BACK, Resting
from tidegate.core.model.slurm import Job, Node
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

OLD, NEW = Template("lt-t4", "1", "old-1"), Template("lt-t4", "2", "new-2")
UNLIMITED = Disruption((Budget(percent=100.0),))
BUSY = "ALLOCATED+DYNAMIC_NORM"
HOUR_S = 3600.0


def t4(**more: object) -> Pool:
    return replace(pool(idle_s=10 * HOUR_S), disruption=UNLIMITED, **more)  # type: ignore[arg-type]


def made_from(templates: Mapping[str, Template], age_s: float = 100.0) -> list[NodeRecord]:
    return [
        replace(record(name, age_s=age_s), template=of.digest) for name, of in templates.items()
    ]


def seen(
    of: Pool,
    nodes: Sequence[Node],
    records: Sequence[NodeRecord],
    *,
    jobs: Sequence[Job] = (),
    pool_history: PoolHistory | None = None,
    newest: Template = NEW,
) -> Snapshot:
    made = snapshot(
        jobs,
        nodes,
        of=cluster(of),
        instances=[_instance(each) for each in records],
        records=records,
    )
    return replace(
        made, templates=(("t4", newest),), pool_history=(pool_history,) if pool_history else ()
    )


def _instance(of: NodeRecord) -> Instance:
    return replace(instance(of.instance_id), launched_at_s=of.launched_at_s, template=of.template)


def busy(name: str) -> Node:
    return node(name, state=BUSY, gpus_alloc=1)


def running(*names: str) -> list[Job]:
    return [job(number, on=[name]) for number, name in enumerate(names, 100)]


def going(made: Plan) -> list[str]:
    sent = (*orders(made, OrderKind.DRAIN), *orders(made, OrderKind.RELEASE))
    return sorted(name for order in sent for name in order.names)


def learns(made: Plan) -> list[PoolHistory]:
    return [action.pool_history for action in made.actions if isinstance(action, Learn)]


PROVEN = PoolHistory("t4", good=NEW)


def failed(number: int = 1, of: Template = NEW, ago_s: float = 300.0) -> FailedLaunch:
    return FailedLaunch(f"l-{number}", NOW_S - ago_s - 900, NOW_S - ago_s, of.digest)


def two(*, pool_history: PoolHistory | None = None, **more: object) -> Snapshot:
    """A busy node from the old template, an idle one from the new."""
    records = made_from({"i-1": OLD, "i-2": NEW})
    nodes = [busy("i-1"), node("i-2")]
    return seen(t4(**more), nodes, records, jobs=running("i-1"), pool_history=pool_history)


def test_a_node_from_another_template_is_drained_once_the_new_one_is_proven():
    made = plan(two(pool_history=PROVEN))

    assert going(made) == ["i-1"]
    assert orders(made, OrderKind.DRAIN)[0].text == (
        "tidegate: drifted: made from template old-1, pool t4 has new-2 now (drifted)"
    )


def test_a_node_that_has_had_its_time_as_well_is_told_once():
    expires = Disruption(UNLIMITED.budgets, expire_after_s=60.0)
    old = seen(
        replace(t4(), disruption=expires),
        [busy("i-1")],
        made_from({"i-1": OLD}),
        jobs=running("i-1"),
        pool_history=PROVEN,
    )

    assert going(plan(old)) == ["i-1"]
    assert launches(plan(old)) == []


def test_nobody_drifts_whose_template_is_not_known():
    unknown = seen(t4(), [busy("i-1")], [record("i-1")], jobs=running("i-1"), pool_history=PROVEN)
    undeployed = replace(two(pool_history=PROVEN), templates=())

    assert going(plan(unknown)) + going(plan(undeployed)) == []


def test_before_any_node_goes_a_first_one_of_the_new_template_has_to_join():
    old = made_from({"i-1": OLD, "i-3": OLD})
    nodes, jobs = [busy("i-1"), busy("i-3")], running("i-1", "i-3")
    untried = plan(seen(t4(), nodes, old, jobs=jobs))
    booting = [*old, replace(record("i-2", age_s=60, phase=Phase.LAUNCHED), template="new-2")]
    tried = plan(seen(t4(), nodes, booting, jobs=jobs))
    joined = plan(seen(t4(), [*nodes, node("i-2")], booting, jobs=jobs))

    assert [launch.count for launch in launches(untried)] == [1]
    assert "first node of its new template" in launches(untried)[0].reason
    assert (launches(tried), going(tried)) == ([], [])
    assert [each.good for each in learns(joined)] == [NEW]
    assert going(joined) == ["i-1", "i-3"]


def test_a_launch_in_doubt_is_the_first_node_already():
    of = seen(t4(), [busy("i-1")], made_from({"i-1": OLD}), jobs=running("i-1"))

    assert launches(plan(replace(of, launches=(in_doubt(),)))) == []


def in_doubt() -> LaunchRecord:
    where = offering()
    planned = Launch("l-9", "t4", (where,), 1, 1, (), 0.2, "", "first")
    override = Override(where.instance_type, where.zone, "subnet", 0)
    asked = FleetRequest("l-9", "lt-t4", "2", Market.SPOT, 1, 1, (override,), ())
    return LaunchRecord(planned, NOW_S - 5, asked)


def test_nothing_is_bought_for_an_old_node_that_nobody_needs():
    made = plan(seen(t4(), [node("i-1")], made_from({"i-1": OLD})))

    assert (launches(made), going(made)) == ([], [])


def test_an_old_node_makes_room_for_the_first_new_one_where_a_limit_asks_for_it():
    of = t4(limits=Limits(nodes=2))
    nodes, jobs = [busy("i-1"), busy("i-3")], running("i-1", "i-3")

    made = plan(seen(of, nodes, made_from({"i-1": OLD, "i-3": OLD}), jobs=jobs))

    assert (launches(made), going(made)) == ([], ["i-1"])


def test_a_first_failure_stops_the_roll_until_another_try_succeeds():
    made = plan(two(pool_history=replace(PROVEN, failed=(failed(),))))

    assert going(made) == []
    assert [launch.count for launch in launches(made)] == [1]


def test_with_no_good_template_the_roll_stops_for_good():
    bad = PoolHistory("t4", (failed(1, ago_s=7200), failed(2, ago_s=7200)))

    made = plan(two(pool_history=bad))

    assert chosen(two(pool_history=bad), "t4") == NEW
    assert (launches(made), going(made)) == ([], [])


ENDED = replace(record("i-1", phase=Phase.INTERRUPTED, age_s=1000), interrupted_in=Phase.LAUNCHED)
FAILURES = {
    "never joined": (replace(record("i-1", phase=Phase.LAUNCHED, age_s=1000)), None, True),
    "joined down": (record("i-1", phase=Phase.LAUNCHED), "DOWN+DYNAMIC_NORM", True),
    "powered itself off": (replace(ENDED, reclaim_at_s=NOW_S - 100), None, False),
}


@pytest.mark.parametrize("how", FAILURES)
def test_a_launch_whose_node_is_no_good_is_noted_once(how):
    of, state, is_shown = FAILURES[how]
    nodes = [node("i-1", state=state)] if state else []
    rec = replace(of, template="new-2")
    one = seen(t4(), nodes, [rec])
    if not is_shown:
        one = replace(one, instances=())

    (pool_history,) = learns(plan(one))

    assert [(f.launch_id, f.template) for f in pool_history.failed] == [("l-0", "new-2")]
    assert learns(plan(replace(one, pool_history=(pool_history,)))) == []


def test_a_spot_instance_that_ec2_takes_back_while_it_boots_is_no_failure():
    one = replace(seen(t4(), [], [replace(ENDED, reclaim_at_s=NOW_S - 100)]), instances=())
    taken = Resting(ENDED.offering, NOW_S + 60, 1, TAKEN_BACK, "")

    (pool_history,) = learns(plan(replace(one, resting=(taken,))))

    assert pool_history.failed == ()


def test_what_ended_itself_is_a_failure_though_ec2_takes_others_back_there():
    own = replace(ENDED, template="new-2", interruption_loss=NOT_TAKEN)
    taken = Resting(ENDED.offering, NOW_S + 60, 1, TAKEN_BACK, "")
    one = replace(seen(t4(), [], [own]), instances=(), resting=(taken,))

    (pool_history,) = learns(plan(one))

    assert [f.template for f in pool_history.failed] == ["new-2"]


@pytest.mark.parametrize(("good", "rests"), [(OLD, False), (NEW, True), (None, True)])
def test_an_offering_does_not_rest_for_what_a_new_template_did(good, rests):
    of = replace(record("i-1", phase=Phase.LAUNCHED, age_s=1000), template="new-2")
    made = plan(seen(t4(), [], [of], pool_history=PoolHistory("t4", good=good)))

    assert any(isinstance(action, Rest) for action in made.actions) is rests


def test_a_good_join_forgets_the_failures_of_its_template_only():
    before = PoolHistory("t4", (failed(1, NEW), failed(2, OLD)))
    joins = replace(record("i-1", phase=Phase.LAUNCHED, age_s=60), template="new-2")

    (after,) = learns(plan(seen(t4(), [node("i-1")], [joins], pool_history=before)))

    assert ([f.launch_id for f in after.failed], after.good) == (["l-2"], NEW)
    assert after.recent(NOW_S) == []


TOLD = [
    ((), ""),
    ((failed(1, ago_s=7200),), "gave no good node in 1 launches, nothing is replaced by it"),
]


@pytest.mark.parametrize(("failures", "says"), TOLD)
def test_status_tells_of_a_template_that_fails(failures, says):
    found = overview(two(pool_history=PoolHistory("t4", failures, good=NEW)), None).needs_a_look

    assert [each.startswith("pool t4: template new-2") for each in found] == [True] * bool(says)
    assert not says or says in found[0]


def test_status_tells_when_a_pool_that_is_closed_opens_again():
    failures = tuple(replace(failed(n, OLD), launched_at_s=NOW_S - 1500) for n in (1, 2, 3))

    assert overview(two(pool_history=PoolHistory("t4", failures)), None).needs_a_look == (
        "pool t4: the last 3 launches gave no good node, nothing is bought until 08:05:00 UTC",
    )
