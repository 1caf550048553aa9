"""What every `Ledger` promises of the counters of what was spent."""

from dataclasses import replace

import pytest

from tests.contracts.test_ledger_contract import launch, node, with_node
from tests.make import NOW_S
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.errors import Throttled
from tidegate.core.model.events import GpuReset, NodeOrphaned
from tidegate.core.model.ledger import (
    Bill,
    Charge,
    InterruptionLoss,
    LaunchStatus,
    MonthlyLosses,
    Phase,
    Stretch,
)
from tidegate.core.model.savings_plans import Committed
from tidegate.ports import Finished, Ledger

TODAY, MONTH = "2027-01-15", "2027-01"


def ended(instance_id: str = "i-1", usd: float = 0.1) -> Stretch:
    scopes = ("cluster", "pool t4")
    charges = tuple(Charge(period, s, usd) for period in (TODAY, MONTH) for s in scopes)
    return Stretch(instance_id, NOW_S, charges)


def spent(ledger: Ledger) -> dict[tuple[str, str], float]:
    return {(each.period, each.scope): each.usd for each in ledger.view().spent}


def test_what_a_node_cost_is_counted_once_however_often_it_is_told(ledger: Ledger) -> None:
    with_node(ledger)

    for _ in range(3):
        ledger.charge([ended()])

    assert spent(ledger) == {(p, s): 0.1 for p in (TODAY, MONTH) for s in ("cluster", "pool t4")}
    (found,) = ledger.view().nodes
    assert found.ended_at_s == NOW_S


def line(until_s: float = NOW_S, since_s: float = NOW_S - 3600) -> Bill:
    offering = Offering("g4dn.xlarge", "us-east-1a", Market.SPOT)
    return Bill("i-1", "t4", offering, "vision", NOW_S - 3600, None, since_s, until_s, 0.1)


def test_a_line_of_the_bill_stands_there_once_under_the_day_of_its_end(ledger: Ledger) -> None:
    with_node(ledger)
    stretch = replace(ended(), bill=line())

    for _ in range(3):
        ledger.charge([stretch])

    assert ledger.bills([TODAY]) == (line(),)
    assert ledger.bills(["2027-01-14", TODAY, TODAY]) == (line(),)
    assert ledger.bills(["2027-01-14"]) == ()


def test_each_price_of_a_node_has_a_line(ledger: Ledger) -> None:
    with_node(ledger)
    first, second = line(NOW_S), line(NOW_S + 60, since_s=NOW_S)
    new_price = replace(ended(), next_usd_per_hour=0.2, bill=first)
    last = replace(ended(), until_s=NOW_S + 60, priced_at_s=NOW_S, bill=second)

    ledger.charge([new_price])
    ledger.charge([last])
    ledger.advance_nodes({"i-1": Phase.TERMINATED})

    assert sorted(ledger.bills([TODAY]), key=lambda one: one.since_s) == [first, second]


def test_what_was_not_counted_is_not_billed(ledger: Ledger) -> None:
    ledger.charge([replace(ended("i-nobody"), bill=line())])

    assert ledger.bills([TODAY]) == ()


def test_a_look_reads_no_lines(ledger: Ledger) -> None:
    """The hot part of the ledger stays as small as the cluster."""
    with_node(ledger)
    before = ledger.view()
    ledger.charge([replace(ended(), bill=line())])
    after = ledger.view()

    assert len(after.nodes) == len(before.nodes)
    assert {each.scope for each in after.spent} == {"cluster", "pool t4"}


def test_when_a_node_joined_is_noted_once(ledger: Ledger) -> None:
    with_node(ledger)
    before = ledger.nodes(["i-1"])[0].joined_at_s

    ledger.advance_nodes({"i-1": Phase.JOINED})
    joined_at_s = ledger.nodes(["i-1"])[0].joined_at_s
    ledger.advance_nodes({"i-1": Phase.RELEASED})
    ledger.advance_nodes({"i-1": Phase.JOINED})

    assert before is None
    assert joined_at_s is not None
    assert ledger.nodes(["i-1"])[0].joined_at_s == joined_at_s


