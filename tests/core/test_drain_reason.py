"""Why we drain a node, written as Slurm's reason and read again, whatever stands around it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.model.drain_reason import (
    OPEN,
    SENTENCE_MAX_CHARS,
    DrainCode,
    DrainReason,
    code_of,
    read,
    sentence_of,
)

AT_S = 1_767_657_600.0  # 2026-01-06T00:00:00Z
SUBJECTS = st.text("abc019_+.-", max_size=9).filter(lambda text: text != "until")


@given(
    st.sampled_from(DrainCode),
    st.text(max_size=60),
    SUBJECTS,
    st.none() | st.integers(0, 4_000_000_000).map(float),
)
def test_what_is_written_is_read(
    code: DrainCode, sentence: str, subject: str, until_s: float | None
) -> None:
    reason = DrainReason(code, sentence, subject, until_s)

    assert read(str(reason)) == reason


def test_people_read_the_sentence_first() -> None:
    reason = DrainReason(DrainCode.KEPT, "kept for gang 7", "7", AT_S)

    assert str(reason) == "tidegate: kept for gang 7 (kept 7 until 2026-01-06T00:00:00Z)"


def test_the_last_brackets_count_and_what_slurm_adds_behind_them_does_not() -> None:
    quoted = DrainReason(DrainCode.UNHEALTHY, "found unhealthy: tidegate: x (stopped) : y")

    assert read(f"{quoted} : Not responding") == quoted


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"{OPEN} : Not responding", "Not responding"),
        (OPEN, ""),
        ("tidegate: idle for 60 s (empty) : Not responding", "idle for 60 s; then Not responding"),
        ("tidegate: idle for 60 s (empty)", "idle for 60 s"),
        ("bad fan : Not responding", "bad fan : Not responding"),
    ],
)
def test_people_read_what_slurm_adds_and_not_that_a_node_was_opened(
    text: str, sentence: str
) -> None:
    assert sentence_of(text) == sentence


def test_a_long_sentence_leaves_room_for_the_record() -> None:
    text = str(DrainReason(DrainCode.EMPTY, "x" * 2_000, "7"))

    assert len(text) < 1_000
    assert read(text) == DrainReason(DrainCode.EMPTY, "x" * SENTENCE_MAX_CHARS, "7")


@pytest.mark.parametrize(
    ("text", "code", "subject", "until_s"),
    [
        ("tidegate: the cluster is stopped until Tue 08:00", DrainCode.STOPPED, "", None),
        ("tidegate: kept for larger jobs", DrainCode.CLOSED, "", None),
        ("tidegate: kept for gang 7 until 2026-01-06T00:00:00Z", DrainCode.KEPT, "7", AT_S),
        ("tidegate: kept for gang 7 until soon", DrainCode.KEPT, "7", 0.0),
        ("tidegate: EC2 reclaims this spot instance", DrainCode.RECLAIM, "", None),
        ("tidegate: spot reclaim at 2026-01-06T00:00:00Z", DrainCode.NOTICED, "", None),
        ("tidegate: the node saves its jobs", DrainCode.SAVING, "", None),
        ("tidegate: AWS Health: AWS_EC2_X", DrainCode.CORDON, "AWS_EC2_X", None),
        ("tidegate: open", DrainCode.OPEN, "", None),
        ("tidegate release 1f0c-4-o3", DrainCode.RELEASE, "1f0c-4-o3", None),
        ("tidegate: from tomorrow (news)", DrainCode.OTHER, "", None),
    ],
)
def test_other_versions_reasons_are_read(
    text: str, code: DrainCode, subject: str, until_s: float | None
) -> None:
    found = read(text)

    assert found is not None
    assert (found.code, found.subject, found.until_s) == (code, subject, until_s)


@pytest.mark.parametrize(
    "text",
    ["", "bad fan", "bad fan (stopped)", "tidegate: leave it to me, ada", "tidegate: openly said"],
)
def test_what_people_write_is_no_record(text: str) -> None:
    assert code_of(text) is None
    assert sentence_of(text) == text.removeprefix("tidegate: ")
