"""What people are told unasked, and by what one cause is told from another."""

from dataclasses import replace

import pytest

from tests.core import test_block_ends as blocks
from tests.core import test_spend as budgets
from tests.core.test_doubted_checks import all_sick, remembering
from tests.core.test_drift import NEW
from tests.core.test_holds import fleet as holding
from tests.core.test_holds import held
from tests.core.test_idle_gpus import idle
from tests.core.test_idle_gpus_explained import seen as with_idle
from tests.core.test_rollout import FIRST, world
from tests.make import NOW_S, job, snapshot
from tidegate.core.explain.notices import IDLE_MAX, WAITS_MAX, notices
from tidegate.core.model.calendar import Wanted
from tidegate.core.model.gpu_use import GpuUse
from tidegate.core.model.notice import (
    TOLD_KEPT_S,
    Mail,
    MailEnd,
    Notice,
    NoticeCode,
    Told,
    key_of,
    still_told,
)
from tidegate.core.model.rollout import RolloutCode
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.spend import day_of
from tidegate.core.planner import plan
from tidegate.wire.records import TOLD, encode

HOUR_S = 3600.0
WAIT_S = 2 * HOUR_S


def told(of: Snapshot, wait_s: float = WAIT_S) -> tuple[Notice, ...]:
    return notices(of, plan(of), wait_s=wait_s)


def waiting(since_s: float | None, **more: object) -> Job:
    """A job for which no pool has a node."""
    begins_at_s = None if since_s is None else NOW_S - since_s
    asked: dict[str, object] = {"gpus": 64, "begins_at_s": begins_at_s} | more
    return job(7, **asked)  # type: ignore[arg-type]


def test_a_job_that_waits_for_long_is_told_of_with_its_reason() -> None:
    (notice,) = told(snapshot([waiting(WAIT_S)]))

    assert (notice.code, notice.cause) == (NoticeCode.JOB_WAITS, "7")
    assert notice.sentence.startswith("job 7 of ada has waited for 2.0 h: ")
    assert "the job asks 64" in notice.sentence
    assert notice.sentence.endswith("; tidegate why 7 says what would help")


@pytest.mark.parametrize(
    "one",
    [
        waiting(WAIT_S - 1),
        waiting(None),
        waiting(-HOUR_S),
        waiting(WAIT_S, reason="JobHeldUser"),
        waiting(WAIT_S, reason="Dependency"),
        waiting(WAIT_S, gpus=1),  # what it needs is bought
    ],
)
def test_one_that_has_not_or_that_somebody_wants_to_wait_is_not(one: Job) -> None:
    assert told(snapshot([one])) == ()


def test_what_waits_for_the_morning_is_not_told_of() -> None:
    night = Wanted(False, "stopped until 07:00", since_s=NOW_S - HOUR_S)

    assert told(snapshot([waiting(WAIT_S, gpus=1)], wanted=night)) == ()


def test_of_very_many_those_that_wait_longest_are_told_of() -> None:
    jobs = [
        replace(waiting(WAIT_S + number), job_id=str(number)) for number in range(WAITS_MAX + 5)
    ]

    found = told(snapshot(jobs))

    assert len(found) == WAITS_MAX
    assert found[0].cause == str(WAITS_MAX + 4)
    assert "0" not in {each.cause for each in found}


@pytest.mark.parametrize(
    ("usd", "codes"),
    [
        (79.9, []),
        (80.0, [NoticeCode.BUDGET_NEARLY_SPENT]),
        (99.9, [NoticeCode.BUDGET_NEARLY_SPENT]),
        (100.0, [NoticeCode.BUDGET_SPENT]),
    ],
)
def test_a_budget_is_told_of_at_80_and_at_100_percent(usd: float, codes: list[NoticeCode]) -> None:
    of = budgets.with_budget("cluster", usd_per_day=100)

    found = told(budgets.seen(of, usd=usd, scope="cluster"))

    assert [each.code for each in found] == codes
    assert all("the cluster" in each.sentence for each in found)


def test_each_budget_of_a_scope_and_each_day_is_a_cause_of_its_own() -> None:
    of = budgets.with_budget("cluster", usd_per_day=100, usd_per_month=100)
    today = budgets.seen(of, usd=100, scope="cluster")
    tomorrow = replace(
        today,
        now_s=NOW_S + budgets.DAY_S,
        spent=tuple(
            replace(each, period=day_of(NOW_S + budgets.DAY_S).name)
            if each.period == budgets.TODAY
            else each
            for each in today.spent
        ),
    )

    first = {each.key for each in notices(today, plan(today), wait_s=WAIT_S)}
    second = {each.key for each in notices(tomorrow, plan(tomorrow), wait_s=WAIT_S)}

    assert len(first) == len(second) == 2
    assert len(first & second) == 1, "the month is told of once"


