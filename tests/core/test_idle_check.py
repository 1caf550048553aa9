"""The site's check of idle nodes: who is checked when, what its end says, and what it may cost."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import orders
from tests.core.test_drift import learns
from tests.make import NOW_S, cluster, instance, job, node, offering, pool, record, snapshot
from tidegate.core.fleet.idle_check import LATE_S, used_today
from tidegate.core.fleet.idle_pairs import MISSED_MAX
from tidegate.core.model.ec2 import Market
from tidegate.core.model.finding import StoppedCheck
from tidegate.core.model.idle_check import (
    DAY_S,
    FOUND,
    AskedCheck,
    CheckedNode,
    IdleCheck,
    IdleChecks,
    SickNode,
    day_of,
    idle_check_name,
    is_idle_check_name,
)
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Learn, Plan
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.site_check import REFUSED, CheckJob
from tidegate.core.model.slurm import Job, Node, SetBy
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

CHECK = IdleCheck("ci", ("t4",), gpu_hours_per_day=1.0)
WEEK_S = CHECK.every_s
ON_DEMAND = offering(market=Market.ON_DEMAND)
NAME = idle_check_name("t4", "i-1", NOW_S - 9 * DAY_S, 1)
ASKED = AskedCheck("i-1", NAME, 1, NOW_S - 300, NOW_S - 30, NOW_S - 240)
RUNS = IdleChecks(number=1, asked=ASKED)


def world(
    ages_s: Sequence[float] = (9 * DAY_S,),
    state: IdleChecks | None = None,
    *,
    check: IdleCheck | None = CHECK,
    least: int | None = None,
    jobs: Sequence[Job] = (),
    nodes: Sequence[Node] | None = None,
    told: Sequence[CheckJob] = (),
    history: PoolHistory | None = None,
) -> Snapshot:
    """A pool that keeps its nodes: i-1, i-2 and so on, launched so long ago, all idle."""
    names = [f"i-{number}" for number in range(1, len(ages_s) + 1)]
    keeps = replace(pool(), min_nodes=len(names) if least is None else least)
    made = snapshot(
        jobs,
        [node(each, idle_s=3600.0) for each in names] if nodes is None else nodes,
        of=replace(cluster(keeps), idle_check=check),
        instances=[instance(n, ON_DEMAND, age_s=a) for n, a in zip(names, ages_s, strict=True)],
        records=[record(n, ON_DEMAND, age_s=a) for n, a in zip(names, ages_s, strict=True)],
    )
    reading = replace(made.heard.reading, checks=tuple(told))
    past = replace(history or PoolHistory("t4"), idle_checks=state)
    return replace(made, digest=replace(made.heard, reading=reading), pool_history=(past,))


def checked(made: Plan) -> list[str]:
    """Nodes on which a check is ordered."""
    return [name for each in orders(made, OrderKind.CHECK) for name in each.names]


def after(of: Snapshot) -> IdleChecks:
    found = learns(plan(of))[-1].idle_checks
    assert found is not None
    return found


def said(made: Plan) -> list[tuple[str, str]]:
    return [(each.code, each.reason) for each in made.actions if isinstance(each, Learn)]


def ended(state: str, **more: object) -> CheckJob:
    return replace(CheckJob(NAME, state, "77", "ci", 0), **more)  # type: ignore[arg-type]


def test_an_idle_node_whose_check_is_due_is_checked_by_a_named_job():
    made = plan(world())

    (order,) = orders(made, OrderKind.CHECK)
    assert (order.names, order.text) == (("i-1",), NAME)
    assert is_idle_check_name(NAME)
    assert said(made) == [
        (
            "idle-check-asked",
            "pool t4: i-1 is idle and its check is due (it was never checked); with it at most "
            "0.25 of 1 GPU-hours of today are used",
        )
    ]
    assert after(world()).asked == AskedCheck("i-1", NAME, 1, NOW_S, NOW_S)


def test_without_a_check_or_for_other_pools_nothing_is_done_or_remembered():
    for check in (None, replace(CHECK, pools=("a10g",))):
        assert plan(world(check=check)).actions == ()


def test_a_check_that_left_the_cluster_file_is_forgotten():
    assert [each.idle_checks for each in learns(plan(world(state=RUNS, check=None)))] == [None]


def test_the_oldest_check_is_next_and_one_at_a_time():
    state = IdleChecks(nodes=(CheckedNode("i-2", NOW_S - 8 * DAY_S),))
    ages = [8.5 * DAY_S, 90 * DAY_S, 10 * DAY_S]

    assert checked(plan(world(ages, state))) == ["i-3"]
    assert checked(plan(world(ages, RUNS))) == []


def test_what_is_paid_for_comes_first():
    of = world([20 * DAY_S, 9 * DAY_S])
    on = offering(market=Market.CAPACITY_BLOCK)
    t4 = replace(of.cluster.pools[0], markets=(Market.CAPACITY_BLOCK, Market.ON_DEMAND))
    block = replace(of.nodes[1], offering=on)
    shown = replace(of.instances[1], offering=on)
    of = replace(
        of,
        cluster=replace(of.cluster, pools=(t4,)),
        nodes=(of.nodes[0], block),
        instances=(of.instances[0], shown),
    )

    assert checked(plan(of)) == ["i-2"]


def test_nobody_is_checked_before_its_time():
    state = IdleChecks(nodes=(CheckedNode("i-1", NOW_S - WEEK_S + 60),))
    assert checked(plan(world(state=state))) == []
    assert checked(plan(world([WEEK_S - 60]))) == []


BUSY = {
    "busy": [node("i-1", state="ALLOCATED", gpus_alloc=1)],
    "just idle": [node("i-1", idle_s=60.0)],
    "drained": [node("i-1", state="IDLE+DRAIN", reason="by ada", set_by=SetBy.USER, idle_s=3600)],
    "reserved": [node("i-1", state="IDLE+RESERVED", idle_s=3600.0)],
    "gone": [],
}


@pytest.mark.parametrize("how", BUSY)
def test_only_nodes_that_really_idle_are_checked(how):
    assert checked(plan(world(nodes=BUSY[how]))) == []


def test_a_node_that_a_job_could_use_now_is_left_to_it():
    assert checked(plan(world(jobs=[job(1)]))) == []
    # It waits for more than there is: what is there is kept for it.
    waits = [job(1, nodes=8)]
    assert checked(plan(world([9 * DAY_S, 9 * DAY_S], jobs=waits))) == []


def test_a_node_that_goes_soon_is_not_checked():
    assert checked(plan(world(least=0))) == []
    going = plan(world([9 * DAY_S, 9 * DAY_S], least=1))
    assert [each.names for each in orders(going, OrderKind.RELEASE)] != []
    left = {"i-1", "i-2"} - {n for e in orders(going, OrderKind.RELEASE) for n in e.names}
    assert set(checked(going)) <= left


def test_nodes_that_a_pool_keeps_free_stay_free():
    of = world([9 * DAY_S, 9 * DAY_S])
    keeps = replace(of.cluster.pools[0], headroom_nodes=2)
    assert checked(plan(replace(of, cluster=replace(of.cluster, pools=(keeps,))))) == []


def test_the_days_budget_holds_with_what_runs_and_begins_anew_at_midnight():
    used = IdleChecks(day=day_of(NOW_S), gpu_hours=0.8)
    assert checked(plan(world(state=used))) == []
    assert checked(plan(world(state=replace(used, gpu_hours=0.75)))) == ["i-1"]
    assert checked(plan(world(state=replace(used, day=used.day - 1)))) == ["i-1"]


def test_other_pools_checks_count_in_the_same_budget():
    of = world()
    other = PoolHistory("a10g", idle_checks=replace(RUNS, asked=replace(ASKED, gpus=4)))
    of = replace(of, pool_history=(*of.pool_history, other))

    assert used_today(of) == 1.0
    assert checked(plan(of)) == []


def test_while_it_runs_it_is_not_asked_again_and_its_begin_is_noted():
    waits = replace(RUNS, asked=replace(ASKED, begun_at_s=None))
    assert checked(plan(world(state=waits, told=[ended("PENDING", exit_code=None)]))) == []
    begun = after(world(state=waits, told=[ended("RUNNING", exit_code=None)]))
    assert begun.asked == replace(ASKED, begun_at_s=NOW_S)


def test_a_node_that_passes_is_not_checked_for_a_week_and_the_hours_are_counted():
    passed = plan(world(state=RUNS, told=[ended("COMPLETED")]))

    state = after(world(state=RUNS, told=[ended("COMPLETED")]))
    assert state.nodes == (CheckedNode("i-1", NOW_S),)
    assert (state.asked, state.day, state.gpu_hours) == (None, day_of(NOW_S), 0.0667)
    assert checked(passed) == []
    assert said(passed) == [
        (
            "idle-check-passed",
            "pool t4: i-1 has passed the idle check; 0.07 GPU-hours of today's budget are used in "
            "the pool",
        )
    ]


def test_it_is_drained_again_until_slurm_shows_it_and_no_other_is_checked_meanwhile():
    sick = SickNode("i-1", f"{FOUND}: job 77 ended with exit code 3", NOW_S - 300, NOW_S - 90)
    state = IdleChecks(number=1, sick=sick)

    made = plan(world([9 * DAY_S, 9 * DAY_S], state))

    assert [each.names for each in orders(made, OrderKind.DRAIN)] == [("i-1",)]
    assert checked(made) == []
    drained = node("i-1", state="IDLE+DRAIN", reason=sick.said, set_by=SetBy.US)
    shown = world([9 * DAY_S, 9 * DAY_S], state, nodes=[drained, node("i-2", idle_s=3600.0)])
    assert orders(plan(shown), OrderKind.DRAIN) == []
    assert after(shown).sick is None
    assert after(world(state=state, nodes=[])).sick is None, "it is gone"


def test_what_it_found_is_replaced_like_what_other_software_finds():
    said_ = f"{FOUND}: job 77 ended with exit code 3"
    drained = node("i-1", state="IDLE+DRAIN", reason=said_, set_by=SetBy.US)

    made = plan(world(state=IdleChecks(number=1), nodes=[drained]))

    (order,) = orders(made, OrderKind.RELEASE)
    assert "found unhealthy" in order.text
    (finding,) = learns(made)[0].findings
    assert (finding.instance_id, finding.check) == ("i-1", FOUND)


def test_a_check_that_fails_everywhere_is_believed_of_two_nodes_and_then_stops():
    of = world([9 * DAY_S] * 4)
    history, drained = PoolHistory("t4"), list[str]()
    for number in range(1, 5):
        nodes = [
            node(f"i-{n}", idle_s=3600.0)
            if f"i-{n}" not in drained
            else node(
                f"i-{n}",
                state="IDLE+DRAIN",
                reason=f"{FOUND}: job {n} ended with exit code 1",
                set_by=SetBy.US,
            )
            for n in range(1, 5)
        ]
        of = world([9 * DAY_S] * 4, history.idle_checks, nodes=nodes, history=history)
        history = ([history, *learns(plan(of))])[-1]
        if history.idle_checks and history.idle_checks.asked:
            drained.append(history.idle_checks.asked.node)
            history = replace(history, idle_checks=IdleChecks(number=number))

    assert len(drained) == 3
    assert [each.check for each in history.stopped_checks] == [FOUND]
    assert checked(plan(replace(of, pool_history=(history,)))) == []


def test_a_stopped_check_asks_for_none_until_a_persons_word():
    stop = StoppedCheck(FOUND, NOW_S - 60, 2, 4)
    stopped = PoolHistory("t4", stopped_checks=(stop,))
    assert checked(plan(world(history=stopped))) == []
    lifted = replace(stopped, stopped_checks=(replace(stop, is_lifted=True),))
    assert checked(plan(world(history=lifted))) == ["i-1"]


MISSES = {
    "refused": ended(REFUSED, said="Invalid account", user="", exit_code=None),
    "cancelled": ended("CANCELLED"),
    "no program": ended("FAILED", exit_code=127),
    "could not test": ended("FAILED", exit_code=75),
}


@pytest.mark.parametrize("how", MISSES)
def test_one_that_does_not_run_drains_nobody_and_after_two_a_person_is_told(how):
    of = world(state=RUNS, told=[MISSES[how]])
    first = after(of)
    assert orders(plan(of), OrderKind.DRAIN) == []
    assert (first.missed, first.asked, first.rests_until_s) == (1, None, NOW_S + CHECK.wait_s)

    again = after(world(state=replace(RUNS, missed=1), told=[MISSES[how]]))

    assert (again.missed, again.rests_until_s) == (MISSED_MAX, NOW_S + DAY_S)
    assert checked(plan(world(state=again))) == []


@pytest.mark.parametrize("state", ["DEADLINE", "NODE_FAIL", "PREEMPTED"])
def test_a_job_that_was_before_it_is_nobodys_fault(state):
    found = after(world(state=RUNS, told=[ended(state)]))
    assert (found.missed, found.asked, found.rests_until_s) == (0, None, NOW_S + CHECK.wait_s)


@pytest.mark.parametrize("state", ["NODE_FAIL", "FAILED"])
def test_what_ran_counts_in_the_budget_though_it_tested_nothing(state):
    assert after(world(state=RUNS, told=[ended(state, exit_code=75)])).gpu_hours == 0.0667
    assert waited().gpu_hours == 0.0


@pytest.mark.parametrize(
    ("state", "exit_code", "gpu_hours"),
    [
        ("FAILED", 75, 0.0833),
        ("FAILED", 127, 0.0833),
        ("NODE_FAIL", 0, 0.0833),
        ("PREEMPTED", 0, 0.0833),
        ("BOOT_FAIL", 0, 0.0),
        ("CANCELLED", 0, 0.0),
    ],
)
def test_what_ran_between_two_looks_counts_from_when_it_was_asked_for(state, exit_code, gpu_hours):
    """A program that is missing ends its job before any digest shows that it runs."""
    unseen = replace(RUNS, asked=replace(ASKED, begun_at_s=None))
    found = after(world(state=unseen, told=[ended(state, exit_code=exit_code)]))
    assert (found.asked, found.gpu_hours) == (None, gpu_hours)


def waited(*, busy_s_ago: float | None = None, flag: str = "IDLE") -> IdleChecks:
    """After a check of i-1, asked for five minutes ago, that had not begun by its deadline."""
    waits = replace(RUNS, asked=replace(ASKED, begun_at_s=None))
    idle_s = 3600.0 if busy_s_ago is None else busy_s_ago
    shown = node("i-1", state=f"{flag}+DYNAMIC_NORM", idle_s=idle_s)
    return after(world(state=waits, nodes=[shown], told=[ended("DEADLINE", exit_code=None)]))


def test_one_that_nothing_was_before_and_that_never_began_is_told():
    """A limit of its account, or its script's own #SBATCH lines: Slurm lets such a job pend."""
    found = waited()

    assert (found.missed, found.asked) == (1, None)
    assert found.said == (
        "job 77 had not begun by its deadline, though nothing ran on i-1: a limit of its account "
        "or QOS, or an #SBATCH line of its script, keeps it"
    )


