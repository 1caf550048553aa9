"""Every kind of news has one answer, whatever its time; of several the strongest counts."""

import itertools
from dataclasses import replace

import pytest

from tests.make import NOW_S
from tidegate.core.interruption.policy import (
    REBALANCE_HOLDS_S,
    Dead,
    Lift,
    NewsAction,
    Nothing,
    Reclaim,
    action_for,
    strongest,
)
from tidegate.core.model.cluster import Rebalance, Timings
from tidegate.core.model.drain_reason import REBALANCE, DrainCode, DrainReason, read
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.events import (
    HealthCategory,
    HealthNotice,
    News,
    RebalanceRecommendation,
    ReservationInterruption,
    SpotInterruption,
    StateChange,
)
from tidegate.core.model.ledger import Cordon

SPOT = DrainReason(DrainCode.RECLAIM, "EC2 reclaims this spot instance")
HELD = DrainReason(DrainCode.TAKEN, "its Capacity Reservation is taken back")
LEAVE = "EC2 recommends to leave this spot instance"
CODE = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
NEXT_WEEK_S = NOW_S + 7 * 86_400
ISSUE = Cordon(f"AWS Health: {CODE}", NOW_S, code=CODE)
OVER = Lift(replace(ISSUE, lifts_at_s=NOW_S))


def health(category: HealthCategory, *, is_over: bool = False) -> HealthNotice:
    return HealthNotice(("i-1",), category, CODE, NEXT_WEEK_S, is_over=is_over)


def answer(news: News, rebalance: Rebalance = Rebalance.IGNORE) -> NewsAction:
    return action_for(news, rebalance, NOW_S, Timings())


@pytest.mark.parametrize(
    ("news", "expected"),
    [
        (SpotInterruption("i-1", NOW_S - 5), Reclaim(NOW_S + 115, SPOT)),
        (SpotInterruption("i-1", NOW_S - 9_999), Reclaim(NOW_S - 9_879, SPOT)),
        (SpotInterruption("i-1", NOW_S + 9_999), Reclaim(NOW_S + 120, SPOT)),
        (ReservationInterruption("i-1", NOW_S), Reclaim(NOW_S + 120, HELD)),
        (ReservationInterruption("i-1", NOW_S - 9_999), Reclaim(NOW_S - 9_879, HELD)),
        (ReservationInterruption("i-1", NOW_S + 9_999), Reclaim(NOW_S + 120, HELD)),
        (ReservationInterruption("i-1", NOW_S, NOW_S + 90), Reclaim(NOW_S + 90, HELD)),
        (ReservationInterruption("i-1", NOW_S, NOW_S + 9_999), Reclaim(NOW_S + 120, HELD)),
        (
            health(HealthCategory.SCHEDULED_CHANGE),
            replace(ISSUE, ends_at_s=NEXT_WEEK_S),
        ),
        (health(HealthCategory.SCHEDULED_CHANGE, is_over=True), OVER),
        (health(HealthCategory.ISSUE), ISSUE),
        (
            replace(health(HealthCategory.ISSUE), said_at_s=NOW_S - 60),
            replace(ISSUE, since_s=NOW_S - 60),
        ),
        (
            replace(health(HealthCategory.ISSUE, is_over=True), said_at_s=NOW_S + 9_999),
            OVER,
        ),
        (health(HealthCategory.ISSUE, is_over=True), OVER),
        (health(HealthCategory.ACCOUNT_NOTIFICATION, is_over=True), Nothing()),
        (health(HealthCategory.ACCOUNT_NOTIFICATION), Nothing()),
        (health(HealthCategory.INVESTIGATION), Nothing()),
    ],
)
def test_news_has_this_answer(news: News, expected: NewsAction) -> None:
    assert answer(news) == expected


@pytest.mark.parametrize("state", InstanceState)
def test_an_instance_that_ends_is_dead_and_one_that_begins_is_no_news(
    state: InstanceState,
) -> None:
    begins = state in (InstanceState.PENDING, InstanceState.RUNNING)
    dead = Dead(DrainReason(DrainCode.GONE, f"EC2 says that its instance is {state.value}"))

    assert answer(StateChange("i-1", state)) == (Nothing() if begins else dead)


def test_what_a_rebalance_recommendation_does_is_the_pools_own_choice() -> None:
    answers = [answer(RebalanceRecommendation("i-1"), policy) for policy in Rebalance]

    cordon = Cordon(LEAVE, NOW_S, lifts_at_s=NOW_S + REBALANCE_HOLDS_S, code=REBALANCE)
    taken = DrainReason(DrainCode.TAKEN, LEAVE)
    assert answers == [Nothing(), cordon, Reclaim(NOW_S + 120, taken)]


def test_the_strongest_answer_counts_whichever_comes_first() -> None:
    weak_to_strong: list[NewsAction] = [
        Nothing(),
        Lift(Cordon("another reason", NOW_S, lifts_at_s=NOW_S)),
        Cordon("rebalance", NOW_S, lifts_at_s=NOW_S + 1_800),
        Cordon("rebalance", NOW_S, lifts_at_s=NOW_S + 3_600),
        Cordon("issue", NOW_S),
        Cordon("maintenance", NOW_S, NOW_S + 9_000),
        Cordon("maintenance", NOW_S, NOW_S + 900),
        Reclaim(NOW_S + 120, SPOT),
        Reclaim(NOW_S + 60, HELD),
        Dead(DrainReason(DrainCode.GONE, "gone")),
    ]

    for weak, strong in itertools.combinations(weak_to_strong, 2):
        assert strongest(weak, strong) == strongest(strong, weak) == strong


def test_what_is_over_is_over_although_its_begin_comes_in_the_same_batch() -> None:
    assert strongest(ISSUE, OVER) == strongest(OVER, ISSUE) == OVER


@pytest.mark.parametrize(("sentence", "code"), [(f"AWS Health: {CODE}", CODE), (LEAVE, REBALANCE)])
def test_what_version_0_1_wrote_of_a_cordon_is_the_same_cordon(sentence: str, code: str) -> None:
    before, now = Cordon(sentence, NOW_S), Cordon(sentence, NOW_S, code=code)
    found = read(f"tidegate: {sentence}")

    assert before.about == now.about == code
    assert found is not None
    assert before.is_told_by(found)
    assert now.is_told_by(found)
    assert not replace(now, code="another").is_told_by(found)
