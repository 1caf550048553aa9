"""What checks make of cases that drawn worlds seldom show."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.make import T4, ZONE, cluster, node, pool, record, snapshot
from tidegate.core.model.budgets import Disruption
from tidegate.core.model.cluster import CLUSTER_SCOPE, Cluster, Limits, Rebalance, Reservation
from tidegate.core.model.cluster import SpendingBudget as Money
from tidegate.core.model.ec2 import (
    POOL_TAG,
    FleetRequest,
    Instance,
    InstanceState,
    Market,
    Override,
)
from tidegate.core.model.events import HealthCategory, HealthNotice, News, RebalanceRecommendation
from tidegate.core.model.ledger import LaunchStatus
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.plan import Plan, Send, Served
from tidegate.core.model.pool_history import FailedLaunch, PoolHistory
from tidegate.core.model.slurm import Shape
from tidegate.core.offers.spend import DAY_S
from tidegate.ports import Finished
from tidegate.service.control import Looked
from tidegate.sim.chaos import PAUSE_MAX_S, Chaos
from tidegate.sim.checks.leaving import LEFT_SOON_S, OldNodesGo
from tidegate.sim.checks.limits import LimitsHold
from tidegate.sim.checks.money import NothingOverBudget, PricesFollowEc2
from tidegate.sim.checks.orders import OrdersGuarded
from tidegate.sim.checks.plans import LooksEndInTime, OneOrderPerNode
from tidegate.sim.checks.witness import Broken, Checks, Witness
from tidegate.sim.clock import START_S
from tidegate.sim.draw import draw
from tidegate.sim.slurm_parts import Submit
from tidegate.sim.story import Story
from tidegate.sim.world import SimWorld


def with_reservation(tell: Callable[[Looked], None] = lambda looked: None) -> SimWorld:
    """One node is paid for, and nothing but that is allowed."""
    held = Reservation("cr-1", T4.name, ZONE, 1, Market.RESERVED, START_S - 60, None)
    made = cluster(pool(types=(T4,)))
    using = replace(made.pools[0], markets=(Market.RESERVED, *made.pools[0].markets))
    prices, limits = {**made.prices, held.offering: 0.0}, Limits(usd_per_hour=0.01)
    of = replace(made, pools=(using,), prices=prices, limits=limits, reservations=(held,))
    return SimWorld(of, lambda instance: 60.0, tell)


def launched(world: SimWorld, market: Market) -> Instance:
    override = Override(T4.name, ZONE, "subnet", 0)
    token, tags = f"{market}-{len(world.compute.everything)}", ((POOL_TAG, "t4"),)
    world.compute.create_fleet(FleetRequest(token, "lt", "1", market, 1, 1, (override,), tags))
    return world.compute.live()[-1]


def out_of_its_reservation(tell: Callable[[Looked], None]) -> tuple[SimWorld, Reservation]:
    """A node runs a job; EC2 has let it out of its reservation, and a look has seen it."""
    world = with_reservation(tell)
    world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    (held,) = world.cluster.reservations
    world.step(600.0)
    world.compute.end_reservation(held)
    world.step(300.0)
    return world, held


def witness(world: SimWorld) -> Witness:
    return Witness(world, Chaos(draw(0), world))


def limits_hold(world: SimWorld) -> LimitsHold:
    return LimitsHold(witness(world))


def test_a_prepaid_launch_beside_what_is_paid_by_the_hour_is_within_the_limit_or_not() -> None:
    world = with_reservation()
    launched(world, Market.SPOT)

    with pytest.raises(Broken, match="USD per hour, its limit is"):
        limits_hold(world).launched(launched(world, Market.RESERVED))


def test_what_an_ended_reservation_left_does_not_count_against_a_prepaid_launch() -> None:
    """It may stand over a limit until it idles, and what comes beside it costs nothing more."""
    world = with_reservation()
    launched(world, Market.RESERVED)
    world.step(600.0)
    (first,) = world.cluster.reservations
    world.compute.end_reservation(first)
    world.compute.prepaid.reservations = (replace(first, id="cr-2"),)

    second = launched(world, Market.RESERVED)

    assert [each.offering.market for each in world.compute.live()] == [
        Market.ON_DEMAND,
        Market.RESERVED,
    ]
    limits_hold(world).launched(second)
    with pytest.raises(Broken, match="USD per hour"):
        limits_hold(world).launched(launched(world, Market.SPOT))


def test_a_price_counts_from_its_look_and_one_that_nobody_saw_is_not_missed() -> None:
    """EC2 takes the node into a reservation and out of it again while nobody looks."""
    seen: list[Looked] = []
    world, held = out_of_its_reservation(seen.append)
    check = PricesFollowEc2(witness(world))
    (node,) = world.ledger.all_nodes.values()
    assert node.usd_per_hour > 0
    check.looked(seen[-1])

    world.clock.advance(200.0)
    world.compute.fill_reservation(held)
    world.compute.end_reservation(held)
    world.look()
    check.looked(seen[-1])

    # From the launch on a Savings Plan alone may pay.
    for early_s in ((node.priced_at_s or 0.0) - 1.0, node.launched_at_s):
        world.ledger.all_nodes[node.instance_id] = replace(node, priced_at_s=early_s)
        with pytest.raises(Broken, match="too early"):
            check.looked(seen[-1])


def test_a_look_beside_another_one_answers_for_no_price_that_changed_twice_meanwhile() -> None:
    """EC2 takes the node into a reservation, the other look notes it, and EC2 lets it out again."""
    seen: list[Looked] = []
    world, held = out_of_its_reservation(seen.append)
    check = PricesFollowEc2(witness(world))
    (node,) = world.ledger.all_nodes.values()
    world.ledger.all_nodes[node.instance_id] = replace(node, usd_per_hour=0.0)
    with pytest.raises(Broken, match="the ledger holds 0"):
        check.looked(seen[-1])

    world.clock.advance(1.0)
    world.compute.fill_reservation(held)
    world.compute.end_reservation(held)

    check.looked(seen[-1])


def test_an_old_node_takes_no_job_once_no_other_of_its_pool_has_left_for_a_while() -> None:
    """A budget may let one go at a time: the next one goes by a look of its own."""
    made = cluster(replace(pool(types=(T4,)), disruption=Disruption(expire_after_s=100.0)))
    world = SimWorld(made, lambda instance: 60.0)
    job_id = world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    world.step(1000.0)
    check, job = OldNodesGo(witness(world)), world.slurm.jobs[job_id]
    (node,) = world.compute.live()

    with pytest.raises(Broken, match="old, 100"):
        check.started(job)
    check.ended(node)
    check.started(job)
    world.clock.advance(LEFT_SOON_S + 1)
    with pytest.raises(Broken):
        check.started(job)


def test_a_new_day_has_a_budget_of_its_own() -> None:
    made = cluster(pool(types=(T4,)))
    of = replace(made, budgets={CLUSTER_SCOPE: Money(usd_per_day=0.02)})
    world = SimWorld(of, lambda instance: 60.0)
    world.clock.advance(DAY_S - 1500.0)
    Checks(witness(world), (NothingOverBudget,)).install()
    world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 1000.0))
    world.step(1200.0)
    world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 100.0))

    world.step(200.0)
    assert len(world.compute.everything) == 1
    world.step(200.0)
    assert len(world.compute.everything) == 2


def test_a_users_budget_binds_him_alone_and_a_planner_that_forgets_it_is_found() -> None:
    free = cluster(pool(types=(T4,)))
    of = replace(free, budgets={"user ada": Money(usd_per_day=0.02)})

    def bought(spends: str, planned_by: Cluster = of) -> tuple[int, int]:
        """Before somebody asks for a second node, and after."""
        world = SimWorld(planned_by, lambda instance: 60.0)
        world.cluster = of
        Checks(witness(world), (NothingOverBudget,)).install()
        world.slurm.submit(Submit(spends, Shape(1, "t4", 1, 1000), 1000.0))
        world.step(1200.0)
        before = len(world.compute.everything)
        world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 100.0))
        world.step(400.0)
        return before, len(world.compute.everything)

    assert (bought("ada"), bought("bob")) == ((1, 1), (1, 2))
    with pytest.raises(Broken, match="of user ada were spent"):
        bought("ada", planned_by=free)


def test_a_plan_leaves_no_open_node_that_has_had_its_time() -> None:
    """While launches fail nothing is replaced for its age."""
    seen: list[Looked] = []
    made = cluster(replace(pool(types=(T4,)), disruption=Disruption(expire_after_s=100.0)))
    world = SimWorld(made, lambda instance: 60.0, seen.append)
    world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    world.step(1000.0)
    found = witness(world)
    check = OldNodesGo(found)
    plans = [done for looked in seen for done in looked.rounds[-1:]]
    done = next(one for one in plans if any("expired" in str(a) for a in one.plan.actions))
    silent = Looked([replace(done, plan=replace(done.plan, actions=()))])

    check.looked(Looked([done]))
    with pytest.raises(Broken, match="a plan leaves i-"):
        check.looked(silent)
    # A node whose machine is gone leaves as well, which a budget counts until Slurm forgets it.
    (old,) = world.compute.live()
    world.compute.everything["i-dead"] = replace(old, state=InstanceState.TERMINATED)
    digest = done.snapshot.digest
    assert digest is not None
    held = replace(digest.reading, nodes=(*digest.reading.nodes, node("i-dead", state="DOWN")))
    beside = replace(done.snapshot, digest=replace(digest, reading=held))
    check.looked(Looked([replace(silent.rounds[0], snapshot=beside)]))
    failed = FailedLaunch("l-1", done.snapshot.now_s - 60, done.snapshot.now_s, "one-1")
    history = PoolHistory("t4", failed=(failed,))
    failing = replace(done.snapshot, pool_history=(history,))
    check.looked(Looked([replace(silent.rounds[0], snapshot=failing)]))
    found.chaos.note("boot", world.clock.now_s())
    check.looked(silent)


def test_a_job_that_the_last_plan_gives_an_old_node_to_may_take_it() -> None:
    seen: list[Looked] = []
    made = cluster(replace(pool(types=(T4,)), disruption=Disruption(expire_after_s=100.0)))
    world = SimWorld(made, lambda instance: 60.0, seen.append)
    job_id = world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    world.step(1000.0)
    check, job = OldNodesGo(witness(world)), world.slurm.jobs[job_id]
    (node,) = world.compute.live()
    (done,) = seen[-1].rounds[-1:]
    promised = replace(done.plan, served=(Served(job_id, (node.instance_id,), "it fits"),))

    check.looked(replace(seen[-1], rounds=[replace(done, plan=promised)]))
    check.started(job)
    check.looked(seen[-1])
    with pytest.raises(Broken):
        check.started(job)


def test_an_old_node_stays_while_no_planner_hears_of_its_head() -> None:
    """An agent that begins while its clock is put back is not believed for ten minutes."""
    seen: list[Looked] = []
    made = cluster(replace(pool(types=(T4,)), disruption=Disruption(expire_after_s=100.0)))
    world = SimWorld(made, lambda instance: 60.0, seen.append)
    job_id = world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    world.step(1000.0)
    check, job = OldNodesGo(witness(world)), world.slurm.jobs[job_id]
    (done,) = seen[-1].rounds[-1:]
    blind = replace(done, snapshot=replace(done.snapshot, digest=None))

    check.looked(Looked([blind]))
    check.started(job)
    world.clock.advance(LEFT_SOON_S + 1)
    with pytest.raises(Broken):
        check.started(job)


@pytest.mark.parametrize("faults", [("throttle",), ("lost",), ("kill",), ("twice",)])
def test_faults_of_calls_end_with_the_first_phase(faults: tuple[str, ...]) -> None:
    """A planner that stood still may meet some a little later."""
    for seed in range(10):
        story = Story(draw(seed, faults, "small"))
        ended = story.play()

        assert ended.broken is None
        assert max(story.chaos.last_s.values(), default=0.0) <= (
            START_S + story.options.safety_s + PAUSE_MAX_S
        )


def requeue(only_if: str) -> Order:
    return Order("p-o1", OrderKind.REQUEUE, ("1",), START_S + 999.0, (only_if,))


def test_a_requeue_acts_on_a_job_of_which_a_component_is_as_the_order_says() -> None:
    """Slurm requeues what runs of it with its first component, which may wait already."""
    world = SimWorld(cluster(), lambda instance: 60.0)
    part = Submit("ada", Shape(1, "t4", 1, 1000), 300.0)
    leader = world.slurm.submit(replace(part, beside=(part,)))
    first, other = world.slurm.jobs.values()
    check = OrdersGuarded(witness(world))
    world.in_hand.append(([requeue("RUNNING")], START_S))

    with pytest.raises(Broken, match=f"{leader} is PENDING, not RUNNING"):
        check.commanded("requeue", (leader,))
    other.state = "RUNNING"
    check.commanded("requeue", (leader,))
    assert first.state == "PENDING"
    first.requeues = 1  # alone, and the order is about the other's first run
    world.in_hand[-1] = ([replace(requeue("RUNNING"), names=(other.job_id,), restarts=0)], START_S)
    check.commanded("requeue", (leader,))
    other.requeues = 1
    with pytest.raises(Broken, match="that the order is about is over"):
        check.commanded("requeue", (leader,))


@pytest.mark.parametrize("policy", [Rebalance.IGNORE, Rebalance.CORDON])
def test_a_node_is_hinted_at_by_the_news_that_were_acted_on_and_no_others(
    policy: Rebalance,
) -> None:
    """What its pool does not heed closes no node, also after news of it that got lost."""
    made = cluster(replace(pool(types=(T4,)), rebalance=policy))
    world = SimWorld(made, lambda instance: 60.0, lambda looked: None)
    seen = witness(world)
    Checks(seen, ()).install()
    name = launched(world, Market.SPOT).instance_id
    world.ledger.finish_launches(Finished("l-0", LaunchStatus.DONE, (record(name),)))
    seen.chaos.cordoned.add(name)

    def act_on(news: News) -> None:
        for tell in (*world.on_news, *world.on_interrupted):
            tell([news])

    act_on(RebalanceRecommendation(name))
    by_rebalance = set(seen.hinted)
    act_on(HealthNotice((name,), HealthCategory.ISSUE, "AWS_EC2_TROUBLE"))

    assert by_rebalance == ({name} if policy is Rebalance.CORDON else set())
    assert set(seen.hinted) == {name}


@pytest.mark.parametrize(("took_s", "is_over"), [(44.0, True), (46.0, False)])
def test_a_look_outlives_its_planner_or_not(took_s: float, is_over: bool) -> None:
    world = SimWorld(cluster(), lambda instance: 60.0)
    check = LooksEndInTime(witness(world))
    check.begun()
    world.clock.advance(took_s)

    if is_over:
        check.looked(Looked())
    else:
        with pytest.raises(Broken, match="took 46 s"):
            check.looked(Looked())


@pytest.mark.parametrize(
    ("kind", "is_one"), [(OrderKind.UNDRAIN, False), (OrderKind.DRAIN, False), (None, True)]
)
def test_a_plan_orders_a_node_twice_or_once(kind: OrderKind | None, is_one: bool) -> None:
    check = OneOrderPerNode(witness(SimWorld(cluster(), lambda instance: 60.0)))
    sent = [
        Send(Order(f"o-{number}", each, ("i-1",), 0.0), "")
        for number, each in enumerate((OrderKind.DRAIN, kind, OrderKind.WEIGHT))
        if each is not None
    ]

    def look() -> None:
        check.planned(snapshot(), Plan(tuple(sent), (), ()))

    if is_one:
        look()
    else:
        with pytest.raises(Broken, match=r"and to .* i-1"):
            look()


def test_while_a_planner_waits_for_ec2_the_world_goes_on_and_no_other_looks() -> None:
    world = SimWorld(cluster(), lambda instance: 60.0)
    happened: list[float] = []
    looked: list[Looked] = []
    world.on_look = looked.append
    began_s = world.clock.now_s()
    world.at(began_s + 1.0, lambda: happened.append(world.clock.now_s() - began_s))
    world.bus.look("now")

    world.stand_still(3.0)

    assert world.clock.now_s() == began_s + 3.0
    assert happened == [1.0]
    assert not looked
