"""What the interruption function writes down, so that the planner neither repeats nor forgets."""

from dataclasses import replace

import pytest

from tests.make import cluster, instance, job, node, pool, record
from tests.service.conftest import World
from tidegate.core.model.cluster import Cluster, Rebalance
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.errors import Throttled
from tidegate.core.model.events import (
    HealthCategory,
    HealthNotice,
    RebalanceRecommendation,
    SpotInterruption,
    StateChange,
)
from tidegate.core.model.ledger import InterruptionLoss, Launch, MonthlyLosses, Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.resting import TAKEN_BACK

CODE = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
ENDS = StateChange("i-1", InstanceState.SHUTTING_DOWN)


def world_with_a_node(of: Cluster | None = None) -> World:
    world = World(of) if of else World()
    launched_at_s = world.clock.now_s() - 100
    world.compute.put(replace(instance("i-1"), launched_at_s=launched_at_s))
    world.ledger.all_nodes["i-1"] = replace(record("i-1"), launched_at_s=launched_at_s)
    world.report([job(7, on=["i-1"])], [node("i-1", state="MIXED", gpus_alloc=1)])
    return world


def maintenance(world: World, *, in_s: float | None) -> HealthNotice:
    category = HealthCategory.ISSUE if in_s is None else HealthCategory.SCHEDULED_CHANGE
    at_s = None if in_s is None else world.clock.now_s() + in_s
    return HealthNotice(("i-1",), category, CODE, at_s)


def test_a_dead_node_is_ordered_out_once_and_replaced_before_describe_shows_it() -> None:
    world = world_with_a_node()
    done = world.control().interrupt([ENDS])

    looked = world.look()

    deletes = [order.names for order in world.bus.orders if order.kind is OrderKind.DELETE]
    assert done.dead == ("i-1",)
    assert deletes == [("i-1",)]
    assert world.ledger.all_nodes["i-1"].phase is Phase.INTERRUPTED
    assert any(isinstance(action, Launch) for action in looked.rounds[0].plan.actions)


def test_a_dead_node_whose_event_was_lost_is_ordered_out_by_the_next_look() -> None:
    """EC2 leaves it out of its list; Slurm would miss it after SlurmdTimeout only."""
    world = world_with_a_node()
    world.compute.end("i-1")

    looked = world.look()

    assert [(order.kind, order.names) for order in world.bus.orders] == [
        (OrderKind.DELETE, ("i-1",))
    ]
    assert any(isinstance(action, Launch) for action in looked.rounds[0].plan.actions)


@pytest.mark.parametrize("is_throttled", [False, True])
def test_a_node_of_which_ec2_says_nothing_keeps_its_job(is_throttled: bool) -> None:
    world = world_with_a_node()
    world.compute.hide("i-1", seconds=100)

    def asked(point: str) -> None:
        if is_throttled and point == "before by_id":
            raise Throttled("slow down")

    world.compute.faults = asked
    world.look()

    assert [order.kind for order in world.bus.orders] == [OrderKind.DRAIN]


def test_a_dead_node_that_describe_shows_is_not_ordered_out_again() -> None:
    world = world_with_a_node()
    world.control().interrupt([ENDS])
    ending = replace(world.compute.everything["i-1"], state=InstanceState.SHUTTING_DOWN)
    world.compute.put(ending)

    world.look()

    assert sum(order.kind is OrderKind.DELETE for order in world.bus.orders) == 1


def test_the_end_of_a_maintenance_outlives_a_later_issue() -> None:
    world = world_with_a_node()
    first = maintenance(world, in_s=86_400)
    world.control().interrupt([first])

    world.control().interrupt([maintenance(world, in_s=None)])

    kept = world.ledger.all_nodes["i-1"].cordon
    assert kept is not None
    assert kept.ends_at_s == first.starts_at_s


