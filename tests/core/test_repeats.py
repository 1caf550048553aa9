"""What looks decide anew while an order is on its way is told once."""

from dataclasses import replace

from tidegate.core.explain.history import EventKind, LookEvent
from tidegate.core.explain.repeats import AGAIN_WITHIN_S, told_once

REQUEUE = LookEvent(
    100.0,
    "a-1",
    EventKind.DECISION,
    "requeue",
    jobs=("7",),
    sentence="requeue 7: EC2 reclaims its node",
)


def test_what_comes_again_soon_counts_with_the_first() -> None:
    signal = replace(REQUEUE, at_s=110.0, code="signal", sentence="signal 7")
    again = [replace(REQUEUE, at_s=at_s, look_id=f"a-{at_s}") for at_s in (115.0, 130.0)]

    found = told_once([REQUEUE, signal, *again])

    assert [(each.event, each.again, each.last_s) for each in found] == [
        (REQUEUE, 2, 130.0),
        (signal, 0, 110.0),
    ]
    assert [each.often for each in found] == [" (2 times more by 00:02:10 UTC)", ""]


def test_another_job_or_another_hour_is_another_event() -> None:
    others = replace(REQUEUE, at_s=101.0, jobs=("8",))
    later = replace(REQUEUE, at_s=REQUEUE.at_s + AGAIN_WITHIN_S + 1)

    assert [each.event for each in told_once([REQUEUE, others, later])] == [REQUEUE, others, later]