def test_a_batch_in_which_some_were_counted_adds_only_the_others(ledger: Ledger) -> None:
    names = [f"i-{number}" for number in range(130)]
    ledger.commit(ledger.view().epoch, [launch()])
    ledger.finish_launches(Finished("l-1", LaunchStatus.DONE, [node(name) for name in names]))

    ledger.charge([ended("i-7", 5.0), ended("i-120", 5.0)])
    ledger.charge([ended(name) for name in names])

    assert spent(ledger)[MONTH, "cluster"] == pytest.approx(10.0 + 128 * 0.1, abs=1e-9)


def test_unknown_nodes_cost_nothing(ledger: Ledger) -> None:
    ledger.charge([ended("i-nobody")])

    assert spent(ledger) == {}


def test_counters_stay_when_their_nodes_are_gone(ledger: Ledger) -> None:
    with_node(ledger)
    ledger.charge([ended()])

    ledger.advance_nodes({"i-1": Phase.TERMINATED})

    assert ledger.view().nodes == ()
    assert spent(ledger)[TODAY, "pool t4"] == 0.1


def test_the_first_interruption_loss_of_a_node_stays(ledger: Ledger) -> None:
    with_node(ledger)
    before = ledger.nodes(["i-1"])[0].interruption_loss

    ledger.interrupt_nodes({"i-1": NOW_S + 120}, {"i-1": InterruptionLoss(1.5, 2)})
    ledger.interrupt_nodes({"i-1": NOW_S + 60}, {"i-1": InterruptionLoss(7.0, 7)})

    assert before is None
    assert ledger.nodes(["i-1"])[0].interruption_loss == InterruptionLoss(1.5, 2)


def test_a_node_without_jobs_has_an_interruption_loss_of_nothing(ledger: Ledger) -> None:
    with_node(ledger)

    ledger.interrupt_nodes({"i-1": NOW_S + 120})
    ledger.interrupt_nodes({"i-1": NOW_S + 120}, {"i-1": InterruptionLoss(7.0, 7)})

    assert ledger.nodes(["i-1"])[0].interruption_loss == InterruptionLoss()


def test_interruption_losses_are_summed_by_month_once_for_each_node(ledger: Ledger) -> None:
    names = ["i-1", "i-2", "i-3"]
    ledger.commit(ledger.view().epoch, [launch()])
    ledger.finish_launches(Finished("l-1", LaunchStatus.DONE, [node(name) for name in names]))
    after = [
        replace(ended("i-1"), interruption_loss=InterruptionLoss(1.25, 2)),
        replace(ended("i-2"), interruption_loss=InterruptionLoss()),
        replace(ended("i-3"), interruption_loss=InterruptionLoss(is_taken=False)),
    ]

    for _ in range(2):
        ledger.charge(after)

    assert ledger.view().losses == (MonthlyLosses(MONTH, 2, 1.25, 2),)


def test_nodes_that_ended_themselves_are_counted_apart(ledger: Ledger) -> None:
    names = ["i-1", "i-2"]
    ledger.commit(ledger.view().epoch, [launch()])
    ledger.finish_launches(Finished("l-1", LaunchStatus.DONE, [node(name) for name in names]))
    loss = InterruptionLoss(1.25, 2)
    after = [
        replace(ended("i-1"), interruption_loss=loss, is_orphan=True),
        replace(ended("i-2"), interruption_loss=loss),
    ]

    for _ in range(2):
        ledger.charge(after)

    assert ledger.view().losses == (MonthlyLosses(MONTH, 1, 1.25, 2, orphans=1),)


def test_what_a_node_says_of_itself_is_noted_of_nodes_that_are_known(ledger: Ledger) -> None:
    with_node(ledger)

    for name in ("i-1", "i-1", "i-foreign"):
        ledger.note_told(NodeOrphaned(name, 1860.0))
        ledger.note_told(GpuReset(name, 21.0))

    (known,) = ledger.view().nodes
    assert (known.instance_id, known.silent_s) == ("i-1", 1860.0)
    assert known.reset_said == "its GPUs were reset in 21 s, and it takes jobs again"
    assert ledger.nodes(["i-foreign"]) == ()


def repriced(usd_per_hour: float, until_s: float = NOW_S, was_at_s: float | None = None) -> Stretch:
    """A node has cost 0.1 USD to each scope, and has another price from then on."""
    return replace(ended(), until_s=until_s, priced_at_s=was_at_s, next_usd_per_hour=usd_per_hour)


