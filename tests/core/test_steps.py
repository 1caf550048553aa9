"""What a requeued job lost, by the steps that its heartbeat file tells, whatever stands in it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.make import NOW_S, job
from tidegate.core.interruption.heartbeat import Beat
from tidegate.core.interruption.lost_work import lost_work
from tidegate.core.interruption.steps import SAYS_NONE, Work, seen, step
from tidegate.core.model.job_files import LostWork, ToldStep
from tidegate.core.model.slurm import Job

near: Any = pytest.approx
BEGAN_S = NOW_S - 10_000.0


def run(restarts: int = 0, began_s: float = BEGAN_S, **more: Any) -> Job:
    """A run of a job on two nodes of four GPUs."""
    asked = {"started_at_s": began_s, "restarts": restarts} | more
    made = job(9, nodes=2, gpus=4, gpu_type="a10g", on=("i-1", "i-2"), **asked)
    return replace(made, state=more.get("state", "RUNNING"))


def told(text: str, at_s: float) -> Beat:
    return Beat(at_s, step=step(text))


def after(*looks: tuple[Job, Beat, float], known: Work = Work()) -> Work:  # noqa: B008
    for of, beat, now_s in looks:
        known = seen(known, of, beat, now_s)
    return known


def works(first: int, last: int, *, restarts: int = 0, began_s: float = BEGAN_S) -> Work:
    """A step each ten seconds, from the first one, which it tells as it begins."""
    of, known = run(restarts, began_s), Work()
    for number in range(first, last + 1):
        at_s = began_s + 1 + 10 * (number - first)
        known = seen(known, of, told(f"step {number}", at_s), at_s + 2)
    return known


def requeued(known: Work, now_s: float, restarts: int = 1) -> Work:
    waits = replace(run(restarts), state="PENDING", node_names=())
    assert known.run
    still = replace(run(restarts - 1, known.run.began_at_s))
    return after((still, Beat(), now_s - 5), (waits, Beat(), now_s), known=known)


def lost_of(known: Work) -> LostWork:
    assert known.lost is not None
    return known.lost


# -- what the file says ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("step 1240", 1240.0, "step"),
        ("step 0\n", 0.0, "step"),
        ("  epoch   3.5 \n", 3.5, "epoch"),
        ("step 999999999999", 999_999_999_999.0, "step"),
    ],
)
def test_a_heartbeat_file_tells_a_step_or_an_epoch(text: str, number: float, unit: str) -> None:
    assert step(text) == ToldStep(number, unit)


@pytest.mark.parametrize("text", ["", "\n", "  "])
def test_a_file_that_is_only_touched_tells_nothing(text: str) -> None:
    assert step(text) is None


@pytest.mark.parametrize(
    "text",
    [
        *("1240", "step", "step -1", "step nan", "step inf", "step 1e9", "step 1240 of 5000"),
        *("steps 3", "Step 3", "step 0x10", "step 1234567890123", "step 1.1234567", "\ufffd"),
        *("step \u0663", "step 1\nstep 2", "{'step': 3}"),
    ],
)
def test_what_is_no_step_is_ignored_with_a_word_and_never_repeated(text: str) -> None:
    assert step(text) == ToldStep(problem=SAYS_NONE)


@given(st.text(max_size=64))
def test_whatever_stands_there_is_a_number_that_can_be_meant_or_none(text: str) -> None:
    found = step(text)

    assert found is None or found.problem or 0.0 <= found.number < 1e12


# -- what was lost ---------------------------------------------------------------------------


def test_a_run_that_goes_on_from_an_earlier_step_does_what_is_between_again() -> None:
    """100 steps of ten seconds on 8 GPUs; the checkpoint held 60; a minute until the requeue."""
    end_s = BEGAN_S + 1 + 1000 + 60
    known = requeued(works(0, 100), end_s)

    assert lost_of(known) == LostWork(1, 8, end_s, BEGAN_S + 1001, step=100.0)
    assert lost_of(known).stood_s == 60.0
    assert lost_of(known).redone_s == 0.0

    again = run(1, end_s + 100)
    known = after((again, told("step 60", end_s + 130), end_s + 133), known=known)

    lost = lost_of(known)
    assert (lost.resumed_step, lost.resumed_at_s) == (60.0, end_s + 133)
    assert lost.redone_s == near(400.0)
    assert lost.gpu_hours(lost.redone_s + lost.stood_s) == near(460 * 8 / 3600)


def test_later_steps_of_the_next_run_change_nothing_about_that() -> None:
    end_s = BEGAN_S + 1061
    known = requeued(works(0, 100), end_s)
    again = run(1, end_s)

    first = after((again, told("step 60", end_s + 5), end_s + 5), known=known)
    later = after((again, told("step 99", end_s + 900), end_s + 900), known=first)

    assert later.lost == first.lost


def test_who_goes_on_before_where_that_run_began_lost_all_of_it() -> None:
    end_s = BEGAN_S + 1061
    known = requeued(works(50, 150), end_s)

    known = after((run(1, end_s), told("step 20", end_s + 5), end_s + 5), known=known)

    assert lost_of(known).since_s == BEGAN_S


def test_before_the_first_step_that_was_seen_a_run_went_at_the_same_pace() -> None:
    """It began at step 0 and was seen at 45 for the first time; the next one goes on at 30."""
    known = after(
        (run(0), told("step 45", BEGAN_S + 45), BEGAN_S + 45),
        (run(0), told("step 145", BEGAN_S + 145), BEGAN_S + 145),
    )
    end_s = BEGAN_S + 150
    known = requeued(known, end_s)

    known = after((run(1, end_s), told("step 30", end_s + 5), end_s + 5), known=known)

    assert lost_of(known).since_s == near(BEGAN_S + 30)


def test_who_goes_on_beyond_the_last_step_that_was_seen_lost_none() -> None:
    """A checkpoint may be newer than the last look, and a huge number is no reason to count."""
    end_s = BEGAN_S + 1061
    for text in ("step 101", "step 999999999999"):
        known = requeued(works(0, 100), end_s)
        known = after((run(1, end_s), told(text, end_s + 5), end_s + 5), known=known)

        assert lost_of(known).redone_s == 0.0
        assert lost_of(known).stood_s == 60.0


def test_what_was_told_by_the_run_before_is_not_the_step_of_the_next_one() -> None:
    end_s = BEGAN_S + 1061
    known = requeued(works(0, 100), end_s)

    known = after(
        (run(1, end_s + 100), told("step 100", BEGAN_S + 1001), end_s + 105),
        (run(1, end_s + 100), told("step 60", end_s + 110), end_s + 112),
        known=known,
    )

    assert lost_of(known).resumed_step == 60.0


def test_a_run_that_ends_before_it_has_told_anything_leaves_the_question_open() -> None:
    """As in a storm of Xids while a gang starts."""
    end_s = BEGAN_S + 1061
    known = requeued(works(0, 100), end_s)
    known = after((run(1, end_s + 60), Beat(), end_s + 62), known=known)
    known = requeued(known, end_s + 70, restarts=2)
    assert (lost_of(known).restarts, lost_of(known).step) == (2, 100.0)

    known = after((run(2, end_s + 100), told("step 60", end_s + 110), end_s + 110), known=known)

    assert lost_of(known).resumed_step == 60.0
    assert lost_of(known).redone_s == near(400.0)


def test_a_job_that_only_touches_its_file_has_what_it_stood_still() -> None:
    beat = Beat(BEGAN_S + 500)
    known = after((run(), beat, BEGAN_S + 502), (run(), beat, BEGAN_S + 899))
    known = requeued(known, BEGAN_S + 900)

    lost = lost_of(known)
    assert (lost.step, lost.stood_s, lost.since_s) == (None, 400.0, None)
    assert "it tells no step" in lost_work(lost)


def test_a_step_that_goes_back_within_a_run_is_not_counted_and_says_why() -> None:
    known = after(
        (run(), told("step 900", BEGAN_S + 10), BEGAN_S + 12),
        (run(), told("step 3", BEGAN_S + 20), BEGAN_S + 22),
        (run(), told("step 4", BEGAN_S + 30), BEGAN_S + 32),
    )
    known = requeued(known, BEGAN_S + 60)

    lost = lost_of(known)
    assert lost.step is None
    assert "went back from 900 to 3" in lost.problem
    assert lost.stood_s == 30.0  # that it was alive counts all the same


def test_steps_and_epochs_in_one_run_are_not_compared() -> None:
    known = after(
        (run(), told("step 900", BEGAN_S + 10), BEGAN_S + 12),
        (run(), told("epoch 3", BEGAN_S + 20), BEGAN_S + 22),
    )

    assert known.run
    assert known.run.told is None
    assert "epochs" in known.run.problem


def test_epochs_after_steps_say_where_it_went_on_but_not_what_was_lost() -> None:
    end_s = BEGAN_S + 1061
    known = requeued(works(0, 100), end_s)

    known = after((run(1, end_s), told("epoch 2", end_s + 5), end_s + 5), known=known)

    assert lost_of(known).since_s is None
    assert lost_of(known).redone_s == 0.0


def test_a_file_that_vanishes_keeps_what_was_known() -> None:
    known = after((run(), Beat(), BEGAN_S + 999), known=works(0, 20))

    assert known.run
    assert known.run.told
    assert known.run.told.number == 20.0


def test_a_file_from_the_future_is_no_younger_than_now() -> None:
    known = after((run(), told("step 3", NOW_S + 9_999), BEGAN_S + 50))

    assert known.run
    assert known.run.last
    assert known.run.last.at_s == known.run.beat_at_s == BEGAN_S + 50


def test_a_clock_that_is_put_makes_nobody_stand_still_for_an_hour() -> None:
    """Nobody looked at the end, as far as clocks tell: it counts as ended when it was seen last."""
    known = after((run(), told("step 3", BEGAN_S + 10), BEGAN_S + 12))
    waits = replace(run(1), state="PENDING", node_names=())

    ahead = lost_of(seen(known, waits, Beat(), BEGAN_S + 15 + 3600))
    behind = lost_of(seen(known, waits, Beat(), BEGAN_S + 15 - 3600))

    assert ahead.stood_s == behind.stood_s == 2.0


def test_a_job_that_is_suspended_goes_on_with_the_same_run() -> None:
    known = works(0, 10)
    suspended = replace(run(), state="SUSPENDED")

    known = after((suspended, Beat(), BEGAN_S + 500), known=known)

    assert known.lost is None
    assert known.run
    assert known.run.told


@given(
    ends=st.lists(st.integers(0, 2_000), min_size=1, max_size=5),
    gaps=st.lists(st.floats(-400, 4_000), min_size=1, max_size=12),
    numbers=st.lists(st.integers(-3, 10**13), min_size=1, max_size=12),
)
def test_whatever_comes_nothing_is_lost_twice_or_before_it_began(
    ends: list[int], gaps: list[float], numbers: list[int]
) -> None:
    known, now_s = Work(), BEGAN_S
    for restarts, wait_s in enumerate(ends):
        now_s += wait_s
        of = run(restarts, now_s)
        for gap_s, number in zip(gaps, numbers, strict=False):
            now_s += gap_s
            known = seen(known, of, told(f"step {number}", now_s - number % 7), now_s)
            lost = known.lost
            if lost is None:
                continue
            assert lost.stood_s >= 0.0
            assert lost.redone_s >= 0.0
            assert lost.stood_since_s <= lost.until_s
            assert lost_work(lost)


def test_a_run_that_was_just_requeued_and_is_shown_to_run_still_is_not_the_next_one() -> None:
    """As real Slurm has it for a moment: one restart more, and the old start."""
    end_s = BEGAN_S + 1061
    known = requeued(works(0, 100), end_s)

    ghost = (run(1, BEGAN_S), told("step 100", BEGAN_S + 1001), end_s + 0.1)
    known = after(ghost, known=known)
    assert lost_of(known).resumed_step is None

    known = after((run(1, end_s + 60), told("step 60", end_s + 65), end_s + 65), known=known)
    assert lost_of(known).resumed_step == 60.0
