"""Orders that arrive together are few commands, and dead nodes leave at once."""

import pytest

from tests.agent.fakes import NOW_S, order
from tidegate.agent.orders import batches
from tidegate.core.model.orders import OrderKind, OrderOutcome

DONE, KEPT, EXPIRED = OrderOutcome.DONE, OrderOutcome.KEPT, OrderOutcome.EXPIRED


def batched(*orders):
    return [[one.order_id for one in batch] for batch in batches(orders, lambda one: one)]


def test_orders_of_one_kind_and_text_are_one_batch_and_drains_come_first():
    requeue = order(OrderKind.REQUEUE, "1", order_id="requeue")
    usr1 = order(OrderKind.SIGNAL, "1", text="USR1", order_id="usr1")
    usr1_too = order(OrderKind.SIGNAL, "2", text="USR1", order_id="usr1 too")
    usr2 = order(OrderKind.SIGNAL, "3", text="USR2", order_id="usr2")
    drains = [order(OrderKind.DRAIN, f"n{n}", order_id=f"n{n}") for n in range(3)]
    guarded = order(OrderKind.DRAIN, "n4", only_if=("IDLE",), order_id="guarded")

    found = batched(requeue, usr1, *drains, usr2, usr1_too, guarded)

    assert found == [["n0", "n1", "n2"], ["guarded"], ["usr1", "usr1 too"], ["usr2"], ["requeue"]]


def test_a_batch_about_jobs_is_not_longer_than_a_command():
    made = [
        order(OrderKind.SIGNAL, *(f"{n}_{j}" for j in range(100)), text="USR1", order_id=f"o{n}")
        for n in range(5)
    ]

    assert batched(*made) == [["o0", "o1"], ["o2", "o3"], ["o4"]]


def test_releases_and_gates_are_never_one_batch():
    made = [
        order(kind, f"n{n}", order_id=f"{kind}{n}")
        for kind in (OrderKind.RELEASE, OrderKind.UNDRAIN)
        for n in range(2)
    ]

    assert len(batched(*made)) == 4


def test_a_batch_of_drains_is_one_read_and_one_command(slurm, worker):
    slurm.put("n1", "MIXED")
    slurm.put("n2", "IDLE")
    reads = []
    slurm.before_read = [lambda: reads.append(1)] * 5
    late = order(OrderKind.DRAIN, "n3", order_id="late", not_after_s=NOW_S - 1)

    done = worker.carry_out(
        [order(OrderKind.DRAIN, "n1", "n2"), late, order(OrderKind.DRAIN, "n2", order_id="o2")],
        NOW_S,
    )

    assert slurm.calls == [("drain", "n1", "n2")]
    assert len(reads) == 1
    assert {(one.order_id, one.name): one.outcome for one in done.results} == {
        ("o1", "n1"): DONE,
        ("o1", "n2"): DONE,
        ("o2", "n2"): DONE,
        ("late", "n3"): EXPIRED,
    }


def test_a_batch_of_requeues_keeps_each_orders_own_guard(slurm, worker):
    slurm.queue("1", "RUNNING", node_names=("n1",))
    slurm.queue("2", "RUNNING", node_names=("elsewhere",))
    first = order(OrderKind.REQUEUE, "1", on_nodes=("n1",))
    second = order(OrderKind.REQUEUE, "2", on_nodes=("n2",), order_id="o2")

    done = worker.carry_out([first, second], NOW_S)

    assert slurm.calls == [("requeue", "1")]
    assert done.requeued == {"1"}
    assert [one.outcome for one in done.results if one.name == "2"] == [KEPT]


# -- delete --------------------------------------------------------------------------------


def test_a_dead_node_goes_at_once_with_whatever_seemed_to_run_there(slurm, worker):
    slurm.put("n1", "ALLOCATED")
    slurm.queue("1", "RUNNING", node_names=("n1", "n2"))
    slurm.queue("2", "RUNNING", node_names=("n1",), is_requeueable=False)
    slurm.queue("3", "RUNNING", node_names=("n2",))

    done = worker.carry_out([order(OrderKind.DELETE, "n1", "gone")], NOW_S)

    assert slurm.calls == [("down", "n1"), ("delete", "n1")]
    assert {one.name: one.outcome for one in done.results} == {"n1": DONE, "gone": DONE}
    assert done.requeued == {"1"}


@pytest.mark.parametrize("passing", ["PLANNED", "COMPLETING"])
def test_a_dead_node_that_something_holds_stays_down_for_a_while(slurm, outcomes, clock, passing):
    slurm.put("n1", "IDLE")
    held = [lambda: slurm.put("n1", "DOWN", passing)]
    slurm.before_read = [lambda: None] + held * 3

    assert outcomes(order(OrderKind.DELETE, "n1")) == {"n1": KEPT}
    assert slurm.did("delete") == []
    assert clock.now - NOW_S < 2


def test_the_delete_of_a_dead_node_that_slurm_refused_is_tried_again(slurm, outcomes):
    slurm.put("n1", "IDLE")
    slurm.refuses["n1"] = "Requested nodes are busy"
    slurm.before_read = [lambda: None, lambda: None, slurm.refuses.clear]

    assert outcomes(order(OrderKind.DELETE, "n1")) == {"n1": DONE}


def test_a_living_node_that_a_person_has_drained_meanwhile_is_not_set_down(slurm, worker):
    """A stop ends what runs on n1 and n2; ada has taken n1 since the order was sent."""
    slurm.put("n1", "MIXED", "DRAIN", reason="ada: looking at a fan")
    slurm.put("n2", "MIXED", "DRAIN", reason="tidegate: the cluster is stopped until 08:00")
    slurm.queue("1", "RUNNING", node_names=("n1",))
    slurm.queue("2", "RUNNING", node_names=("n2",))

    made = order(OrderKind.DELETE, "n1", "n2", only_if=("IDLE", "MIXED", "ALLOCATED"))
    done = worker.carry_out([made], NOW_S)

    assert slurm.calls == [("down", "n2"), ("delete", "n2")]
    assert {one.name: one.outcome for one in done.results} == {"n1": KEPT, "n2": DONE}
    assert "ada" in next(one.detail for one in done.results if one.name == "n1")
    assert done.requeued == {"2"}


def test_a_dead_node_goes_also_where_a_person_has_drained_it(slurm, outcomes):
    """Its jobs start elsewhere at once; nobody can look at a machine that is gone."""
    slurm.put("n1", "MIXED", "DRAIN", reason="ada: looking at a fan")

    assert outcomes(order(OrderKind.DELETE, "n1")) == {"n1": DONE}
    assert slurm.did("down") == [("n1",)]


def test_a_guard_keeps_a_node_from_being_deleted(slurm, outcomes):
    slurm.put("n1", "MIXED")

    assert outcomes(order(OrderKind.DELETE, "n1", only_if=("DOWN",))) == {"n1": KEPT}
    assert slurm.calls == []