def test_what_a_node_cost_at_its_price_is_counted_once_when_it_gets_another(
    ledger: Ledger,
) -> None:
    with_node(ledger)

    for _ in range(3):
        ledger.charge([repriced(0.526)])

    assert spent(ledger) == {(p, s): 0.1 for p in (TODAY, MONTH) for s in ("cluster", "pool t4")}
    (found,) = ledger.view().nodes
    assert (found.usd_per_hour, found.priced_at_s, found.ended_at_s) == (0.526, NOW_S, None)


def test_what_a_savings_plan_pays_of_a_price_is_noted_with_it(ledger: Ledger) -> None:
    with_node(ledger)
    paid = Committed("arn:aws:savingsplans::123456789012:savingsplan/0f3a", 0.3, 0.2)

    ledger.charge([replace(repriced(0.326), next_committed=paid)])

    (found,) = ledger.view().nodes
    assert (found.usd_per_hour, found.committed) == (0.326, paid)
    assert found.committed is not None
    assert found.committed.saved_usd_per_hour == 0.2
    ledger.charge([repriced(0.526, NOW_S + 60, NOW_S)])
    (found,) = ledger.view().nodes
    assert (found.usd_per_hour, found.committed) == (0.526, None)


def test_a_price_may_change_there_and_back_and_the_end_counts_once(ledger: Ledger) -> None:
    with_node(ledger)
    first, second = repriced(0.526), repriced(0.0, NOW_S + 60.25, NOW_S)
    last = replace(ended(), until_s=NOW_S + 90, priced_at_s=NOW_S + 60.25)

    for each in (first, first, second, first, second, last, second, last):
        ledger.charge([each])

    assert spent(ledger)[MONTH, "cluster"] == pytest.approx(0.3, abs=1e-9)
    (found,) = ledger.view().nodes
    assert (found.usd_per_hour, found.priced_at_s) == (0.0, NOW_S + 60.25)
    assert found.ended_at_s == NOW_S + 90


def test_of_two_planners_that_see_another_price_one_counts(ledger: Ledger) -> None:
    with_node(ledger)

    ledger.charge([repriced(0.526)])
    ledger.charge([repriced(0.7, NOW_S + 5)])

    assert spent(ledger)[MONTH, "cluster"] == 0.1
    assert ledger.nodes(["i-1"])[0].usd_per_hour == 0.526


def test_an_end_reckoned_with_an_older_price_is_not_counted_and_not_taken_for_counted(
    ledger: Ledger,
) -> None:
    """The node would be forgotten, and its last stretch with it."""
    with_node(ledger)
    ledger.charge([repriced(0.526)])

    for _ in range(2):
        with pytest.raises(Throttled):
            ledger.charge([replace(ended(), until_s=NOW_S + 60)])

    assert spent(ledger)[MONTH, "cluster"] == 0.1
    assert ledger.nodes(["i-1"])[0].ended_at_s is None


def test_a_node_that_has_ended_gets_no_other_price(ledger: Ledger) -> None:
    with_node(ledger)
    ledger.charge([ended()])

    ledger.charge([repriced(0.526, NOW_S + 60)])

    assert spent(ledger)[MONTH, "cluster"] == 0.1
    assert ledger.nodes(["i-1"])[0].priced_at_s is None


def test_ends_and_new_prices_are_counted_in_one_batch(ledger: Ledger) -> None:
    names = [f"i-{number}" for number in range(120)]
    ledger.commit(ledger.view().epoch, [launch()])
    ledger.finish_launches(Finished("l-1", LaunchStatus.DONE, [node(name) for name in names]))
    ends = [ended(name) for name in names[::2]]
    changes = [replace(repriced(0.526), instance_id=name) for name in names[1::2]]

    ledger.charge(changes[:1])
    ledger.charge([*ends, *changes])

    assert spent(ledger)[MONTH, "cluster"] == pytest.approx(12.0, abs=1e-9)
    assert sum(each.priced_at_s == NOW_S for each in ledger.view().nodes) == 60


def test_a_node_is_written_with_the_price_that_it_has_by_then(ledger: Ledger) -> None:
    known = replace(node(), usd_per_hour=0.7, priced_at_s=NOW_S - 60)
    ledger.commit(ledger.view().epoch, [launch()])

    ledger.finish_launches(Finished("l-1", LaunchStatus.DONE, [known]))

    assert ledger.nodes(["i-1"]) == (known,)
