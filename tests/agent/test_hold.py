"""Good nodes of a job that loses another are kept for it before Slurm gives them away."""

import pytest

from tests.agent.fakes import NOW_S, order, tick_twice
from tidegate.core.fleet.resume import HOLD_S, kept_for
from tidegate.core.model.drain_reason import DrainCode, DrainReason, read
from tidegate.core.model.orders import OrderKind, OrderOutcome


def running(slurm, *names, job_id="1", **more):
    for name in names:
        slurm.put(name, "ALLOCATED")
    slurm.queue(job_id, "RUNNING", node_names=names, **more)


def held(slurm):
    """What is kept, by node: for whom."""
    found = {name: read(node.reason) for name, node in slurm.nodes.items()}
    return {n: why.subject for n, why in found.items() if why and why.code is DrainCode.KEPT}


def kinds(slurm):
    return [call[0] for call in slurm.calls]


def test_before_a_node_is_deleted_the_others_of_its_job_are_kept(slurm, outcomes):
    running(slurm, "n1", "n2", "n3")

    outcomes(order(OrderKind.DELETE, "n2"))

    assert held(slurm) == {"n1": "1", "n3": "1"}
    assert kinds(slurm)[:2] == ["drain", "down"]
    assert slurm.nodes["n1"].reason == str(kept_for("1", NOW_S + HOLD_S))


def test_before_a_job_is_requeued_its_other_nodes_are_kept(slurm, outcomes):
    running(slurm, "n1", "n2")

    outcomes(order(OrderKind.REQUEUE, "1", on_nodes=("n2",)))

    assert held(slurm) == {"n1": "1"}
    assert kinds(slurm) == ["drain", "requeue"]


@pytest.mark.parametrize("kind", [OrderKind.DELETE, OrderKind.REQUEUE])
def test_all_components_of_a_heterogeneous_job_keep_their_nodes(slurm, outcomes, kind):
    running(slurm, "n1", het_job_id="1")
    running(slurm, "n2", "n3", job_id="2", het_job_id="1")
    made = {
        OrderKind.DELETE: order(OrderKind.DELETE, "n2"),
        OrderKind.REQUEUE: order(OrderKind.REQUEUE, "2", on_nodes=("n2",)),
    }

    outcomes(made[kind])

    assert held(slurm) == {"n1": "1", "n3": "1"}


def test_nothing_is_kept_that_goes_is_drained_or_has_a_job_that_goes_on(slurm, outcomes):
    running(slurm, "n1", "n2", "n3")
    running(slurm, "n4", "n5", job_id="2", is_requeueable=False)
    running(slurm, "n6", "n7", job_id="3")
    slurm.put("n1", "ALLOCATED", "DRAIN", reason="ada: looking at a fan")
    outcomes(order(OrderKind.DELETE, "n2", "n3", "n4"))

    assert held(slurm) == {}


def fell(slurm, agent, clock):
    """Job 1 of n1 and n2 ran, and Slurm has found n2 DOWN."""
    running(slurm, "n1", "n2")
    agent.tick()
    slurm.put("n1", "IDLE")
    slurm.put("n2", "DOWN", reason="Not responding")
    clock.now += 1


def test_a_job_that_slurm_requeued_since_its_node_went_down_starts_without_its_delay(
    agent, slurm, clock
):
    fell(slurm, agent, clock)
    slurm.queue("1", "PENDING", reason="BeginTime", restarts=1)

    tick_twice(agent, clock)

    assert slurm.did("start") == [("1",)]


def test_a_job_that_a_person_requeued_waits_as_slurm_has_it(agent, slurm, clock):
    running(slurm, "n1", "n2")
    agent.tick()
    slurm.queue("1", "PENDING", reason="BeginTime", restarts=1)

    tick_twice(agent, clock)

    assert slurm.did("start") == []


def test_a_new_job_beside_a_node_that_is_down_waits_for_its_begin(agent, slurm, clock):
    fell(slurm, agent, clock)
    slurm.queue("1", "RUNNING", node_names=("n1", "n2"))
    slurm.queue("5", "PENDING", reason="BeginTime")

    tick_twice(agent, clock)

    assert slurm.did("start") == []


def test_a_drain_for_the_night_keeps_nothing(slurm, outcomes):
    running(slurm, "n1", "n2")
    why = str(DrainReason(DrainCode.STOPPED, "it is night"))

    outcomes(order(OrderKind.DELETE, "n1", "n2", text=why, only_if=("ALLOCATED",)))

    assert held(slurm) == {}


def test_the_planner_hears_why_slurm_requeued_a_job_as_long_as_it_is_there(
    agent, slurm, bus, clock
):
    fell(slurm, agent, clock)
    slurm.queue("1", "PENDING", reason="BeginTime", restarts=1)
    for _ in range(3):
        agent.tick()
        clock.now += 100

    said = [job.fault.said for one in bus.digests[1:] for job in one.reading.jobs if job.fault]
    assert said[-1:] == ["node n2 failed: Not responding"]
    assert len(said) == len(bus.digests) - 1


def test_a_job_is_held_where_the_guard_lets_it(slurm, outcomes):
    slurm.queue("1", "PENDING")
    slurm.queue("2", "RUNNING")

    made = order(OrderKind.HOLD, "1", "2", only_if=("PENDING",))

    assert outcomes(made) == {"1": OrderOutcome.DONE, "2": OrderOutcome.KEPT}
    assert slurm.calls == [("hold", "1")]
