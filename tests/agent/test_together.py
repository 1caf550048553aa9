"""What the agent does to one component of a heterogeneous job it does to all."""

from tests.agent.fakes import order, tick_twice
from tidegate.core.model.orders import OrderKind, OrderOutcome


def test_components_of_a_heterogeneous_job_are_requeued_by_the_first_one(agent, slurm):
    """Slurm refuses any other: Job not heterogeneous job leader."""
    for job_id in ("7", "8", "9"):
        slurm.queue(job_id, "RUNNING", het_job_id="7")

    results = agent.on_orders([order(OrderKind.REQUEUE, "8", "9")])

    assert slurm.did("requeue") == [("7",)]
    assert {each.name: each.outcome for each in results} == dict.fromkeys("89", OrderOutcome.DONE)


def test_a_heterogeneous_job_is_requeued_before_a_node_of_it_is_set_down(agent, slurm):
    """Slurm takes the first component alone off its nodes; the others would run on for ever."""
    slurm.put("n1", "ALLOCATED")
    slurm.queue("7", "RUNNING", node_names=("n1",), het_job_id="7")
    slurm.queue("8", "RUNNING", node_names=("n2",), het_job_id="7")

    agent.on_orders([order(OrderKind.DELETE, "n1")])

    assert [call for call in slurm.calls if call[0] in ("requeue", "down")] == [
        ("requeue", "7"),
        ("down", "n1"),
    ]


def test_a_heterogeneous_job_that_slurm_does_not_requeue_is_told(agent, slurm):
    slurm.put("n1", "ALLOCATED")
    for job_id, name in (("7", "n1"), ("8", "n2")):
        slurm.queue(job_id, "RUNNING", node_names=(name,), het_job_id="7")
    slurm.refuses["7"] = "Requested operation is presently disabled"

    (told,) = agent.on_orders([order(OrderKind.DELETE, "n1")])

    assert told.name == "n1"
    assert "Job 7 was not requeued: Requested operation is presently disabled." in told.detail


def test_a_heterogeneous_job_of_a_deleted_node_starts_without_its_delay(agent, slurm, clock):
    slurm.put("n2", "ALLOCATED")
    slurm.queue("7", "RUNNING", node_names=("n1",), het_job_id="7")
    slurm.queue("8", "RUNNING", node_names=("n2",), het_job_id="7")
    agent.on_orders([order(OrderKind.DELETE, "n2")])
    slurm.calls.clear()
    for job_id in ("7", "8"):
        slurm.queue(job_id, "PENDING", reason="BeginTime", node_names=(), het_job_id="7")

    tick_twice(agent, clock)

    assert slurm.did("start") == [("7",)]