def test_the_drain_of_a_cordon_waits_for_a_node_that_boots() -> None:
    world = world_with_a_node()

    world.control().interrupt([maintenance(world, in_s=None)])

    (drain,) = world.bus.orders
    assert drain.not_after_s == world.clock.now_s() + world.of.timings.given_up_s


@pytest.mark.parametrize("point", ["before cordon_node", "before send_orders"])
def test_no_node_is_drained_for_a_cordon_that_is_not_written_down(point: str) -> None:
    """Empty, it would be let go, and what AWS Health says of such a node again is no news: what EC2
    stops of it would be ended by nobody.
    """
    world = world_with_a_node()

    def refuse(at: str) -> None:
        if at == point:
            raise Throttled("slow down")

    world.break_with(refuse)

    with pytest.raises(Throttled):
        world.control().interrupt([maintenance(world, in_s=86_400)])

    is_written = world.ledger.all_nodes["i-1"].cordon is not None
    assert (is_written, world.bus.orders) == (point == "before send_orders", [])


def test_what_cannot_be_written_of_a_cordon_puts_no_notice_off() -> None:
    world = world_with_a_node()
    world.ledger.all_nodes["i-2"] = record("i-2")

    def refuse(at: str) -> None:
        if at == "before cordon_node":
            raise Throttled("slow down")

    world.break_with(refuse)
    later = replace(maintenance(world, in_s=86_400), instance_ids=("i-2",))

    with pytest.raises(Throttled):
        world.control().interrupt([later, warning(world)])

    assert [order.names for order in world.bus.orders] == [("i-1",)]


def test_what_aws_health_takes_back_lets_the_node_take_jobs_again() -> None:
    world = world_with_a_node()
    world.control().interrupt([maintenance(world, in_s=86_400)])
    over = replace(maintenance(world, in_s=86_400), is_over=True)

    other = world.control().interrupt([replace(over, code="AWS_EC2_SOMETHING_ELSE")])
    done = world.control().interrupt([over])

    now_s = world.clock.now_s()
    assert (other.lifted, done.lifted) == ((), ("i-1",))
    assert not world.ledger.all_nodes["i-1"].is_cordoned(now_s)
    assert world.bus.take_looks() != ()


def test_a_new_warning_cordons_a_node_that_outlived_an_older_one() -> None:
    world = world_with_a_node()
    first = maintenance(world, in_s=86_400)
    world.control().interrupt([first])
    world.control().interrupt([replace(first, is_over=True)])

    world.control().interrupt([maintenance(world, in_s=None)])

    assert world.ledger.all_nodes["i-1"].is_cordoned(world.clock.now_s())


@pytest.mark.parametrize("in_s", [86_400, None], ids=["maintenance", "issue"])
def test_an_end_that_comes_before_its_begin_is_not_forgotten(in_s: float | None) -> None:
    world = world_with_a_node()
    begin = replace(maintenance(world, in_s=in_s), said_at_s=world.clock.now_s() - 60)
    end = replace(begin, said_at_s=world.clock.now_s() - 30, is_over=True)

    early = world.control().interrupt([end])
    late = world.control().interrupt([begin])
    world.clock.advance(10)
    anew = world.control().interrupt([replace(begin, said_at_s=world.clock.now_s())])

    assert (early.lifted, late.cordoned, anew.cordoned) == ((), (), ("i-1",))
    assert sum(order.kind is OrderKind.DRAIN for order in world.bus.orders) == 1


def test_an_end_of_something_else_leaves_a_cordon_that_holds() -> None:
    world = world_with_a_node()
    world.control().interrupt([maintenance(world, in_s=86_400)])
    other = replace(maintenance(world, in_s=None), code="AWS_EC2_SOMETHING_ELSE", is_over=True)

    world.control().interrupt([other])

    assert world.ledger.all_nodes["i-1"].is_cordoned(world.clock.now_s())


def warning(world: World, name: str = "i-1") -> SpotInterruption:
    return SpotInterruption(name, world.clock.now_s())


