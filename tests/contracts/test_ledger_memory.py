"""What a ledger remembers beside nodes and launches, on the simulated one and on DynamoDB."""

from dataclasses import replace
from itertools import pairwise

from tests.contracts.test_ledger_contract import HOUR_S
from tests.make import NOW_S, offering
from tidegate.core.model.calendar import OnRunningJobs, OverrideKind, ScheduleOverride
from tidegate.core.model.digest import SEEN_COUNTS_S, Stamp
from tidegate.core.model.ec2 import Market
from tidegate.core.model.market import NEVER_SEEN, Quote, SeenMarket
from tidegate.core.model.resting import Resting
from tidegate.core.model.stuck import Stuck
from tidegate.ports import Ledger
from tidegate.sim.clock import SimClock


def test_a_refusal_replaces_the_one_before(ledger: Ledger) -> None:
    for failures in (1, 2):
        ledger.rest(Resting(offering(), NOW_S + 180 * failures, failures, "Code", "words"))

    assert ledger.view().resting == (Resting(offering(), NOW_S + 360, 2, "Code", "words"),)


def test_a_rest_of_one_pool_stands_beside_that_of_all(ledger: Ledger) -> None:
    of_all = Resting(offering(), NOW_S + 180, 1, "Code", "words")
    of_one = replace(of_all, pool="t4", template="lt-t4:1")
    of_its_nodes = replace(of_all, pool="t4", template="digest-1")

    ledger.rest(of_all, of_one, of_its_nodes)

    assert set(ledger.view().resting) == {of_all, of_one, of_its_nodes}
    for each in (of_all, of_one, of_its_nodes):
        assert ledger.resting([each.key]) == (each,)


def test_a_rest_that_is_lifted_is_gone_and_may_be_lifted_twice(ledger: Ledger) -> None:
    of_all = Resting(offering(), NOW_S + 180, 1, "Code", "words")
    of_one = replace(of_all, pool="t4", template="lt-t4:1")
    ledger.rest(of_all, of_one)

    for _ in range(2):
        ledger.lift(of_one)

    assert ledger.view().resting == (of_all,)


def test_a_refusal_is_remembered_past_its_time_but_not_for_ever(
    ledger: Ledger, clock: SimClock
) -> None:
    ledger.rest(Resting(offering(), NOW_S + 180, 1, "Code", "words"))

    clock.advance(HOUR_S / 2)
    assert len(ledger.view().resting) == 1

    clock.advance(HOUR_S)
    assert ledger.view().resting == ()


def test_the_market_is_what_was_seen_last(ledger: Ledger) -> None:
    assert ledger.view().seen_market == NEVER_SEEN

    for usd in (0.4, 0.5):
        seen = SeenMarket((Quote("g5.xlarge", usd, "us-east-1a"),), NOW_S, on_demand_trouble="slow")
        ledger.see_market(seen)

    assert ledger.view().seen_market == seen


def test_a_stuck_job_is_remembered_once_and_not_for_ever(ledger: Ledger, clock: SimClock) -> None:
    ledger.watch(Stuck("7", "abc", NOW_S))
    ledger.watch(Stuck("7", "abc", NOW_S, 1, NOW_S + 300))

    assert ledger.view().stuck == (Stuck("7", "abc", NOW_S, 1, NOW_S + 300),)

    clock.advance(4 * HOUR_S)
    assert ledger.view().stuck == ()


def test_an_override_is_remembered_for_a_day_after_its_end_and_may_be_shortened(
    ledger: Ledger, clock: SimClock
) -> None:
    override = ScheduleOverride(
        "a1",
        OverrideKind.STOP,
        NOW_S,
        NOW_S + HOUR_S,
        NOW_S,
        "arn:aws:sts::1:assumed-role/ops/ada",
        "räumen",
        OnRunningJobs.REQUEUE,
    )
    ledger.override_hours(override)
    assert ledger.view().overrides == (override,)

    shorter = replace(override, until_s=NOW_S + 60)
    ledger.override_hours(shorter)
    assert ledger.view().overrides == (shorter,)

    clock.advance(12 * HOUR_S)
    assert ledger.view().overrides == (shorter,)

    clock.advance(13 * HOUR_S)
    assert ledger.view().overrides == ()


def test_the_digest_that_was_seen_only_goes_forward(ledger: Ledger) -> None:
    stamps = [
        Stamp("i-a", 100.5, 1),
        Stamp("i-a", 100.5, 2),
        Stamp("i-a", 200.25, 1),
        Stamp("i-b", 200.25, 1),
        Stamp("i-b", 300.0, 1),
    ]
    for older, newer in pairwise(stamps):
        ledger.see_digest(newer)
        if newer.agent_started_at_s > older.agent_started_at_s or newer.sequence > older.sequence:
            ledger.see_digest(older)

        assert ledger.view().digest_seen == newer


# -- single nodes and cordons --------------------------------------------------------------


def test_a_start_that_is_not_heard_any_more_bars_no_other(ledger: Ledger, clock: SimClock) -> None:
    """Its clock may have been hours ahead."""
    ahead, right = Stamp("i-a", NOW_S + HOUR_S, 1), Stamp("i-a", NOW_S, 1)
    ledger.see_digest(ahead)
    clock.advance(SEEN_COUNTS_S)
    ledger.see_digest(right)
    barred = ledger.view().digest_seen

    clock.advance(1.0)
    forgotten = ledger.view().digest_seen
    ledger.see_digest(right)

    assert (barred, forgotten) == (ahead, None)
    assert ledger.view().digest_seen == right


def test_the_rests_of_some_offerings_can_be_asked_for(ledger: Ledger, clock: SimClock) -> None:
    spot, on_demand = offering(), offering(market=Market.ON_DEMAND)
    for each in (spot, on_demand):
        ledger.rest(Resting(each, NOW_S + 180, 1, "spot interruption", "gone"))

    assert [one.offering for one in ledger.resting([(spot, "", "", "", "")])] == [spot]
    clock.advance(180 + HOUR_S + 1)
    assert ledger.resting([(spot, "", "", "", "")]) == ()
