"""What a node without a job was for, on its bill: nothing is guessed, and sums stay whole."""

from typing import Any

import pytest

from tests.core.test_allocation import START_S, TYPES, line, run
from tidegate.core.model.idle_use import IdleSpan, IdleUse
from tidegate.core.offers.allocation import TimeUse, allocated, rows

near: Any = pytest.approx
JOB_ENDS_S = START_S + 3600  # the job of `run` begins after 10 minutes
KEPT, WAITING, DRAINED = IdleUse.KEPT, IdleUse.WAITING, IdleUse.DRAINED


def span(begin: float, end: float, use: IdleUse, node: str = "i-1") -> IdleSpan:
    """In minutes from the node's launch."""
    return IdleSpan(node, START_S + begin * 60, START_S + end * 60, use)


def minutes(*spans: IdleSpan, **of_bill: Any) -> dict[TimeUse, float]:
    """Of a node that boots for 5 minutes, idles for 5, has a job until the 60th and idles until
    the 120th; it costs a dollar a minute.
    """
    bill = line(usd_per_hour=60.0, **of_bill)
    job = run(gpus=4.0, started_at_s=START_S + 600, ended_at_s=JOB_ENDS_S)
    shares = allocated([bill], [job], TYPES, START_S - 9e4, START_S + 9e4, spans)
    (row,) = rows(shares, "pool")
    assert row.total_usd == near(120.0)
    return {use: round(usd, 6) for use, usd in row.usd.items() if usd}


def test_of_which_nothing_is_known_is_idle():
    assert minutes() == {TimeUse.BOOT: 5, TimeUse.JOB: 50, TimeUse.IDLE: 65}
    assert minutes(span(0, 120, KEPT, node="i-2"))[TimeUse.IDLE] == 65


def test_a_node_that_is_drained_while_it_idles_is_told_apart_from_then_on():
    found = minutes(span(5, 10, WAITING), span(60, 80, WAITING), span(80, 120, DRAINED))

    assert found == {
        TimeUse.BOOT: 5,
        TimeUse.JOB: 50,
        TimeUse.WAITING: 25,
        TimeUse.DRAINED: 40,
    }


def test_a_spare_node_that_becomes_sick_and_well_again():
    found = minutes(span(60, 70, KEPT), span(70, 100, DRAINED), span(100, 120, KEPT))

    assert (found[TimeUse.KEPT], found[TimeUse.DRAINED], found[TimeUse.IDLE]) == (30, 30, 5)


def test_a_span_takes_nothing_from_jobs_nor_from_the_boot():
    """A step of the agent may be late, and it may have seen the node before a look noted it."""
    found = minutes(span(0, 200, KEPT))

    assert found == {TimeUse.BOOT: 5, TimeUse.JOB: 50, TimeUse.KEPT: 65}


def test_while_records_are_missing_it_is_idle_and_no_neighbour_is_stretched():
    found = minutes(span(60, 75, KEPT), span(95, 120, KEPT))

    assert (found[TimeUse.KEPT], found[TimeUse.IDLE]) == (40, 25)


def test_a_clock_that_was_put_back_counts_no_second_twice():
    found = minutes(span(60, 90, KEPT), span(70, 100, DRAINED), span(110, 65, WAITING))

    assert found[TimeUse.KEPT] == 30
    assert found[TimeUse.DRAINED] == 10
    assert found[TimeUse.IDLE] == 25


def test_a_span_that_ends_before_it_begins_hides_no_other():
    found = minutes(span(50, 120, KEPT), span(58, 40, DRAINED))

    assert found[TimeUse.KEPT] == 60


def test_a_stopped_node_is_kept_on_purpose():
    assert minutes(is_stopped=True) == {TimeUse.KEPT: 120}


def test_a_price_that_changes_cuts_no_span():
    half_s = START_S + 90 * 60
    cheap, dear = line(until_s=half_s), line(since_s=half_s, usd_per_hour=8.0)
    spans = [span(60, 120, KEPT)]

    shares = list(allocated([cheap, dear], [run()], TYPES, START_S, START_S + 7200, spans))

    kept = sum(each.usd for each in shares if each.use is TimeUse.KEPT)
    assert kept == near(20 / 60 * 4.0 + 30 / 60 * 8.0)  # its job ends after 70 minutes
