"""Evenings and mornings of a whole cluster: the calendar, the head, its nodes and their jobs."""

import pytest

from tests.make import A10G, T4, T4_BIG, cluster, pool
from tests.sim.test_world import gang, one_gpu, states
from tidegate.core.model.calendar import AlwaysUp
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.ledger import LaunchStatus, Phase
from tidegate.ports import Calendar
from tidegate.sim.faults import KillAt, Killed, no_faults
from tidegate.sim.world import SimWorld
from tidegate.wire.calendar import Schedules, Window

# The simulator's clock begins at midnight UTC, and the cluster is up then.
STOP_S, START_S = 3600.0, 9 * 3600.0
SCHEDULES = Schedules("UTC", (Window("0 9 * * *", "0 1 * * *"),))
RECONCILE_S = 300.0


def world(boot_s: float = 60.0, calendar: Calendar = SCHEDULES) -> SimWorld:
    of = cluster(pool(types=(T4, T4_BIG)), pool("a10g", (A10G,)))
    return SimWorld(of, lambda instance: boot_s, calendar=calendar)


def run(of: SimWorld, until_s: float, step_s: float = 5.0, begin_s: float | None = None) -> None:
    """Until this time of the day; reconcile and the schedules wake us as deployed."""
    midnight_s = of.clock.now_s() // 86400 * 86400
    while of.clock.now_s() < midnight_s + until_s:
        before_s = of.clock.now_s() - midnight_s
        of.step(step_s)
        now_s = of.clock.now_s() - midnight_s
        if any(before_s < at_s <= now_s for at_s in (STOP_S, START_S)):
            of.hours.keep("schedule")
        if now_s // RECONCILE_S != before_s // RECONCILE_S:
            of.hours.keep("reconcile")


def is_over(of: SimWorld) -> bool:
    return of.compute.live() == () and of.head.state() is InstanceState.STOPPED


def test_in_the_evening_nodes_go_then_the_head_and_in_the_morning_jobs_run() -> None:
    w = world()
    w.slurm.submit(one_gpu())
    run(w, STOP_S + 600)
    evening_over = is_over(w)
    run(w, START_S - 600)
    asleep = is_over(w)
    w.slurm.is_up = True  # as if it had been submitted before the stop
    job_id = w.slurm.submit(one_gpu())
    w.slurm.is_up = False

    run(w, START_S + 900)

    assert (evening_over, asleep) == (True, True)
    assert (w.head.num_stops, w.head.num_starts) == (1, 1)
    assert w.slurm.jobs[job_id].state == "COMPLETED"


def test_a_job_that_runs_for_an_hour_ends_in_peace_and_no_other_starts_on_its_node() -> None:
    w = world()
    run(w, STOP_S - 300)
    long = w.slurm.submit(one_gpu(duration_s=3600.0))
    run(w, STOP_S + 60)
    waiting = w.slurm.submit(one_gpu(duration_s=10.0, constraint="g4dn.xlarge"))

    run(w, STOP_S + 2400)
    half = (states(w)[long], states(w)[waiting], w.head.is_up)
    run(w, STOP_S + 5400)

    assert half == ("RUNNING", "PENDING", True)
    assert (states(w)[long], states(w)[waiting]) == ("COMPLETED", "PENDING")
    assert is_over(w)
    assert len(w.compute.everything) == 1


def test_a_node_whose_job_lasts_until_the_morning_takes_jobs_again() -> None:
    w = world()
    run(w, STOP_S - 300)
    w.slurm.submit(one_gpu(duration_s=20 * 3600.0))
    run(w, START_S - 600)
    name = next(iter(w.slurm.nodes))
    drained = w.slurm.nodes[name].is_drain

    run(w, START_S + 120)

    assert drained
    assert not w.slurm.nodes[name].is_drain
    assert w.head.num_stops == 0


