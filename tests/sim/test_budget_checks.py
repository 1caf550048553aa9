"""The check that no more nodes leave at once than budgets allow."""

from dataclasses import replace

import pytest

from tests.make import T4, cluster, pool
from tests.sim.test_checks import witness
from tidegate.core.model.budgets import Budget, Disruption, DisruptionReason
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.slurm import Shape
from tidegate.sim.checks.leaving import COUNTED_AGO_S, BudgetsHold
from tidegate.sim.checks.witness import Broken
from tidegate.sim.clock import START_S
from tidegate.sim.options import Hours
from tidegate.sim.slurm_parts import Submit
from tidegate.sim.world import SimWorld


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
            world.slurm.drain([name], "its time has come")
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
            world.slurm.drain([name], "its time has come")
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
        world.slurm.drain([name], "its time has come")
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


def test_a_node_that_is_kept_for_a_gang_meanwhile_leaves_no_more() -> None:
    made = cluster(replace(pool(types=(T4,)), disruption=Disruption((Budget(nodes=1),))))
    kept = str(DrainReason(DrainCode.KEPT, "kept for gang 7", "7", START_S + 900.0))
    going = str(DrainReason(DrainCode.DRIFTED, "made from another template"))

    def leaves_beside(reason: str) -> None:
        world = SimWorld(made, lambda instance: 60.0)
        for _ in range(2):
            world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
        world.step(240.0)
        orders, check = releases(world, world.clock.now_s()), BudgetsHold(witness(world))
        one, two = world.slurm.nodes
        for name, why in ((one, reason), (two, going)):
            world.in_hand.append(([each for each in orders if name in each.names], 0.0))
            world.slurm.drain([name], why)
            check.commanded("drain", (name,))
            world.in_hand.pop()

    leaves_beside(kept)
    with pytest.raises(Broken, match="2 leave"):
        leaves_beside(going)


def test_the_nodes_of_one_command_count_together_before_it_is_carried_out() -> None:
    made = cluster(replace(pool(types=(T4,)), disruption=Disruption((Budget(nodes=1),))))
    world = SimWorld(made, lambda instance: 60.0)
    for _ in range(2):
        world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    world.step(240.0)
    world.in_hand.append((releases(world, world.clock.now_s()), 0.0))

    with pytest.raises(Broken, match="2 leave"):
        BudgetsHold(witness(world)).commanded("drain", tuple(world.slurm.nodes))


def test_a_node_that_slurm_finds_down_leaves_once() -> None:
    """It was drained for its age, within a budget for that, and is let go for another reason."""
    unhealthy = Budget(nodes=1, reasons=frozenset({DisruptionReason.UNHEALTHY}))
    made = cluster(replace(pool(types=(T4,)), disruption=Disruption((unhealthy,))))
    world = SimWorld(made, lambda instance: 60.0)
    for _ in range(2):
        world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    world.step(240.0)
    names, check = tuple(world.slurm.nodes), BudgetsHold(witness(world))
    until_s = world.clock.now_s() + 60
    for epoch, kind, verb, code in (
        (1, OrderKind.DRAIN, "drain", DrainCode.EXPIRED),
        (2, OrderKind.RELEASE, "delete", DrainCode.UNHEALTHY),
    ):
        text = str(DrainReason(code, "its time has come"))
        world.in_hand.append(([Order(f"p-{epoch}-o0", kind, names, until_s, (), text)], 0.0))
        check.commanded(verb, names)
        world.in_hand.pop()
        world.slurm.drain(names, text)
        for node in world.slurm.nodes.values():
            world.slurm.table.set_down(node, "Not responding")


def test_a_budget_of_certain_hours_counts_when_the_plan_is_made() -> None:
    """The order takes its time, and the node may have joined in this very moment."""
    world = of_certain_hours()
    names = tuple(world.slurm.nodes)

    def tells(decided_at_s: float) -> None:
        check = BudgetsHold(witness(world))
        world.in_hand.append((releases(world, decided_at_s), decided_at_s))
        for name in names:
            world.slurm.drain([name], "its time has come")
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
        world.slurm.drain([name], "its time has come")
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
