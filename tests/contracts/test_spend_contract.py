"""What every `Ledger` promises of the counters of what was spent."""

from dataclasses import replace

import pytest

from tests.contracts.test_ledger_contract import launch, node, with_node
from tests.make import NOW_S
from tidegate.core.actions import Charge, Ended, LaunchStatus, Losses, Phase, Toll
from tidegate.ports import Ledger

TODAY, MONTH = "2027-01-15", "2027-01"


def ended(instance_id: str = "i-1", usd: float = 0.1) -> Ended:
    scopes = ("cluster", "pool t4")
    charges = tuple(Charge(period, s, usd) for period in (TODAY, MONTH) for s in scopes)
    return Ended(instance_id, NOW_S, charges)


def spent(ledger: Ledger) -> dict[tuple[str, str], float]:
    return {(each.period, each.scope): each.usd for each in ledger.view().spent}


def test_what_a_node_cost_is_counted_once_however_often_it_is_told(ledger: Ledger) -> None:
    with_node(ledger)

    for _ in range(3):
        ledger.charge([ended()])

    assert spent(ledger) == {(p, s): 0.1 for p in (TODAY, MONTH) for s in ("cluster", "pool t4")}
    (found,) = ledger.view().nodes
    assert found.ended_at_s == NOW_S


def test_a_batch_in_which_some_were_counted_adds_only_the_others(ledger: Ledger) -> None:
    names = [f"i-{number}" for number in range(200)]
    ledger.commit(ledger.view().epoch, [launch()])
    ledger.finish_launch("l-1", LaunchStatus.DONE, [node(name) for name in names])

    ledger.charge([ended("i-7", 5.0), ended("i-150", 5.0)])
    ledger.charge([ended(name) for name in names])

    assert spent(ledger)[MONTH, "cluster"] == pytest.approx(10.0 + 198 * 0.1, abs=1e-9)


def test_unknown_nodes_cost_nothing(ledger: Ledger) -> None:
    ledger.charge([ended("i-nobody")])

    assert spent(ledger) == {}


def test_counters_stay_when_their_nodes_are_gone(ledger: Ledger) -> None:
    with_node(ledger)
    ledger.charge([ended()])

    ledger.advance_node("i-1", Phase.TERMINATED)

    assert ledger.view().nodes == ()
    assert spent(ledger)[TODAY, "pool t4"] == 0.1


def test_the_first_toll_of_a_node_stays(ledger: Ledger) -> None:
    with_node(ledger)
    before = ledger.nodes(["i-1"])[0].toll

    ledger.interrupt_nodes({"i-1": NOW_S + 120}, {"i-1": Toll(1.5, 2)})
    ledger.interrupt_nodes({"i-1": NOW_S + 60}, {"i-1": Toll(7.0, 7)})

    assert before is None
    assert ledger.nodes(["i-1"])[0].toll == Toll(1.5, 2)


def test_a_node_without_jobs_has_a_toll_of_nothing(ledger: Ledger) -> None:
    with_node(ledger)

    ledger.interrupt_nodes({"i-1": NOW_S + 120})
    ledger.interrupt_nodes({"i-1": NOW_S + 120}, {"i-1": Toll(7.0, 7)})

    assert ledger.nodes(["i-1"])[0].toll == Toll()


def test_tolls_are_summed_by_month_once_for_each_node(ledger: Ledger) -> None:
    names = ["i-1", "i-2", "i-3"]
    ledger.commit(ledger.view().epoch, [launch()])
    ledger.finish_launch("l-1", LaunchStatus.DONE, [node(name) for name in names])
    after = [
        replace(ended("i-1"), toll=Toll(1.25, 2)),
        replace(ended("i-2"), toll=Toll()),
        ended("i-3"),
    ]

    for _ in range(2):
        ledger.charge(after)

    assert ledger.view().losses == (Losses(MONTH, 2, 1.25, 2),)
