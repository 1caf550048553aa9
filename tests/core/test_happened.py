"""The log of decisions, line by line, and whom a line is about."""

import pytest

from tests.make import cluster
from tidegate.core.happened import happened, is_about

LAUNCH = "launch 2 x g4dn.xlarge/us-east-1a/spot at 0.2 USD per hour for job 7_3, 12, all or none:"
ROUND = {
    "plan_id": "abcd-7",
    "decisions": [
        f"{LAUNCH} nothing fits, and this is the cheapest in pool t4",
        "release i-1, i-12: idle for 60 s",
        "requeue 7, 8: EC2 reclaims its node",
    ],
    "launched": [],
    "refused": [{"offering": "g5.12xlarge/us-east-1a/spot", "code": "C", "message": "none"}],
    "ended": ["i-1"],
    "trouble": ["launch x has to wait"],
}
RECORD = {"at_s": 5.0, "look_id": "abcd-7", "rounds": [ROUND], "trouble": ""}
BUYS, RELEASES, REQUEUES, REFUSED, ENDED, TROUBLE = range(6)


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ({}, [BUYS, RELEASES, REQUEUES, REFUSED, ENDED, TROUBLE]),
        ({"job": "7_3"}, [BUYS, TROUBLE]),
        ({"job": "12"}, [BUYS, TROUBLE]),
        ({"job": "7"}, [REQUEUES, TROUBLE]),
        ({"job": "60"}, [TROUBLE]),
        ({"node": "i-1"}, [RELEASES, ENDED, TROUBLE]),
        ({"node": "i-12"}, [RELEASES, TROUBLE]),
        ({"pool": "t4"}, [BUYS, TROUBLE]),
        ({"pool": "a10g"}, [REFUSED, TROUBLE]),
        ({"pool": "t4", "job": "7"}, [TROUBLE]),
    ],
)
def test_lines_are_told_to_whom_they_concern(asked: dict[str, str], lines: list[int]) -> None:
    events = list(happened([RECORD], cluster()))

    assert [number for number, each in enumerate(events) if is_about(each, **asked)] == lines


def test_a_look_that_failed_is_trouble():
    (event,) = happened([RECORD | {"rounds": [], "trouble": "Throttled: slow"}], cluster())

    assert (event.kind, event.text, event.at_s) == ("trouble", "Throttled: slow", 5.0)


def test_a_round_that_the_version_before_stored_is_read():
    before = {"epoch" if name == "plan_id" else name: each for name, each in ROUND.items()}

    events = list(happened([RECORD | {"rounds": [before]}], cluster()))

    assert events == list(happened([RECORD], cluster()))
