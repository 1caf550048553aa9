"""Whatever stands in a history: jobs, or a message with the line; never anything else."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.replay.test_trace import CSV, SACCT, sacct
from tidegate.sim.replay.trace import BadTrace, read_trace

DIGITS = "9" * 5_000
ODD = st.sampled_from(
    [
        *(DIGITS, f"-{DIGITS}", f"1e{DIGITS}", f"cpu={DIGITS}", "1.2.3G", "mem=1.2.3G", "mem=G"),
        *("0001-01-01", "9999-12-31T23:59:59", "2046-03-02T09:10:00", "2026-03-02T09:10+14:00"),
        *('"', "nan", "inf", "-0", "1_000", " 1", "x" * 200_000, "\0", "\udc80", "[1-9]", "7_8"),
    ]
)
FIELD = ODD | st.text(max_size=12) | st.integers().map(str)
FEW = settings(max_examples=60, deadline=None)


def read(text: str) -> None:
    try:
        trace = read_trace(text)
    except BadTrace as error:
        lines = str(error).split("\n")
        assert re.match(r"line \d+: |no line is a job that ran$", lines[0]), lines
        assert len(str(error)) < 3_000
    else:
        assert all(job.duration_s <= 366 * 86400 for job in trace.jobs)


@FEW
@given(fields=st.lists(FIELD, min_size=6, max_size=6))
def test_csv_fields(fields):
    read(CSV + "ok,1,2,1,1,p\n" + ",".join(fields))


@FEW
@given(place=st.integers(0, 11), value=FIELD)
def test_sacct_fields(place, value):
    good = sacct().rstrip("\n").split("|")
    good[place] = value
    read(SACCT + "|".join(good))


@FEW
@given(text=st.text(max_size=80) | FIELD)
def test_any_text(text):
    read(text)
    read(CSV + text)
    read(SACCT + text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            SACCT + sacct(ReqTRES="mem=1.2.3G"),
            "line 2: ReqTRES must have mem like 4096M or 1.5G, has mem=1.2.3G",
        ),
        (
            SACCT + sacct(NNodes=DIGITS),
            "line 2: NNodes must be a whole number, 1-9,999,999, is '9999",
        ),
        (
            SACCT + sacct(End="2046-03-02T09:10:00"),
            "line 2: it ran for 7,305 days, more than 366: was a clock wrong? leave the line out",
        ),
        (
            CSV + "a,0,1,1,1,p\nb,9e9,1,1,1,p\n",
            "line 3: ends 104,167 days after the first job came, more than 1830: is a clock or"
            " the first line wrong?",
        ),
        (CSV + "a,0,1,1,1," + "p" * 200_000, "line 2: is no CSV: field larger than field limit"),
    ],
)
def test_what_is_said_of_the_worst(text, said):
    with pytest.raises(BadTrace) as caught:
        read_trace(text)

    assert str(caught.value).startswith(said)
