"""A node that a job has, or a reservation, is not released, whatever its state says."""

import pytest

from tests.agent.fakes import NOW_S, order
from tidegate.core.model.orders import OrderKind, OrderOutcome

DONE, KEPT = OrderOutcome.DONE, OrderOutcome.KEPT


@pytest.mark.parametrize("state", ["RUNNING", "SUSPENDED", "CONFIGURING", "STOPPED", "SIGNALING"])
def test_a_node_that_looks_idle_and_has_a_job_stays(slurm, worker, state):
    """22.05 shows the node of a suspended job as IDLE, and ends when it is deleted."""
    slurm.put("n1", "IDLE")
    slurm.queue("7", state, node_names=("n1",))

    results = worker.carry_out([order(OrderKind.RELEASE, "n1", only_if=("IDLE",))], NOW_S).results

    what = "is suspended" if state == "SUSPENDED" else "runs"
    assert (results[0].outcome, results[0].detail) == (KEPT, f"Job 7 {what} here.")
    assert slurm.calls == []


def test_a_job_that_is_suspended_during_a_release_keeps_its_node(slurm, outcomes):
    slurm.put("n1", "IDLE")
    slurm.before_read = [
        lambda: None,
        lambda: slurm.queue("7", "SUSPENDED", node_names=("n1",)),
    ]

    assert outcomes(order(OrderKind.RELEASE, "n1")) == {"n1": KEPT}
    assert slurm.calls == [("drain", "n1"), ("undrain", "n1")]


def test_a_dead_node_is_deleted_only_when_its_suspended_job_has_left_it(slurm, outcomes):
    slurm.put("n1", "IDLE")
    slurm.queue("7", "SUSPENDED", node_names=("n1",))
    slurm.before_read = [
        lambda: None,
        lambda: slurm.queue("7", "SUSPENDED", node_names=("n1",)),
        lambda: slurm.queue("7", "PENDING"),
    ]

    assert outcomes(order(OrderKind.DELETE, "n1")) == {"n1": DONE}
    assert slurm.calls == [("down", "n1"), ("delete", "n1")]


def test_a_node_in_a_reservation_is_not_even_drained(slurm, worker):
    """Slurm deletes none: it says that it is busy."""
    slurm.put("n1", "IDLE", "RESERVED")

    results = worker.carry_out([order(OrderKind.RELEASE, "n1")], NOW_S).results

    assert results[0].outcome is KEPT
    assert "reservation" in results[0].detail
    assert slurm.calls == []
