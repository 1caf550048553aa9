"""What a ledger remembers of pools and of how nodes ended, on the simulated one and on DynamoDB."""

from dataclasses import replace

from tests.contracts.test_ledger_contract import HOUR_S, node
from tests.make import NOW_S, offering
from tidegate.core.model.ec2 import Template
from tidegate.core.model.finding import Finding, StoppedCheck
from tidegate.core.model.ledger import LaunchStatus, Phase
from tidegate.core.model.pool_history import Arrivals, FailedLaunch, HourSeen, PoolHistory, Week
from tidegate.ports import Finished, Ledger
from tidegate.sim.clock import SimClock


def test_what_was_learnt_of_a_pool_is_remembered_for_good(ledger: Ledger, clock: SimClock) -> None:
    failed = FailedLaunch("l-1", NOW_S - 900, NOW_S, "aa-1")
    ledger.learn(PoolHistory("t4", (failed,)))
    ledger.learn(PoolHistory("a10g"))
    (known,) = (each for each in ledger.view().pool_history if each.pool == "t4")
    good = Template("lt-1", "3", "bb-3")
    assert ledger.learn(replace(known, joined_at_s=NOW_S, good=good))

    clock.advance(1000 * HOUR_S)
    assert sorted(ledger.view().pool_history, key=lambda each: each.pool) == [
        PoolHistory("a10g"),
        PoolHistory("t4", (failed,), NOW_S, Template("lt-1", "3", "bb-3")),
    ]


def test_news_of_a_pool_are_not_noted_over_newer_ones(ledger: Ledger) -> None:
    """A planner that stood still would take back what others have learnt, and a person's word."""
    failed = FailedLaunch("l-1", NOW_S - 900, NOW_S, "aa-1")
    assert ledger.learn(PoolHistory("t4", (failed,)))
    assert not ledger.learn(PoolHistory("t4"))
    (slow,) = ledger.view().pool_history
    stop = StoppedCheck("NHC: check_fs_used", NOW_S, 2, 10)

    assert ledger.learn(replace(slow, stopped_checks=(stop,)))
    assert not ledger.learn(replace(slow, failed=()))

    (known,) = ledger.view().pool_history
    assert (known.failed, known.stopped_checks) == ((failed,), (stop,))
    assert ledger.learn(replace(known, failed=()))


def test_what_checks_found_is_remembered_as_it_was_noted(ledger: Ledger) -> None:
    found = Finding("i-1", "NHC: check_fs_used", offering(), NOW_S, 10, 3, "aa-1", "cr-1")
    stop = StoppedCheck("NHC: check_fs_used", NOW_S, 2, 10)
    noted = PoolHistory("t4", findings=(found,), stopped_checks=(stop,), excused=("i-2",))

    ledger.learn(noted)

    assert ledger.view().pool_history == (noted,)


def test_the_phase_in_which_a_node_was_first_interrupted_is_kept(ledger: Ledger) -> None:
    ledger.finish_launches(
        Finished("l-1", LaunchStatus.DONE, [node("i-1"), node("i-2", Phase.JOINED)])
    )

    for name in ("i-1", "i-1", "i-2"):
        ledger.interrupt_nodes({name: NOW_S})

    found = {each.instance_id: each.interrupted_in for each in ledger.view().nodes}
    assert found == {"i-1": Phase.LAUNCHED, "i-2": Phase.JOINED}


def test_what_came_in_each_hour_of_the_week_is_remembered_as_it_was_noted(ledger: Ledger) -> None:
    hours = tuple(
        HourSeen(hour, 2811, (4.25, 4.0, 0.5), (1.235, 2.0, 0.333, 3.5)) for hour in range(168)
    )
    week = Week(472_177, 472_900, 0.5, 12.345, 1.5, hours)
    noted = PoolHistory("t4", arrivals=(Arrivals("g5.xlarge", 7, 1.0, 0.5, week=week),))

    ledger.learn(noted)

    assert ledger.view().pool_history == (noted,)
