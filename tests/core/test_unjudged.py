"""A planner that is dead is told; one that is idle or about to look is not."""

from dataclasses import replace

import pytest

from tests.make import NOW_S, digest, job, snapshot
from tidegate.core.explain.answer import Status, answer
from tidegate.core.explain.history import LOOK_DENIED, LOOK_FAILED, EventKind, LookEvent
from tidegate.core.explain.overview import overview
from tidegate.core.explain.unjudged import is_judged, nobody_judges
from tidegate.core.explain.verdicts import Verdicts, verdicts_of
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan


def reported(sequence: int, age_s: float = 1.0) -> Snapshot:
    return replace(snapshot(), digest=digest([job(1)], sequence=sequence), digest_age_s=age_s)


def judged(sequence: int, ago_s: float) -> Verdicts:
    """By a look that long ago, of that report."""
    seen = replace(reported(sequence), now_s=NOW_S - ago_s)
    return verdicts_of(plan(seen), seen)


@pytest.mark.parametrize(
    ("judged_sequence", "ago_s", "sequence", "age_s", "is_dead"),
    [
        (7, 1, 7, 1, False),
        (7, 9000, 7, 9000, False),  # a head that is silent; what it said is judged
        (7, 300, 8, 1, False),  # an idle cluster's heartbeat of 5 min, whose look begins
        (7, 365, 8, 65, False),  # the look before it lived for as long as one may
        (7, 395, 8, 95, True),
        (7, 100, 60, 1, False),  # a long look, while the head reports every second
        (7, 200, 60, 1, True),
        (7, 5000, 3, 1, False),  # the agent has begun anew: see below
    ],
)
def test_who_does_not_judge_in_time_is_dead(
    judged_sequence: int, ago_s: float, sequence: int, age_s: float, *, is_dead: bool
) -> None:
    found = nobody_judges(reported(sequence, age_s), judged(judged_sequence, ago_s), None)

    assert (found is not None) is is_dead


def test_a_report_of_an_agent_that_began_anew_was_not_judged_by_its_number() -> None:
    before = judged(7, ago_s=400)
    seen = reported(3)
    assert seen.digest is not None
    stamp = replace(seen.digest.stamp, agent_started_at_s=NOW_S - 350)
    anew = replace(seen, digest=replace(seen.digest, stamp=stamp))

    assert not is_judged(anew, before)
    assert nobody_judges(anew, before, None)
    assert is_judged(anew, replace(before, agent_started_at_s=0.0)), "0.1 did not say which start"


def test_a_cluster_that_was_never_looked_at_says_so_after_a_while() -> None:
    assert nobody_judges(reported(2), None, None), "the agent has run for 1000 s"
    assert nobody_judges(reported(1), None, None) is None, "its first report is a second old"
    assert nobody_judges(reported(1, age_s=100), None, None)
    assert nobody_judges(replace(snapshot(), digest=None), None, None) is None


@pytest.mark.parametrize(
    ("code", "does"),
    [(LOOK_FAILED, "read the planner's log"), (LOOK_DENIED, "give its role the right")],
)
def test_a_look_that_failed_is_told_at_once_with_what_to_do(code: str, does: str) -> None:
    seen, before = reported(8), judged(7, ago_s=60)
    said = "NotAuthorized: Query: no right" if code == LOOK_DENIED else "Throttled: slow"
    failed = LookEvent(NOW_S - 1, "x", EventKind.TROUBLE, code, sentence=said)
    dead = nobody_judges(seen, before, failed)
    assert dead is not None

    found, told = overview(seen, before, unjudged=dead), answer("1", seen, before, dead)

    assert found.needs_a_look[0].startswith(
        f"nobody has judged the queue since 07:59:00 UTC (60 s ago): looks fail: {said}; {does}"
    )
    assert "aws logs tail /tidegate/test/planner" in found.needs_a_look[0]
    assert told.status is Status.WAITING, "whatever was decided before, nobody carries it on"
    assert told.headline.startswith("job 1 waits: nobody has judged the queue since 07:59:00")
    assert told.change[0].startswith(does)
