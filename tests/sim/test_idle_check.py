"""Idle nodes that are checked: within the budget, in no job's way, and past every crash."""

from dataclasses import replace

import pytest

from tests.sim.test_rolls import A, deploy, of_three
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.finding import BELIEVED_MIN
from tidegate.core.model.idle_check import FOUND, IdleCheck, IdleChecks, is_idle_check_name
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.slurm import Shape
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks.idle_tests import IdleTestsBounded
from tidegate.sim.checks.witness import Broken, Witness
from tidegate.sim.draw import draw
from tidegate.sim.slurm_parts import SimJob, Submit
from tidegate.sim.world import SimWorld

HOUR_S = 3600.0
CHECK = IdleCheck(
    "ci", ("t4",), gpu_hours_per_day=8.0, every_s=HOUR_S, time_limit_s=300.0, wait_s=300.0
)


def of(check: IdleCheck = CHECK) -> Cluster:
    return replace(of_three(), idle_check=check)


def up(cluster: Cluster, bad: set[str] | None = None, *, lies: bool = False) -> SimWorld:
    """Three nodes; those that are bad, or all, fail the check."""
    world = SimWorld(cluster, lambda instance: 60.0)
    deploy(world, A)
    world.look()

    def started(job: SimJob) -> None:
        if is_idle_check_name(job.submit.name) and (lies or set(job.node_names) & (bad or set())):
            world.at(world.clock.now_s() + 30.0, lambda: world.slurm.table.end(job, "FAILED"))

    world.slurm.table.on_start.append(started)
    world.step(300.0)
    return world


def checks(world: SimWorld) -> list[SimJob]:
    return [job for job in world.slurm.jobs.values() if is_idle_check_name(job.submit.name)]


def state(world: SimWorld) -> IdleChecks:
    found = world.ledger.all_pool_history["t4"].idle_checks
    assert found is not None
    return found


def test_each_idle_node_is_checked_once_an_hour_and_what_that_used_is_known() -> None:
    world = up(of())
    world.step(HOUR_S * 1.5)

    on = [job.submit.node_name for job in checks(world)]
    assert len(on) == len(set(on)) == 3
    assert {job.state for job in checks(world)} == {"COMPLETED"}
    # As digests show it, which come within a second or two of each change.
    assert state(world).gpu_hours == pytest.approx(3 * 60 / 3600, rel=0.1)
    world.step(HOUR_S)
    assert len(checks(world)) == 6


def test_a_node_that_fails_is_replaced_and_checked_no_more() -> None:
    world = up(of(), bad := set[str]())
    bad.add(min(world.compute.everything))
    world.step(HOUR_S * 3)

    failed = [job for job in checks(world) if job.state == "FAILED"]
    assert [{job.submit.node_name} for job in failed] == [bad, bad]
    up_ = [one for one in world.compute.everything.values() if one.is_alive]
    assert len(up_) == 3
    assert bad.isdisjoint(each.instance_id for each in up_)
    assert all(not node.is_drain for node in world.slurm.nodes.values())


def test_a_node_that_fails_by_chance_stays() -> None:
    world = up(of(), bad := set[str]())
    bad.add(first := min(world.compute.everything))
    while not any(job.state == "FAILED" for job in checks(world)):
        world.step(10.0)
    bad.clear()
    world.step(HOUR_S * 3)

    assert world.compute.everything[first].is_alive
    on_it = [job.state for job in checks(world) if job.submit.node_name == first]
    assert on_it[:2] == ["FAILED", "COMPLETED"]
    assert not any(node.is_drain for node in world.slurm.nodes.values())


def test_a_check_that_lies_costs_two_nodes_and_stops_itself() -> None:
    world = up(of(), lies=True)
    world.step(HOUR_S * 6)

    history = world.ledger.all_pool_history["t4"]
    assert [each.check for each in history.stopped_checks] == [FOUND]
    dead = [one for one in world.compute.everything.values() if not one.is_alive]
    assert len(dead) == BELIEVED_MIN
    assert len(checks(world)) == 2 * (BELIEVED_MIN + 1)


def test_the_days_budget_ends_the_checks_of_a_day() -> None:
    world = up(of(replace(CHECK, gpu_hours_per_day=0.1, every_s=HOUR_S)))
    world.step(HOUR_S * 12)

    ran = [job for job in checks(world) if job.state == "COMPLETED"]
    days = {int(world.clock.now_s() // 86400), int((world.clock.now_s() - HOUR_S * 12) // 86400)}
    assert len(ran) >= 1
    assert len(ran) * 60 / 3600 <= 0.1 * len(days)


def test_a_job_waits_for_no_check_longer_than_its_time_limit() -> None:
    world = up(of())
    while not any(job.state == "RUNNING" for job in checks(world)):
        world.step(10.0)
    for _ in range(3):
        world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), HOUR_S))
    world.step(CHECK.time_limit_s)

    jobs = [job for job in world.slurm.jobs.values() if job.submit.user == "ada"]
    assert [job.state for job in jobs] == ["RUNNING"] * 3
    world.step(HOUR_S / 2)
    assert not [job for job in checks(world) if job.state in ("PENDING", "RUNNING")]


@pytest.mark.parametrize("lost", [OrderKind.CHECK, OrderKind.DRAIN])
def test_orders_that_are_lost_leave_nothing_behind(lost: OrderKind) -> None:
    world = up(of(), bad := set[str]())
    bad.add(min(world.compute.everything))
    dropped = list[str]()

    def route(order: Order) -> tuple[float, ...]:
        if order.kind is not lost or len(dropped) == 2:
            return (0.0,)
        dropped.append(order.text)
        return ()

    world.bus.order_route = route
    world.step(HOUR_S * 3)
    while state(world).asked:
        world.step(10.0)

    assert len(dropped) == 2
    assert len(set(dropped)) == 1, "the same is asked for again"
    alive = {one.instance_id for one in world.compute.everything.values() if one.is_alive}
    assert len(alive) == 3
    assert bad.isdisjoint(alive)
    assert (state(world).asked, state(world).sick) == (None, None)


@pytest.mark.parametrize("is_up", [True, False])
def test_what_runs_on_while_the_head_is_gone_is_no_fault_of_the_budget(*, is_up: bool) -> None:
    """Nobody is there who would end it."""
    world = up(of())
    world.step(HOUR_S)
    seen = Witness(world, Chaos(draw(0), world))
    bounded = IdleTestsBounded(seen)
    (one, *_) = checks(world)
    bounded.started(one)
    one.state, world.slurm.is_up = "RUNNING", is_up

    if is_up:
        with pytest.raises(Broken, match="GPU-hours are used"):
            bounded.passed(11 * HOUR_S)
    else:
        bounded.passed(11 * HOUR_S)