@pytest.mark.parametrize("policy", Rebalance)
def test_a_recommendation_that_is_ignored_is_told(policy: Rebalance) -> None:
    world = world_with_a_node(cluster(replace(pool(), rebalance=policy)))

    done = world.control().interrupt([RebalanceRecommendation("i-1")])

    assert done.ignored == (("i-1",) if policy is Rebalance.IGNORE else ())


@pytest.mark.parametrize("policy", Rebalance)
def test_a_risk_is_no_news_of_a_node_that_goes_already(policy: Rebalance) -> None:
    world = world_with_a_node(cluster(replace(pool(), rebalance=policy)))
    world.control().interrupt([warning(world)])
    goes_at_s = world.ledger.all_nodes["i-1"].reclaim_at_s
    ordered = list(world.bus.orders)
    world.clock.advance(60)

    world.control().interrupt([RebalanceRecommendation("i-1"), maintenance(world, in_s=900)])

    assert world.bus.orders == ordered
    assert world.ledger.all_nodes["i-1"].reclaim_at_s == goes_at_s
    assert world.ledger.all_nodes["i-1"].cordon is None


def test_of_two_warnings_the_sooner_end_counts_until_it_has_come() -> None:
    world = world_with_a_node()
    first = warning(world)
    world.control().interrupt([first])
    world.clock.advance(60)

    world.control().interrupt([warning(world)])
    sooner = world.ledger.all_nodes["i-1"].reclaim_at_s
    world.clock.advance(600)
    world.control().interrupt([warning(world)])

    assert sooner == first.at_s + 120
    assert world.ledger.all_nodes["i-1"].reclaim_at_s == world.clock.now_s() + 120


def world_with_a_gang() -> World:
    """Two nodes, and a job on both that has computed for an hour on 2 x 1 GPU."""
    world = World()
    began_s = world.clock.now_s() - 3600
    for name in ("i-1", "i-2"):
        world.compute.put(replace(instance(name), launched_at_s=began_s))
        world.ledger.all_nodes[name] = record(name)
    gang = job(7, nodes=2, on=["i-1", "i-2"], started_at_s=began_s)
    world.report([gang], [node(n, state="MIXED", gpus_alloc=1) for n in ("i-1", "i-2")])
    return world


def test_a_gangs_loss_counts_once_however_its_nodes_are_announced() -> None:
    world = world_with_a_gang()
    control = world.control()

    first = control.interrupt([warning(world)])
    again = control.interrupt([warning(world)])
    other = control.interrupt([warning(world, "i-2")])
    died = control.interrupt([ENDS])

    assert first.interruption_loss == InterruptionLoss(2.0, 1)
    assert (again.interruption_loss, other.interruption_loss, died.interruption_loss) == (
        InterruptionLoss(),
        InterruptionLoss(),
        InterruptionLoss(),
    )
    assert [each.interruption_loss for each in world.ledger.all_nodes.values()] == [
        InterruptionLoss(2.0, 1),
        InterruptionLoss(),
    ]


def test_what_a_reclaim_cost_is_in_the_months_sum_when_its_node_has_ended() -> None:
    world = world_with_a_gang()
    world.control().interrupt([warning(world)])
    ended = replace(world.compute.everything["i-1"], state=InstanceState.TERMINATED)
    world.compute.put(ended)
    world.clock.advance(120)
    world.report([], [node("i-2")])

    for _ in range(3):
        world.look()

    (sums,) = world.ledger.view().losses
    assert sums == MonthlyLosses(sums.month, 1, 2.0, 1)


def test_a_ledger_that_tells_nothing_of_a_gangs_other_nodes_puts_no_notice_off() -> None:
    world = world_with_a_gang()
    asked: list[str] = []

    def refuse_the_second(point: str) -> None:
        asked.append(point)
        if asked.count("before nodes") == 2 and point == "before nodes":
            raise Throttled("slow down")

    world.break_with(refuse_the_second)

    done = world.control().interrupt([warning(world)])

    assert asked.count("before nodes") == 2
    assert done.interruption_loss == InterruptionLoss(2.0, 1)
    assert world.ledger.all_nodes["i-1"].phase is Phase.INTERRUPTED


