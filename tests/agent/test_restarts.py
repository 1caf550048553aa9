"""Requeued jobs start again as soon as they may: not after two minutes, and not too early."""

import math

import pytest

from tests.agent.fakes import order, tick_twice
from tidegate.core.model.orders import OrderKind


def requeued(agent, slurm):
    """Job 1 ran, and an order has requeued it."""
    slurm.queue("1", "RUNNING")
    agent.on_orders([order(OrderKind.REQUEUE, "1")])


def test_a_requeued_job_is_kept_from_waiting_two_minutes(agent, slurm, clock):
    requeued(agent, slurm)
    slurm.queue("1", "COMPLETING")
    agent.tick()
    assert agent.is_settling
    slurm.queue("1", "PENDING", reason="BeginTime")
    tick_twice(agent, clock)
    assert slurm.did("start") == [("1",)]

    slurm.queue("1", "RUNNING")
    agent.tick()
    slurm.queue("1", "PENDING", reason="BeginTime")
    tick_twice(agent, clock)

    assert slurm.did("start") == [("1",)]
    assert slurm.did("requeue") == [("1",)]
    assert not agent.is_settling


def test_a_requeued_job_does_not_start_in_the_second_in_which_its_old_run_ended(
    agent, slurm, clock
):
    """Its nodes would refuse the start, and slurmctld would fail the job."""
    clock.now = math.floor(clock.now) + 0.05
    requeued(agent, slurm)
    slurm.queue("1", "PENDING", reason="BeginTime")
    for _ in range(3):
        agent.tick()
        clock.now += 0.3
    assert slurm.did("start") == []

    clock.now = math.floor(clock.now) + 1.0
    agent.tick()

    assert slurm.did("start") == [("1",)]


def test_a_requeued_job_whose_old_run_ends_late_waits_for_the_second_after_its_end(
    agent, slurm, clock
):
    requeued(agent, slurm)
    slurm.queue("1", "COMPLETING", reason="BeginTime")
    for _ in range(5):
        clock.now += 1
        agent.tick()
    slurm.queue("1", "PENDING", reason="BeginTime")
    agent.tick()
    assert slurm.did("start") == []

    clock.now += 1
    agent.tick()

    assert slurm.did("start") == [("1",)]


def test_a_started_job_that_ends_again_unseen_waits_for_the_second_after_that_end_too(
    agent, slurm, clock
):
    """Its node went DOWN, and Slurm requeued it, before the next reading."""
    requeued(agent, slurm)
    slurm.queue("1", "PENDING", reason="BeginTime")
    tick_twice(agent, clock)
    assert slurm.did("start") == [("1",)]

    clock.now += 3
    agent.tick()
    assert slurm.did("start") == [("1",)]

    clock.now += 1
    agent.tick()
    assert slurm.did("start") == [("1",), ("1",)]


@pytest.mark.parametrize("reason", ["NodeDown", "", "None"])
def test_a_requeued_job_that_says_nothing_of_its_delay_yet_stays_looked_after(
    agent, slurm, clock, reason
):
    requeued(agent, slurm)
    slurm.queue("1", "PENDING", reason=reason)
    agent.tick()
    slurm.queue("1", "PENDING", reason="BeginTime")
    tick_twice(agent, clock)

    assert slurm.did("start") == [("1",)]


def test_a_requeued_job_is_not_looked_after_for_ever(agent, slurm, clock):
    requeued(agent, slurm)
    slurm.queue("1", "COMPLETING")
    agent.tick()
    assert agent.is_settling

    clock.now += 301
    agent.tick()

    assert not agent.is_settling


def test_a_clock_that_is_put_back_starts_no_job_before_the_end_of_its_old_run(agent, slurm, clock):
    """What Slurm refuses it goes by: a credential of before that moment."""
    requeued(agent, slurm)
    slurm.queue("1", "PENDING", reason="BeginTime")
    clock.now -= 60
    for _ in range(5):
        clock.now += 1
        agent.tick()

    assert slurm.did("start") == []
    assert not agent.is_settling


def test_a_job_of_a_deleted_node_starts_without_its_delay(agent, slurm, clock):
    slurm.put("n1", "ALLOCATED")
    slurm.queue("1", "RUNNING", node_names=("n1",))
    agent.on_orders([order(OrderKind.DELETE, "n1")])
    slurm.queue("1", "PENDING", reason="BeginTime", node_names=())

    tick_twice(agent, clock)

    assert slurm.did("start") == [("1",)]


def test_a_requeue_of_the_other_thread_outlives_a_reading_from_before_it(agent, slurm, clock):
    slurm.queue("1", "RUNNING")

    def meanwhile() -> None:
        clock.now += 1
        agent.on_orders([order(OrderKind.REQUEUE, "1")])

    slurm.before_read = [meanwhile]
    agent.tick()
    slurm.queue("1", "PENDING", reason="BeginTime")

    tick_twice(agent, clock)

    assert slurm.did("start") == [("1",)]


def relaunched(
    agent, slurm, clock, *, begins_in_s: float, restarts: int = 1, ran_s: float = 11
) -> None:
    """Job 1 was given to a node that did not answer, and Slurm has requeued it."""
    slurm.put("n1", "ALLOCATED")
    began = {"node_names": ("n1",), "started_at_s": clock.now - ran_s}
    slurm.queue("1", "RUNNING", restarts=restarts - 1, **began)
    agent.tick()
    slurm.queue("1", "COMPLETING", node_names=("n1",), restarts=restarts)
    agent.tick()
    begins_at_s = clock.now + begins_in_s
    slurm.queue("1", "PENDING", reason="BeginTime", restarts=restarts, begins_at_s=begins_at_s)
    tick_twice(agent, clock)


def test_a_job_that_slurm_could_not_launch_starts_without_its_delay_once(agent, slurm, clock):
    """Twice in a row it may be the job: Slurm holds it after a few more."""
    relaunched(agent, slurm, clock, begins_in_s=121)
    assert slurm.did("start") == [("1",)]

    clock.now += 60
    relaunched(agent, slurm, clock, begins_in_s=121, restarts=2)
    assert slurm.did("start") == [("1",)]

    clock.now += 601
    relaunched(agent, slurm, clock, begins_in_s=121, restarts=3)
    assert slurm.did("start") == [("1",), ("1",)]


@pytest.mark.parametrize("begins_in_s", [30, 3600])
def test_a_job_whose_user_says_when_it_begins_waits_until_then(agent, slurm, clock, begins_in_s):
    """It has requeued itself, and set its StartTime."""
    relaunched(agent, slurm, clock, begins_in_s=begins_in_s)

    assert slurm.did("start") == []
    assert not agent.is_settling


def test_a_job_that_ran_for_long_and_is_preempted_keeps_its_delay(agent, slurm, clock):
    """At once it could take the node again before who preempts it."""
    relaunched(agent, slurm, clock, begins_in_s=121, ran_s=600)

    assert slurm.did("start") == []


def test_a_job_that_we_requeue_begins_when_its_user_says(agent, slurm, clock):
    requeued(agent, slurm)
    slurm.queue("1", "PENDING", reason="BeginTime", begins_at_s=clock.now + 3600)

    tick_twice(agent, clock)

    assert slurm.did("start") == []