def test_a_check_that_is_believed_no_more_is_told_of_with_what_to_do() -> None:
    before = all_sick()

    (notice,) = told(remembering(before, plan(before)))

    assert notice.code is NoticeCode.CHECK_DOUBTED
    assert "may err and is believed no more" in notice.sentence
    assert "tidegate retry t4" in notice.sentence


def test_a_node_that_a_person_holds_is_told_of_with_its_cost_and_once_for_each_hold() -> None:
    (notice,) = told(holding(held()))
    (longer,) = told(holding(held(for_s=2 * HOUR_S)))

    assert notice.code is NoticeCode.NODE_HELD
    assert notice.sentence.startswith("node i-1 is held by user/ada: GPU 3")
    assert "and costs" in notice.sentence
    assert notice.key != longer.key
    assert told(holding(held(for_s=-1.0))) == ()


def test_a_roll_out_that_was_given_up_is_told_of_and_one_that_goes_on_is_not() -> None:
    going = world(FIRST)
    given_up = world(FIRST.giving_up(RolloutCode.BAD_NODES, "its first nodes did not join"))

    assert told(going) == ()
    (notice,) = told(given_up)
    assert notice.code is NoticeCode.ROLLOUT_STOPPED
    assert f"template {NEW.digest} is given up: its first nodes did not join" in notice.sentence


def test_a_block_that_ends_with_work_is_one_cause_whatever_runs_on_it() -> None:
    (first,) = told(blocks.seen(10, blocks.running(None)))
    (later,) = told(blocks.seen(9, job(8, on=["i-1"], started_at_s=NOW_S)))

    assert first.code is NoticeCode.BLOCK_ENDS
    assert first.key == later.key
    assert first.sentence != later.sentence


def test_gpus_that_idle_are_told_of_once_a_run() -> None:
    first, own = told(with_idle(idle()))
    again, _ = told(with_idle(idle(restarts=1)))

    assert first.code is NoticeCode.GPUS_IDLE
    assert first.sentence.startswith("job 9 of ada has had 1 GPU idle for 2.0 h")
    assert first.key != again.key
    assert (first.user, own.code, own.user) == ("", NoticeCode.OWN_GPUS_IDLE, "ada")


def test_however_many_idle_one_record_holds_what_was_told_and_the_longest_stay_in_it() -> None:
    """Ids of array tasks as long as they get."""
    longest = replace(idle(1), gpu_use=GpuUse(NOW_S - 10_000, ((60, NOW_S - 9_000),)))
    others = [
        replace(idle(), job_id=f"10000000_{1_000_000 + number}") for number in range(IDLE_MAX + 50)
    ]
    busy = with_idle(*others, longest)

    found = notices(busy, plan(snapshot()), wait_s=WAIT_S)

    own = [each.key for each in found if each.code is NoticeCode.OWN_GPUS_IDLE]
    waits = [key_of(NoticeCode.JOB_WAITS, f"10000000_{number}") for number in range(WAITS_MAX)]
    at_s = 1795781640.123456
    every = Told(
        dict.fromkeys([*waits, *(each.key for each in found)], at_s),
        dict.fromkeys(own, Mail(MailEnd.RECIPIENT_UNVERIFIED, at_s)),
    )
    assert (len(found), len(own)) == (2 * IDLE_MAX, IDLE_MAX)
    assert own[0] == "own-gpus-idle/1/0"
    assert len(encode(TOLD, every)) < 400_000


def test_jobs_that_have_started_are_forgotten_and_budgets_are_not() -> None:
    before = Told({"job-waits/7": 1.0, "budget-spent/cluster/month/9": 2.0, "gpus-idle/3/0": 3.0})

    after = still_told(before, frozenset({"gpus-idle/3/0"}), now_s=10.0)

    assert set(after.at_s) == {"budget-spent/cluster/month/9", "gpus-idle/3/0"}


def test_what_was_told_long_ago_is_forgotten_unless_it_is_still_so() -> None:
    before = Told({"block-ends/cr-1": 0.0, "rollout-stopped/t4/aa/1/failed": 0.0})

    after = still_told(before, frozenset({"block-ends/cr-1"}), now_s=TOLD_KEPT_S)

    assert set(after.at_s) == {"block-ends/cr-1"}
