"""The site's own check decides whether a template is good; until it has passed two have it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import orders
from tests.core.test_drift import NEW, going, learns, made_from
from tests.core.test_rollout import WELL, booting, bought, on_way, told, waiting, world
from tests.make import NOW_S, node
from tidegate.core.explain.node_report import node_reports
from tidegate.core.explain.overview import overview
from tidegate.core.explain.rollouts import rollouts
from tidegate.core.fleet.site_check import LATE_S, job_name
from tidegate.core.model.ec2 import Market
from tidegate.core.model.ended import EndedJob
from tidegate.core.model.ledger import Cordon
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.rollout import BY_CHECK, WATCHED_S, Rollout, RolloutCode, Step, Tally
from tidegate.core.model.site_check import (
    REFUSED,
    Checked,
    CheckJob,
    SiteCheck,
    check_name,
    is_check_name,
)
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

ONE = SiteCheck("ci", nodes=1)
TWO = SiteCheck("ci", nodes=2)
WATCHED = replace(WELL, step_since_s=NOW_S - WATCHED_S - 1, jobs=Tally(5, 0))
BOTH = replace(WATCHED, tried=("i-2", "i-3"))
ASKED = Checked(1, 0, NOW_S - 120, ("i-2",), NOW_S - 60, NOW_S - 30)
RUNS = replace(WATCHED, checked=ASKED)
NEWS = made_from({"i-2": NEW})


def checking(of: Snapshot, check: SiteCheck = ONE, jobs: Sequence[CheckJob] = ()) -> Snapshot:
    assert of.digest is not None
    reading = replace(of.digest.reading, checks=tuple(jobs))
    return replace(
        of,
        cluster=replace(of.cluster, check=check),
        digest=replace(of.digest, reading=reading),
    )


def up(rollout: Rollout, *names: str, jobs: Sequence[Job] = ()) -> Snapshot:
    """Idle nodes of the new template."""
    records = made_from(dict.fromkeys(names, NEW))
    return world(rollout, records, [node(name) for name in names], jobs)


def ended(state: str, before: Rollout = RUNS, **more: object) -> CheckJob:
    made = CheckJob(job_name(before, "t4"), state, "77", "ci", 0)
    return replace(made, **more)  # type: ignore[arg-type]


def after(of: Snapshot) -> Rollout:
    (found,) = learns(plan(of))
    assert found.rollout is not None
    return found.rollout


def test_a_template_is_not_good_before_its_check_has_passed():
    without = up(WATCHED, "i-2")
    assert after(without).step is Step.TENTH

    made = plan(checking(without))

    (order,) = orders(made, OrderKind.CHECK)
    assert order.names == ("i-2",)
    assert order.text == f"tidegate:check:t4:new-2:{WELL.since_s:.0f}-1"
    assert after(checking(without)).step is Step.CANARY
    assert told(made) == [
        (
            RolloutCode.CHECKING,
            "pool t4: the site's check of template new-2 is asked for on i-2: job " + order.text,
        )
    ]


def test_it_goes_on_once_the_check_has_passed():
    of = checking(up(RUNS, "i-2"), jobs=[ended("COMPLETED")])

    assert (after(of).step, after(of).checked.is_passed) == (Step.TENTH, True)
    early = replace(RUNS, step_since_s=NOW_S - 60, jobs=Tally())
    passed = plan(checking(up(early, "i-2"), jobs=[ended("COMPLETED")]))
    assert told(passed) == [
        (RolloutCode.CHECKED, "pool t4: template new-2 has passed the site's check")
    ]


BAD = {
    "fails": (ended("FAILED", exit_code=9), "ended with exit code 9"),
    "hangs": (ended("TIMEOUT"), "ran into its time limit of 10 min"),
    "eats": (ended("OUT_OF_MEMORY", exit_code=1), "ran out of memory"),
}


@pytest.mark.parametrize("how", BAD)
def test_a_template_whose_check_fails_is_given_up_and_its_nodes_go(how):
    job, says = BAD[how]
    made = plan(checking(up(RUNS, "i-2", jobs=waiting(3)), jobs=[job]))

    assert told(made)[0] == (
        RolloutCode.BAD_CHECK,
        "pool t4: template new-2 is given up: the site's check, job 77 on i-2, "
        f"{says}; nodes come from old-1",
    )
    assert going(made) == ["i-2"]
    assert bought(made) == {"old-1": 3}


def test_of_several_jobs_of_its_script_each_has_to_pass():
    jobs = [ended("COMPLETED"), ended("RUNNING", job_id="78")]
    assert learns(plan(checking(up(RUNS, "i-2"), jobs=jobs))) == []
    jobs[1] = ended("FAILED", job_id="78", exit_code=1)
    assert after(checking(up(RUNS, "i-2"), jobs=jobs)).given_up is RolloutCode.BAD_CHECK


def test_a_job_of_somebody_else_with_its_name_says_nothing():
    for state in ("COMPLETED", "FAILED"):
        of = checking(up(RUNS, "i-2"), jobs=[ended(state, user="eve")])
        assert learns(plan(of)) == []
        assert orders(plan(of), OrderKind.CHECK) == []


def test_while_it_waits_or_runs_nothing_is_asked_again_and_time_alone_ends_nothing():
    for state in ("PENDING", "RUNNING", "COMPLETING"):
        of = checking(up(RUNS, "i-2"), jobs=[ended(state)])
        assert learns(plan(of)) == []
        assert orders(plan(of), OrderKind.CHECK) == []


def test_an_order_that_may_be_lost_is_sent_again_for_the_same_job():
    ttl_s = 60.0
    lost = replace(RUNS, checked=replace(ASKED, sent_at_s=NOW_S - ttl_s - 1))

    made = plan(checking(up(lost, "i-2")))

    assert [each.text for each in orders(made, OrderKind.CHECK)] == [job_name(RUNS, "t4")]
    assert learns(plan(checking(up(RUNS, "i-2")))) == []


NOT_RUN = {
    REFUSED: ("it was not taken: Invalid account", ended(REFUSED, user="", said="Invalid account")),
    "DEADLINE": ("job 77 could not begin within 60 min", ended("DEADLINE")),
    "CANCELLED": ("job 77 ended as CANCELLED", ended("CANCELLED")),
    "NODE_FAIL": ("job 77 ended as NODE_FAIL", ended("NODE_FAIL")),
}


@pytest.mark.parametrize("how", NOT_RUN)
def test_a_check_that_did_not_run_is_asked_for_once_more_and_then_a_person_is(how):
    says, job = NOT_RUN[how]

    once = after(checking(up(RUNS, "i-2"), jobs=[job]))
    assert (once.given_up, once.is_paused) == (None, False)
    again = plan(checking(up(once, "i-2"), jobs=[job]))
    assert orders(again, OrderKind.CHECK)[0].text.endswith("-2")

    second = replace(RUNS, checked=replace(ASKED, number=2, missed=1))
    twice = checking(up(second, "i-2"), jobs=[replace(job, name=job_name(second, "t4"))])
    made = plan(twice)
    assert told(made) == [
        (
            RolloutCode.UNCHECKED,
            f"pool t4: template new-2 is not taken for good: the site's check did not run: {says}; "
            "go on: tidegate rollout resume t4, or back: tidegate rollout abort t4",
        )
    ]
    assert (after(twice).is_paused, after(twice).by, after(twice).step) == (
        True,
        BY_CHECK,
        Step.CANARY,
    )
    assert orders(made, OrderKind.CHECK) == []


def test_of_which_nothing_is_heard_did_not_run():
    long_s = ONE.wait_s + ONE.time_limit_s + LATE_S + 1
    silent = replace(RUNS, checked=replace(ASKED, asked_at_s=NOW_S - long_s, missed=1))

    assert told(plan(checking(up(silent, "i-2"))))[0][0] == RolloutCode.UNCHECKED


def test_a_person_who_resumes_has_it_asked_for_anew_under_another_name():
    paused = replace(RUNS, is_paused=True, by=BY_CHECK, checked=Checked(number=2))
    word = replace(paused, asked=RolloutCode.RESUMED, by="user/ada")

    (order,) = orders(plan(checking(up(word, "i-2"))), OrderKind.CHECK)
    assert order.text.endswith("-3")
    assert orders(plan(checking(up(paused, "i-2"))), OrderKind.CHECK) == []


def test_a_check_of_two_nodes_has_a_second_one_bought_that_nobody_waits_for():
    made = plan(checking(up(WATCHED, "i-2"), TWO))

    assert bought(made) == {"new-2": 1}
    assert orders(made, OrderKind.CHECK) == []
    one_boots = checking(world(WATCHED, [*NEWS, *booting("i-3")], [node("i-2")]), TWO)
    assert bought(plan(one_boots)) == {}


def test_a_pool_of_prepaid_capacity_alone_buys_none_for_it():
    of = checking(up(WATCHED, "i-2"), TWO)
    (pool,) = of.cluster.pools
    prepaid = replace(pool, markets=(Market.RESERVED,))

    assert bought(plan(replace(of, cluster=replace(of.cluster, pools=(prepaid,))))) == {}


def test_both_nodes_are_told_in_one_order_when_they_are_there():
    (order,) = orders(plan(checking(up(BOTH, "i-3", "i-2"), TWO)), OrderKind.CHECK)

    assert order.names == ("i-2", "i-3")


def test_a_node_that_is_no_good_or_takes_no_job_is_none_for_it():
    one_bad = replace(BOTH, bad=("i-3",), said="i-3: ecc")
    assert orders(plan(checking(up(one_bad, "i-2", "i-3"), TWO)), OrderKind.CHECK) == []

    closed = node("i-3", state="IDLE+DRAIN+DYNAMIC_NORM", reason="I look into it")
    of = world(BOTH, made_from({"i-2": NEW, "i-3": NEW}), [node("i-2"), closed])
    assert orders(plan(checking(of, TWO)), OrderKind.CHECK) == []


def test_a_node_that_is_about_to_leave_is_none_for_it():
    retired = Cordon("AWS Health: AWS_EC2_RETIREMENT", NOW_S, NOW_S + 7200)
    for cordons in ({}, {"i-3": retired}):
        records = made_from({"i-2": NEW, "i-3": NEW})
        records = [replace(each, cordon=cordons.get(each.instance_id)) for each in records]
        of = checking(world(BOTH, records, [node("i-2"), node("i-3")]), TWO)

        asked = [each.names for each in orders(plan(of), OrderKind.CHECK)]

        assert asked == ([] if cordons else [("i-2", "i-3")])


def test_where_a_node_left_before_it_ran_it_is_asked_for_again_at_once():
    """On a node that Slurm does not know the head submits no job."""
    left = replace(BOTH, checked=replace(ASKED, nodes=("i-2", "i-3")))

    found = after(checking(up(left, "i-2"), TWO))

    assert (found.checked.missed, found.checked.asked_at_s) == (1, None)
    assert found.said == ("the site's check did not run: i-3, which it needs, left before it ran")
    assert orders(plan(checking(up(found, "i-2", "i-3"), TWO)), OrderKind.CHECK)[0].names == (
        "i-2",
        "i-3",
    )


def test_where_there_never_are_nodes_enough_a_person_is_asked():
    long = replace(WATCHED, checked=Checked(since_s=NOW_S - TWO.wait_s - 1), tried=("i-2", "i-9"))

    made = plan(checking(up(long, "i-2"), TWO))

    assert told(made)[0] == (
        RolloutCode.UNCHECKED,
        "pool t4: template new-2 is not taken for good: the site's check did not run: in 60 min "
        "there were never 2 nodes for it at one time; go on: tidegate rollout resume t4, or back: "
        "tidegate rollout abort t4",
    )


def idling(rollout: Rollout, check: SiteCheck | None) -> Snapshot:
    idle = replace(node("i-2"), last_busy_at_s=NOW_S - 60)
    of = world(rollout, made_from({"i-2": NEW}), [idle])
    (pool,) = of.cluster.pools
    of = replace(of, cluster=replace(of.cluster, pools=(replace(pool, idle_s=10.0),)))
    return checking(of, check) if check else of


def test_an_idle_first_node_stays_until_its_check_is_over():
    assert going(plan(idling(WATCHED, None))) == ["i-2"]
    assert going(plan(idling(WATCHED, TWO))) == []
    assert going(plan(idling(replace(WATCHED, is_paused=True, by=BY_CHECK), TWO))) == ["i-2"]
    (report,) = node_reports(idling(WATCHED, TWO))
    assert report.held == "the site's check of its template is to run there"


def test_only_the_pools_that_it_names_have_it():
    other = replace(ONE, pools=("a100",))

    assert after(checking(up(WATCHED, "i-2"), other)).step is Step.TENTH


def test_the_jobs_of_a_check_say_nothing_as_jobs():
    of = checking(up(RUNS, "i-2"), jobs=[ended("RUNNING"), ended("COMPLETED")])
    assert of.digest is not None
    job = EndedJob("77", ("i-2",), NOW_S - 10, is_failed=False)
    reading = replace(of.digest.reading, ended=(job,))

    assert learns(plan(replace(of, digest=replace(of.digest, reading=reading)))) == []


def test_people_are_told_what_it_waits_for():
    (asked,) = rollouts(checking(up(RUNS, "i-2"), jobs=[ended("RUNNING")]))
    assert asked.sentence == (
        "its first nodes: the site's check was asked for on i-2 60 s ago and has not passed"
    )
    (lacks,) = rollouts(checking(up(WATCHED, "i-2"), TWO))
    assert lacks.sentence == (
        "its first nodes: the site's check needs 2 nodes made from it at one time, there is 1"
    )
    paused = replace(WATCHED, is_paused=True, by=BY_CHECK, said="the site's check did not run: x")
    (said,) = rollouts(checking(up(paused, "i-2")))
    assert said.sentence.startswith("paused by the site's check: the site's check did not run: x;")
    troubles = overview(checking(up(paused, "i-2")), None).needs_a_look
    assert any("is paused: the site's check did not run: x; nodes come" in t for t in troubles)


def test_a_name_is_one_word_that_slurm_and_a_shell_take_as_it_is():
    assert is_check_name(check_name("a_100-x", "7be21c-12", 1_800_000_000.4, 3))
    good = "tidegate:check:t4:x:1-1"
    assert is_check_name(good)
    for bad in (f"{good};rm", f"{good}\n", good.replace("t4", "T4"), good.replace("x", "")):
        assert not is_check_name(bad)


def test_where_nothing_is_rolled_out_nothing_is_checked():
    of = replace(checking(up(WATCHED, "i-2")), pool_history=(replace(on_way(), good=NEW),))

    assert orders(plan(of), OrderKind.CHECK) == []