def test_one_behind_other_jobs_has_another_time():
    flags = [waited(flag=each) for each in ("IDLE+PLANNED", "ALLOCATED", "IDLE+DRAIN")]
    for found in (waited(busy_s_ago=200.0), *flags):
        assert (found.missed, found.asked, found.rests_until_s) == (0, None, NOW_S + CHECK.wait_s)


def test_a_lost_order_is_sent_again_for_the_same_job_and_given_up_in_the_end():
    lost = replace(RUNS, asked=replace(ASKED, sent_at_s=NOW_S - 61, begun_at_s=None))
    again = plan(world(state=lost))
    assert [each.text for each in orders(again, OrderKind.CHECK)] == [NAME]

    ago_s = CHECK.wait_s + CHECK.time_limit_s + LATE_S + 1
    silent = replace(RUNS, asked=replace(ASKED, asked_at_s=NOW_S - ago_s, begun_at_s=None))
    assert (after(world(state=silent)).asked, after(world(state=silent)).missed) == (None, 1)


def test_a_node_that_is_gone_or_a_job_of_somebody_else_says_nothing():
    assert after(world(state=RUNS, nodes=[])).asked is None
    assert after(world(state=RUNS, nodes=[])).missed == 0
    foreign = plan(world(state=RUNS, told=[ended("FAILED", exit_code=1, user="eve")]))
    assert orders(foreign, OrderKind.DRAIN) == []


def test_a_node_on_which_one_is_asked_for_is_not_let_go_meanwhile():
    waits = replace(RUNS, asked=replace(ASKED, begun_at_s=None))
    of = world(state=waits, least=0, told=[ended("PENDING", exit_code=None)])
    assert orders(plan(of), OrderKind.RELEASE) == []


def test_the_same_in_any_order():
    of = world([9 * DAY_S] * 3)
    turned = replace(of, nodes=of.nodes[::-1], instances=of.instances[::-1])
    assert plan(turned) == plan(of)
