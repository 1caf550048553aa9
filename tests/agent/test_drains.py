"""Orders about nodes that somebody else has drained: who it was decides."""

from tests.agent.fakes import order
from tidegate.core.model.orders import OrderKind, OrderOutcome
from tidegate.core.model.slurm import SetBy

DONE, KEPT = OrderOutcome.DONE, OrderOutcome.KEPT


def test_a_release_goes_past_what_software_said_and_past_nobody_else(slurm, outcomes):
    slurm.put("n1", "IDLE", "DRAIN", reason="Epilog error", set_by=SetBy.SLURM)
    slurm.put("n2", "IDLE", "DRAIN", reason="Epilog error", set_by=SetBy.USER)
    slurm.put("n3", "IDLE", "DRAIN", reason="tidegate: leave it, ada", set_by=SetBy.ROOT)

    made = order(OrderKind.RELEASE, "n1", "n2", "n3", despite="slurm: Epilog error")

    assert outcomes(made) == {"n1": DONE, "n2": KEPT, "n3": KEPT}
    assert slurm.calls == [("delete", "n1")]


def test_a_drain_leaves_the_words_of_a_checker(slurm, outcomes):
    slurm.put("n1", "MIXED", "DRAIN", reason="NHC: no disk", set_by=SetBy.ROOT)

    assert outcomes(order(OrderKind.DRAIN, "n1")) == {"n1": DONE}
    assert slurm.calls == []
