"""A sick node is rebooted only as it was judged: drained for what was found, and empty."""

import pytest

from tests.agent.fakes import order
from tidegate.core.model.orders import OrderKind, OrderOutcome
from tidegate.core.model.slurm import SetBy

DONE, KEPT = OrderOutcome.DONE, OrderOutcome.KEPT
ECC = "tidegate-health: ecc: 2 errors"
FOUND = f"root: {ECC}"


def test_what_is_drained_for_what_was_found_and_empty_is_rebooted(slurm, outcomes):
    slurm.put("n1", "IDLE", "DRAIN", reason=ECC, set_by=SetBy.ROOT)

    assert outcomes(order(OrderKind.REBOOT, "n1", despite=FOUND)) == {"n1": DONE}
    assert slurm.calls == [("reboot", "n1")]


def test_slurm_is_not_asked_for_a_reboot_twice(slurm, outcomes):
    slurm.put("n1", "IDLE", "DRAIN", "REBOOT_REQUESTED", reason=ECC, set_by=SetBy.ROOT)

    assert outcomes(order(OrderKind.REBOOT, "n1", despite=FOUND)) == {"n1": DONE}
    assert slurm.calls == []


@pytest.mark.parametrize(
    ("words", "reason", "set_by"),
    [
        (("IDLE",), "", SetBy.UNKNOWN),  # somebody has opened it
        (("MIXED", "DRAIN"), ECC, SetBy.ROOT),
        (("DOWN", "DRAIN"), ECC, SetBy.ROOT),
        (("IDLE", "DRAIN"), "ada looks into it", SetBy.USER),
        (("IDLE", "DRAIN"), "NHC: another finding", SetBy.ROOT),
    ],
)
def test_a_node_that_is_not_as_it_was_judged_is_not_rebooted(
    slurm, outcomes, words, reason, set_by
):
    slurm.put("n1", *words, reason=reason, set_by=set_by)

    assert outcomes(order(OrderKind.REBOOT, "n1", despite=FOUND)) == {"n1": KEPT}
    assert slurm.calls == []


def test_the_node_of_a_suspended_job_looks_idle_and_is_not_rebooted(slurm, outcomes):
    slurm.put("n1", "IDLE", "DRAIN", reason=ECC, set_by=SetBy.ROOT)
    slurm.queue("7", "SUSPENDED", node_names=("n1",))

    assert outcomes(order(OrderKind.REBOOT, "n1", despite=FOUND)) == {"n1": KEPT}
    assert slurm.calls == []
