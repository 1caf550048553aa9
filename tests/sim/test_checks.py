"""What checks make of cases that drawn worlds seldom show."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.make import T4, ZONE, cluster, pool, record
from tidegate.core.model.budgets import Budget, Disruption, DisruptionReason
from tidegate.core.model.cluster import CLUSTER_SCOPE, Limits, Rebalance, Reservation
from tidegate.core.model.cluster import Budget as Money
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.ec2 import POOL_TAG, FleetRequest, Instance, Market, Override
from tidegate.core.model.events import HealthCategory, HealthNotice, News, RebalanceRecommendation
from tidegate.core.model.ledger import LaunchStatus
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.plan import Served
from tidegate.core.model.slurm import Shape
from tidegate.core.offers.spend import DAY_S
from tidegate.ports import Finished
from tidegate.service.control import Looked
from tidegate.sim.chaos import PAUSE_MAX_S, Chaos
from tidegate.sim.checks.buying import LimitsHold
from tidegate.sim.checks.leaving import COUNTED_AGO_S, LEFT_SOON_S, BudgetsHold, OldNodesGo
from tidegate.sim.checks.money import NothingOverBudget, PricesFollowEc2
from tidegate.sim.checks.orders import OrdersGuarded
from tidegate.sim.checks.plans import LooksEndInTime
from tidegate.sim.checks.witness import Broken, Checks, Witness
from tidegate.sim.clock import START_S
from tidegate.sim.draw import draw
from tidegate.sim.options import Hours
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
    world = with_reservation(seen.append)
    check = PricesFollowEc2(witness(world))
    world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    (held,) = world.cluster.reservations
    world.step(600.0)
    world.compute.end_reservation(held)
    world.step(300.0)
    (node,) = world.ledger.all_nodes.values()
    assert node.usd_per_hour > 0
    check.looked(seen[-1])

    world.clock.advance(200.0)
    world.compute.fill_reservation(held)
    world.compute.end_reservation(held)
    world.look()
    check.looked(seen[-1])

    early_s = (node.priced_at_s or 0.0) - 1.0
    world.ledger.all_nodes[node.instance_id] = replace(node, priced_at_s=early_s)
    with pytest.raises(Broken, match="too early"):
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


def releases(world: SimWorld, decided_at_s: float) -> list[Order]:
    until_s = decided_at_s + world.cluster.timings.order_ttl_s
    text = str(DrainReason(DrainCode.EMPTY, "idle for 60 s and no pending job needs it"))
    names = [one.instance_id for one in world.compute.live()]
    kind = OrderKind.RELEASE
    return [Order(f"p-0-o{n}", kind, (name,), until_s, (), text) for n, name in enumerate(names)]


def of_certain_hours() -> SimWorld:
    """Two nodes; of every five minutes one may leave in the first half, and both in the other."""
    budgets = (Budget(percent=100.0), Budget(nodes=1, window=Hours(300.0, 150.0)))
    made = cluster(replace(pool(types=(T4,)), disruption=Disruption(budgets)))
    world = SimWorld(made, lambda instance: 60.0)
    for _ in range(2):
        world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    world.step(240.0)
    assert len(world.slurm.nodes) == 2
    return world


def test_a_node_may_leave_late_beside_one_that_was_let_go_when_more_might() -> None:
    def carried_out(first_decided_s: float, then_decided_s: float) -> None:
        world = of_certain_hours()
        check = BudgetsHold(witness(world))
        both = list(zip(world.slurm.nodes, (first_decided_s, then_decided_s), strict=True))
        for number, (name, decided_at_s) in enumerate(both):
            order = releases(world, decided_at_s)[number]
            order = replace(order, order_id=f"p-{decided_at_s:.0f}-o0")
            world.in_hand.append(([order], decided_at_s))
            world.slurm.nodes[name].is_drain = True
            check.commanded("drain", (name,))
            world.in_hand.pop()

    carried_out(START_S + 160.0, START_S + 140.0)
    with pytest.raises(Broken, match="2 leave"):
        carried_out(START_S + 145.0, START_S + 140.0)


def test_an_order_that_comes_late_is_judged_beside_those_decided_before_it() -> None:
    """A budget for drifted nodes says nothing of empty ones that a later plan lets go."""
    budgets = (Budget(nodes=1, reasons=frozenset({DisruptionReason.DRIFTED})),)
    made = cluster(replace(pool(types=(T4,)), disruption=Disruption(budgets)))

    def carried_out(later_code: DrainCode) -> None:
        world = SimWorld(made, lambda instance: 60.0)
        for _ in range(2):
            world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
        world.step(240.0)
        check, (one, two) = BudgetsHold(witness(world)), world.slurm.nodes
        for name, epoch, code in ((one, 2, later_code), (two, 1, DrainCode.DRIFTED)):
            text = str(DrainReason(code, "its time has come"))
            until_s = world.clock.now_s() + epoch
            order = Order(f"p-{epoch}-o0", OrderKind.DRAIN, (name,), until_s, (), text)
            world.in_hand.append(([order], 0.0))
            world.slurm.nodes[name].is_drain = True
            check.commanded("drain", (name,))
            world.in_hand.pop()

    carried_out(DrainCode.EMPTY)
    with pytest.raises(Broken, match="2 leave of pool t4"):
        carried_out(DrainCode.DRIFTED)


def test_a_node_that_was_opened_again_leaves_no_more() -> None:
    """What a person or a gang drains it for later is nothing of ours."""
    made = cluster(replace(pool(types=(T4,)), disruption=Disruption((Budget(nodes=1),))))
    world = SimWorld(made, lambda instance: 60.0)
    for _ in range(2):
        world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    world.step(240.0)
    orders, check = releases(world, world.clock.now_s()), BudgetsHold(witness(world))

    def leaves(name: str) -> None:
        world.in_hand.append(([each for each in orders if name in each.names], 0.0))
        world.slurm.nodes[name].is_drain = True
        world.slurm.table.changed()
        check.commanded("drain", (name,))
        world.in_hand.pop()

    one, two = world.slurm.nodes
    leaves(one)
    world.slurm.undrain([one])
    check.passed(1.0)
    world.slurm.drain([one], "kept for a gang")
    leaves(two)
    with pytest.raises(Broken, match="2 leave"):
        leaves(one)


def test_a_budget_of_certain_hours_counts_when_the_plan_is_made() -> None:
    """The order takes its time, and the node may have joined in this very moment."""
    world = of_certain_hours()
    names = tuple(world.slurm.nodes)

    def tells(decided_at_s: float) -> None:
        check = BudgetsHold(witness(world))
        world.in_hand.append((releases(world, decided_at_s), decided_at_s))
        for name in names:
            world.slurm.nodes[name].is_drain = True
            check.commanded("drain", (name,))
        world.in_hand.pop()

    tells(START_S + 299.0)
    with pytest.raises(Broken, match="2 leave"):
        tells(START_S + 301.0)


def test_a_node_that_has_left_slurm_counts_for_a_budget_until_its_instance_ends() -> None:
    """Of three nodes 34 % are two, of two they are one."""
    budgets = (Budget(percent=34.0),)
    made = cluster(replace(pool(types=(T4,)), disruption=Disruption(budgets)))
    world = SimWorld(made, lambda instance: 60.0)
    for _ in range(3):
        world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    world.step(240.0)
    orders, check = releases(world, world.clock.now_s()), BudgetsHold(witness(world))
    one, two, three = world.slurm.nodes

    def leaves(name: str) -> None:
        world.in_hand.append(([each for each in orders if name in each.names], 0.0))
        world.slurm.nodes[name].is_drain = True
        check.commanded("drain", (name,))
        world.in_hand.pop()

    check.passed(1.0)
    leaves(one)
    world.slurm.nodes[one].jobs.clear()
    world.slurm.delete([one])
    check.passed(1.0)
    world.clock.advance(COUNTED_AGO_S + 1.0)
    leaves(two)
    world.compute.end(one)
    check.ended(world.compute.everything[one])
    check.passed(1.0)
    world.clock.advance(COUNTED_AGO_S + 1.0)
    with pytest.raises(Broken, match="2 leave of pool t4: 34 % of 2"):
        leaves(three)


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
