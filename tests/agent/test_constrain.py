"""What a job asks for beside what its user asked for."""

from tests.agent.fakes import order
from tests.agent.test_orders import DONE, FAILED, KEPT
from tidegate.core.model.orders import OrderKind


def test_a_feature_is_added_to_what_each_job_asks_for_by_now(slurm, outcomes):
    slurm.queue("1", "RUNNING")
    slurm.queue("2", "PENDING")
    slurm.queue("3", "PENDING", constraint="t4")
    slurm.queue("4", "PENDING", constraint="a|b")
    slurm.queue("5", "PENDING", constraint="on-demand")
    slurm.queue("6", "PENDING")

    names = ("1", "2", "3", "4", "5", "6")
    made = order(OrderKind.CONSTRAIN, *names, text="on-demand", only_if=("PENDING",))

    assert outcomes(made) == {"1": KEPT, "4": KEPT, "2": DONE, "3": DONE, "5": DONE, "6": DONE}
    assert slurm.calls == [
        ("constrain", "on-demand", "2", "6"),
        ("constrain", "t4&on-demand", "3"),
    ]


def test_what_slurm_refuses_of_an_arrays_tasks_it_refuses_of_the_row_in_which_they_wait(
    slurm, outcomes
):
    slurm.queue("7_0", "RUNNING")
    for waiting in ("7", "8"):
        slurm.queue(waiting, "PENDING")
    slurm.refuses = {"7_0": "Job is no longer pending execution", "8_3": "Not available"}

    made = order(OrderKind.CONSTRAIN, "7", "8", text="on-demand", only_if=("PENDING",))

    assert outcomes(made) == {"7": DONE, "8": FAILED}
