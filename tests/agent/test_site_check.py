"""The site's check of a template is submitted on all of its nodes, or not at all."""

from tests.agent.fakes import NOW_S, order
from tidegate.agent.change import fingerprint
from tidegate.core.model.orders import OrderKind, OrderOutcome
from tidegate.core.model.site_check import CheckJob
from tidegate.core.model.slurm import Reading

NAME = "tidegate:check:t4:new-2:1800000000-1"


def asked(*names, **more):
    return order(OrderKind.CHECK, *names, text=NAME, **more)


def test_it_is_asked_of_slurm_by_its_name_and_nodes(slurm, outcomes):
    slurm.put("n1", "IDLE")
    slurm.put("n2", "ALLOCATED")

    assert outcomes(asked("n1", "n2")) == {"n1": OrderOutcome.DONE, "n2": OrderOutcome.DONE}
    assert slurm.did("check") == [(NAME, "n1", "n2")]


def test_where_a_node_is_gone_nothing_is_submitted(slurm, outcomes):
    slurm.put("n1", "IDLE")

    assert outcomes(asked("n1", "n2"))["n2"] is OrderOutcome.FAILED
    assert slurm.did("check") == []


def test_what_slurm_says_against_it_is_told(slurm, outcomes):
    slurm.put("n1", "IDLE")
    slurm.refuses[NAME] = "Invalid account."

    assert outcomes(asked("n1")) == {"n1": OrderOutcome.FAILED}


def test_an_order_that_came_late_submits_nothing(slurm, outcomes):
    slurm.put("n1", "IDLE")

    assert outcomes(asked("n1", not_after_s=NOW_S - 1)) == {"n1": OrderOutcome.EXPIRED}
    assert slurm.did("check") == []


def test_its_end_is_news():
    before = Reading("22.05", (), (), checks=(CheckJob(NAME, "RUNNING"),))
    after = Reading("22.05", (), (), checks=(CheckJob(NAME, "FAILED", exit_code=1),))

    assert fingerprint(before) != fingerprint(after)
