"""Events as bytes: what was written is read, and what 0.1 wrote is shown with what it has."""

from dataclasses import replace

import pytest

from tidegate.core.explain.history import EventKind, LookEvent
from tidegate.core.model.errors import BadEvent
from tidegate.wire.decisions import decode_record, encode_record
from tidegate.wire.history import decode_events, encode_events

JOBS = tuple(map(str, range(2_000)))
LAUNCH = LookEvent(
    5.0,
    "abcd-7",
    EventKind.DECISION,
    "launch",
    jobs=JOBS,
    pools=("t4",),
    offerings=("g4dn.xlarge/us-east-1a/spot",),
    launch_id="abcd-7-0",
    sentence="launch 2 x g4dn.xlarge for job 0, 1, 2, 3, 4 and 1995 more: nothing fits",
)
GAVE = tuple(
    replace(
        LAUNCH, kind=EventKind.LAUNCHED, code="launched", nodes=(name,), sentence=f"gave {name}"
    )
    for name in ("i-1", "i-2")
)
DRAIN = LookEvent(
    5.0, "abcd-7", EventKind.DECISION, "drain", nodes=("i-3",), until_s=65.0, sentence="d"
)
FAILED = LookEvent(6.0, "abcd-7", EventKind.TROUBLE, "look-failed", sentence="Throttled: slow")
EVENTS = (LAUNCH, DRAIN, *GAVE, FAILED)


def test_events_are_read_as_they_were_written() -> None:
    assert decode_events(encode_events(EVENTS)) == EVENTS


def test_the_jobs_of_a_launch_are_written_once_however_many_nodes_it_gave() -> None:
    written = decode_record(encode_events(EVENTS))["events"]

    assert sum("jobs" in each for each in written) == 1


def test_a_node_of_a_launch_that_no_decision_is_about_keeps_its_jobs() -> None:
    assert decode_events(encode_events(GAVE)) == GAVE


def test_keys_of_a_newer_writer_are_passed_over() -> None:
    record = decode_record(encode_events(EVENTS))
    for each in record["events"]:
        each["colour"] = "red"

    assert decode_events(encode_record(record | {"more": 1})) == EVENTS


ROUND = {
    "plan_id": "abcd-7",
    "decisions": ["launch 2 x g4dn for job 7_3, 12 and 5 more: nothing fits", "release i-1: idle"],
    "launched": [{"instance_id": "i-1", "pool": "t4", "offering": "g4dn", "jobs": ["12"]}],
    "refused": [{"offering": "g5", "code": "C", "message": "none"}],
    "ended": ["i-1"],
    "trouble": ["launch x has to wait"],
}
BEFORE = {"at_s": 5.0, "look_id": "abcd-7", "rounds": [ROUND], "trouble": "Throttled: slow"}


@pytest.mark.parametrize("name", ["plan_id", "epoch"])
def test_what_the_version_before_stored_is_shown_with_what_it_has(name: str) -> None:
    part = {name if key == "plan_id" else key: value for key, value in ROUND.items()}

    found = decode_events(encode_record(BEFORE | {"rounds": [part]}))

    assert [each.sentence for each in found] == [
        *ROUND["decisions"],
        "EC2 gave i-1 g4dn",
        "EC2 refused g5: C: none",
        "terminated i-1",
        "launch x has to wait",
        "Throttled: slow",
    ]
    assert {each.look_id for each in found} == {"abcd-7"}
    assert [each.kind for each in found if each.is_about(job="12")] == [
        "launched",
        "trouble",
        "trouble",
    ]
    assert [each.kind for each in found if each.is_about(node="i-1")][:2] == ["launched", "ended"]
    assert not any(each.is_about(job="more") for each in found[:5])


@pytest.mark.parametrize(
    "record",
    [{"version": 2}, {"version": 2, "events": [7]}, {"version": 2, "events": [{"at_s": "x"}]}, {}],
)
def test_what_is_no_history_is_said(record: dict[str, object]) -> None:
    with pytest.raises(BadEvent, match="no stored events"):
        decode_events(encode_record(record))