def test_a_launch_in_doubt_at_the_stop_leaves_nothing_behind() -> None:
    """The planner dies before and after it asked EC2, just before the stop."""
    for point, bought in (("before create_fleet", 0), ("after create_fleet", 1)):
        w = world()
        run(w, STOP_S - 20)

        def die(at: str, deadly: str = point) -> None:
            if at == deadly:
                raise Killed(at)

        w.compute.faults = die
        w.slurm.submit(one_gpu(duration_s=60.0))
        with pytest.raises(Killed):
            run(w, STOP_S + 60)
        w.compute.faults = no_faults
        run(w, STOP_S)
        in_doubt = [r.status for r in w.ledger.all_launches.values()]
        early = w.hours.keep("stop")

        run(w, STOP_S + 1800)

        assert in_doubt == [LaunchStatus.RECORDED]
        assert "launch" in early.sentence
        assert len(w.compute.everything) == bought
        assert is_over(w)
        assert {r.phase for r in w.ledger.all_nodes.values()} <= {Phase.RELEASED, Phase.TERMINATED}


def test_a_gang_that_boots_at_the_stop_goes_without_having_run() -> None:
    w = world(boot_s=200.0)
    run(w, STOP_S - 100)
    w.slurm.submit(gang())

    run(w, STOP_S + 1200)

    assert len(w.compute.everything) == 3
    assert set(states(w).values()) == {"PENDING"}
    assert is_over(w)


def test_a_start_while_the_head_is_stopping_is_made_good() -> None:
    w = world()
    w.head.stop_s = 200.0
    run(w, START_S - 20)
    w.head.start()
    w.clock.advance(30.0)
    w.head.stop()  # a person, a moment before the morning

    said = w.hours.keep("start").sentence
    run(w, START_S + 900)

    assert "still stopping" in said
    assert w.head.is_up


def test_events_that_come_twice_late_or_in_the_wrong_order_change_nothing() -> None:
    w = world()
    w.slurm.submit(one_gpu(duration_s=200.0))
    run(w, 60)
    for why in ("stop", "stop", "start"):  # the calendar says up
        w.hours.keep(why)
    run(w, 240)
    up = (w.head.is_up, set(states(w).values()))
    run(w, STOP_S + 900)
    for why in ("start", "stop", "stop"):  # now it says stopped
        w.hours.keep(why)

    assert up == (True, {"RUNNING"})
    assert is_over(w)
    assert (w.head.num_stops, w.head.num_starts) == (1, 0)


def test_orders_of_the_evening_that_the_head_finds_in_the_morning_are_dropped() -> None:
    w = world()
    run(w, STOP_S - 300)
    w.slurm.submit(one_gpu(duration_s=30 * 3600.0))
    run(w, STOP_S + 120)
    old = list(w.bus.orders)
    run(w, START_S + 300)
    name = next(iter(w.slurm.nodes))

    for order in old:
        w.bus.repeat(order)
    run(w, START_S + 900)

    assert old
    assert not w.slurm.nodes[name].is_drain
    assert set(states(w).values()) == {"RUNNING"}


def test_a_person_who_stops_a_head_without_schedules_is_left_in_peace() -> None:
    w = world(calendar=AlwaysUp())
    w.head.stop()

    run(w, START_S + 900)

    assert not w.head.is_up


@pytest.mark.parametrize("step", range(0, 60, 3))
def test_an_evening_with_deaths_ends_all_the_same(step: int) -> None:
    """Every port kills once, at another point of the evening each time."""
    w = world()
    run(w, STOP_S - 200)
    w.slurm.submit(one_gpu(duration_s=260.0))
    w.slurm.submit(gang())
    run(w, STOP_S - 5)
    faults = KillAt(step)
    for port in (w.compute, w.ledger, w.head):
        port.faults = faults
    try:
        run(w, STOP_S + 900)
    except Killed:
        for port in (w.compute, w.ledger, w.head):
            port.faults = no_faults

    run(w, STOP_S + 2400)

    assert is_over(w), (faults.points[step], w.hours.keep("why").sentence)
    assert w.head.num_stops == 1