def test_an_offering_that_ec2_takes_back_rests_and_a_death_alone_rests_none() -> None:
    world = world_with_a_gang()
    control, offering = world.control(), world.ledger.all_nodes["i-1"].offering

    control.interrupt([ENDS])
    before = dict(world.ledger.all_resting)
    control.interrupt([warning(world, "i-2")])
    control.interrupt([warning(world, "i-2")])

    assert before == {}
    rests = world.ledger.all_resting[offering, "", "", "", ""]
    assert (rests.code, rests.failures) == (TAKEN_BACK, 1)
    assert rests.until_s == world.clock.now_s() + world.of.timings.rest_min_s


def test_a_node_is_marked_as_taken_only_when_what_it_was_taken_from_rests() -> None:
    """Else a function that dies between leaves a node that seems to have failed by itself."""
    world = world_with_a_gang()

    def refuse(point: str) -> None:
        if point == "before rest":
            raise Throttled("slow down")

    world.break_with(refuse)

    with pytest.raises(Throttled):
        world.control().interrupt([warning(world)])

    assert world.ledger.all_nodes["i-1"].phase < Phase.INTERRUPTED
    assert world.bus.orders[0].kind is OrderKind.DRAIN


def test_a_digest_that_cannot_be_had_puts_no_notice_off_and_is_told() -> None:
    world = world_with_a_gang()

    def refuse(point: str) -> None:
        if point == "before newest_digest":
            raise Throttled("slow down")

    world.break_with(refuse)

    done = world.control().interrupt([warning(world)])

    assert done.trouble == "the digest cannot be read: slow down"
    assert [order.kind for order in world.bus.orders] == [OrderKind.DRAIN]
    assert world.ledger.all_nodes["i-1"].phase is Phase.INTERRUPTED
    assert world.ledger.all_nodes["i-1"].interruption_loss == InterruptionLoss()


def test_what_cannot_be_remembered_of_a_failed_boot_puts_no_notice_off() -> None:
    world = world_with_a_node()
    world.ledger.all_nodes["i-2"] = record("i-2", phase=Phase.LAUNCHED)

    def refuse(point: str) -> None:
        if point == "before rest":
            raise Throttled("slow down")

    world.break_with(refuse)

    with pytest.raises(Throttled):
        world.control().interrupt([StateChange("i-2", InstanceState.TERMINATED), warning(world)])

    assert {order.kind for order in world.bus.orders} == {OrderKind.DRAIN, OrderKind.DELETE}


def test_late_news_of_a_stop_is_none_of_the_node_that_was_started_since() -> None:
    world = world_with_a_node()
    known = replace(world.ledger.all_nodes["i-1"], is_started=True)
    world.ledger.all_nodes["i-1"] = known
    before, since = known.launched_at_s - 60, known.launched_at_s + 60
    stopped = StateChange("i-1", InstanceState.STOPPED, before)

    assert world.control().interrupt([stopped]).dead == ()
    assert world.control().interrupt([replace(stopped, at_s=since)]).dead == ("i-1",)


@pytest.mark.parametrize("in_s", [None, 3600.0])
def test_what_aws_said_of_a_host_cordons_no_node_that_was_started_on_another(
    in_s: float | None,
) -> None:
    world = world_with_a_node()
    known = replace(world.ledger.all_nodes["i-1"], is_started=True)
    world.ledger.all_nodes["i-1"] = known
    said = replace(maintenance(world, in_s=in_s), said_at_s=known.launched_at_s - 60)

    assert world.control().interrupt([said]).cordoned == ()
    since = replace(said, said_at_s=known.launched_at_s + 60)
    assert world.control().interrupt([since]).cordoned == ("i-1",)
