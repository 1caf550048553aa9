"""Two idle nodes that are checked together: who is tried with whom, and who of them is sick."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from tests.core.reading import orders
from tests.core.test_idle_check import after as state_after
from tests.core.test_idle_check import checked, ended, said, world
from tests.make import NOW_S
from tidegate.core.explain.node_report import node_reports
from tidegate.core.explain.overview import overview
from tidegate.core.fleet.idle_pairs import (
    FAILED_MAX,
    OPEN_S,
    next_pair,
    with_failed,
    with_passed,
    with_verdict,
)
from tidegate.core.model.ec2 import Market
from tidegate.core.model.finding import StoppedCheck
from tidegate.core.model.idle_check import (
    DAY_S,
    FOUND,
    FOUND_PAIR,
    AskedCheck,
    CheckedNode,
    IdleCheck,
    IdleChecks,
    PairCheck,
    PairChecks,
    SickNode,
    TriedPair,
    day_of,
    idle_check_name,
    is_idle_check_name,
)
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

CHECK = IdleCheck("ci", ("t4",), gpu_hours_per_day=2.0, pair=PairCheck(time_limit_s=600.0))
FRESH = tuple(CheckedNode(f"i-{n}", NOW_S - 3600) for n in range(1, 6))
NAME = idle_check_name("t4", "i-1", NOW_S - 9 * DAY_S, 1, "i-2")
ASKED = AskedCheck("i-1", NAME, 2, NOW_S - 300, NOW_S - 30, NOW_S - 240, partner="i-2")
#: Each has been checked alone.
ALONE = IdleChecks(number=1, nodes=FRESH)
RUNS = replace(ALONE, asked=ASKED)
F12 = TriedPair("i-1", "i-2", NOW_S - 600, "job 77 ended with exit code 1")
P13 = TriedPair("i-1", "i-3", NOW_S - 300)
F23 = TriedPair("i-2", "i-3", NOW_S, "job 79 ended with exit code 1")


def of(state: IdleChecks = ALONE, count: int = 3, **more: object) -> Snapshot:
    there = {f"i-{n}" for n in range(1, count + 1)}
    known = replace(state, nodes=tuple(e for e in state.nodes if e.instance_id in there))
    return world([9 * DAY_S] * count, known, **{"check": CHECK, **more})  # type: ignore[arg-type]


def after(made: Snapshot) -> PairChecks:
    return state_after(made).pairs


def tried(*pairs: TriedPair) -> IdleChecks:
    return replace(ALONE, pairs=PairChecks(tried=pairs))


def test_two_idle_nodes_whose_check_is_due_are_checked_by_one_job():
    made = plan(of())

    (order,) = orders(made, OrderKind.CHECK)
    assert (order.names, order.text) == (
        ("i-1", "i-2"),
        idle_check_name("t4", "i-1", NOW_S - 9 * DAY_S, 2, "i-2"),
    )
    assert is_idle_check_name(order.text)
    assert said(made) == [
        (
            "idle-check-asked",
            "pool t4: i-1 is idle and its check with another node, i-2, is due (it was never "
            "checked); with it at most 0.33 of 2 GPU-hours of today are used",
        )
    ]


def test_without_a_pair_in_the_file_none_is_checked():
    assert checked(plan(of(check=replace(CHECK, pair=None)))) == []


def test_one_node_is_no_pair_and_neither_are_two_of_other_zones():
    assert checked(plan(of(count=1))) == []
    two = of(count=2)
    far = replace(two.nodes[1], offering=replace(two.nodes[1].offering, zone="us-east-1b"))
    seen = replace(two.instances[1], offering=far.offering)
    elsewhere = replace(two, nodes=(two.nodes[0], far), instances=(two.instances[0], seen))
    assert checked(plan(elsewhere)) == []


def test_a_node_that_is_due_takes_one_that_is_not_as_its_partner():
    passed = PairChecks(nodes=(CheckedNode("i-1", NOW_S - 60), CheckedNode("i-2", NOW_S - 90)))
    assert checked(plan(of(replace(ALONE, pairs=passed)))) == ["i-3", "i-2"]
    assert checked(plan(of(replace(ALONE, pairs=passed), count=2))) == []


def test_who_was_never_checked_alone_is_first():
    assert checked(plan(of(IdleChecks()))) == ["i-1"]


def test_the_budget_counts_the_gpus_of_both():
    used = replace(ALONE, day=day_of(NOW_S), gpu_hours=1.7)
    assert checked(plan(of(used))) == []
    assert checked(plan(of(replace(used, gpu_hours=1.66)))) == ["i-1", "i-2"]
    other = PoolHistory("a10g", idle_checks=RUNS)
    runs = of(replace(used, gpu_hours=1.5))
    assert checked(plan(replace(runs, pool_history=(*runs.pool_history, other)))) == []


def test_nodes_on_which_a_pair_is_asked_for_are_not_let_go():
    waits = replace(RUNS, asked=replace(ASKED, begun_at_s=None))
    made = plan(of(waits, least=0, told=[replace(ended("PENDING"), name=NAME, exit_code=None)]))
    assert [each.names for each in orders(made, OrderKind.RELEASE)] == [("i-3",)]


def test_a_pair_that_passes_is_not_checked_for_a_week_and_both_are_counted():
    made = of(RUNS, count=2, told=[replace(ended("COMPLETED"), name=NAME)])
    state = state_after(made)
    assert state.pairs.nodes == (CheckedNode("i-1", NOW_S), CheckedNode("i-2", NOW_S))
    assert (state.asked, state.gpu_hours, state.nodes) == (None, 0.1333, FRESH[:2])
    assert said(plan(made))[0][0] == "idle-check-passed"
    assert "i-1 and i-2 have passed the check of pairs" in said(plan(made))[0][1]


def test_a_pair_that_fails_drains_neither_and_says_so():
    made = of(RUNS, told=[replace(ended("FAILED"), name=NAME, exit_code=3)])
    assert orders(plan(made), OrderKind.DRAIN) == []
    assert after(made).tried == (replace(F12, at_s=NOW_S, said="job 77 ended with exit code 3"),)
    assert said(plan(made))[0] == (
        "idle-pair-failed",
        "pool t4: i-1 and i-2 failed the check of pairs: job 77 ended with exit code 3; which of "
        "them is sick is not known, and each is tried with others",
    )
    assert after(made).nodes == ()


def test_a_suspect_is_tried_with_a_third_before_anything_else_is_checked():
    assert checked(plan(of(tried(F12)))) == ["i-1", "i-3"]
    assert "has failed with another node and is tried with i-3" in said(plan(of(tried(F12))))[0][1]
    assert checked(plan(of(tried(F12, P13)))) == ["i-2", "i-3"]
    assert checked(plan(of(tried(F12), count=2))) == [], "no third is there"


def test_a_suspect_is_before_what_is_paid_for_in_advance_and_due():
    found = of(replace(tried(F12), nodes=FRESH[:3]), count=4)
    on = replace(found.nodes[3].offering, market=Market.CAPACITY_BLOCK)
    t4 = replace(found.cluster.pools[0], markets=(Market.CAPACITY_BLOCK, Market.ON_DEMAND))
    of_two = replace(
        found,
        cluster=replace(found.cluster, pools=(t4,)),
        nodes=(*found.nodes[:3], replace(found.nodes[3], offering=on)),
        instances=(*found.instances[:3], replace(found.instances[3], offering=on)),
    )
    assert checked(plan(of_two))[0] == "i-1"


def test_who_has_passed_meanwhile_stays_checked_beside_a_suspect():
    pairs = PairChecks(tried=(F12, P13), nodes=(CheckedNode("i-1", 0), CheckedNode("i-3", 0)))
    after_it = with_failed(pairs, ("i-2", "i-3"), "it failed", NOW_S)
    assert [each.instance_id for each in after_it.nodes] == ["i-1", "i-3"]
    assert with_failed(PairChecks(nodes=FRESH[:2]), ("i-1", "i-2"), "it failed", NOW_S).nodes == ()


def test_who_fails_with_two_good_nodes_is_drained_alone_and_in_the_checks_name():
    made = plan(of(tried(F12, P13, F23)))

    (order,) = orders(made, OrderKind.DRAIN)
    assert order.names == ("i-2",)
    assert order.text == (
        f"{FOUND_PAIR}: failed with i-1 and i-3, which pass with others; "
        "job 79 ended with exit code 1"
    )
    assert said(made)[0][0] == "idle-check-failed"
    left = state_after(of(tried(F12, P13, F23)))
    assert left.sick is not None
    assert left.pairs.tried == ()


def test_a_suspect_that_is_busy_is_tried_later():
    assert next_pair([F12], ["i-2", "i-3"]) == ("i-2", "i-3")
    assert next_pair([F12], ["i-3", "i-4"]) is None


def test_what_another_fails_with_good_nodes_condemns_no_suspect():
    first, last = replace(F23, first="i-4"), replace(F23, first="i-4", second="i-5")
    passed = replace(P13, first="i-3", second="i-5")
    made = with_verdict(
        tried(F12, first, passed, last), CHECK, [f"i-{n}" for n in range(1, 6)], NOW_S
    )
    assert made.sick is not None
    assert made.sick.instance_id == "i-4"


def test_both_of_a_pair_that_passes_are_good_while_a_question_is_open():
    pairs = with_passed(PairChecks(tried=(F12,)), ("i-2", "i-3"), NOW_S)
    assert pairs.tried == (F12, TriedPair("i-2", "i-3", NOW_S))


def test_two_nodes_that_only_fail_with_each_other_are_both_good():
    passed = replace(F23, said="")
    assert after(of(tried(F12, P13, passed))).tried == ()
    assert orders(plan(of(tried(F12, P13, passed))), OrderKind.DRAIN) == []


def play(fails: Callable[[str, str], bool], count: int) -> tuple[list[str], int, PairChecks]:
    """Who is drained, after how many tests, where this fails; nodes idle all the time."""
    names = [f"i-{n}" for n in range(1, count + 1)]
    pairs, drained = PairChecks(), list[str]()
    pair: tuple[str, str] | None = (names[0], names[1])
    for number in itertools.count(1):
        assert pair is not None
        assert number < 40
        failed = "it failed" if fails(*pair) else ""
        result = TriedPair(*pair, NOW_S, failed)
        state = IdleChecks(pairs=replace(pairs, tried=(*pairs.tried, result)))
        while True:
            state = with_verdict(state, CHECK, names, NOW_S)
            if state.sick is None:
                break
            drained.append(state.sick.instance_id)
            names.remove(drained[-1])
            state = replace(state, sick=None)
        pairs = state.pairs
        pair = next_pair(pairs.tried, names)
        if pair is None:
            return drained, number, pairs
    raise AssertionError


def sick(*names: str) -> Callable[[str, str], bool]:
    return lambda first, second: first in names or second in names


@pytest.mark.parametrize("count", [3, 4, 8])
@pytest.mark.parametrize("bad", ["i-1", "i-2"])
def test_one_sick_node_of_a_pair_is_found_with_two_more_tests(bad, count):
    assert play(sick(bad), count)[:2] == ([bad], 3)


@pytest.mark.parametrize("bad", list(itertools.combinations(["i-1", "i-2", "i-3", "i-4"], 2)))
def test_of_two_sick_nodes_none_but_these_are_drained(bad):
    drained, tests, left = play(sick(*bad), 6)
    met = {"i-1", "i-2"} & {*bad}
    assert met <= {*drained} <= {*bad} or not met
    assert tests <= 8
    assert left.tried == ()


def test_a_check_that_always_fails_drains_nobody_and_asks_for_a_person():
    drained, tests, left = play(lambda first, second: True, 12)
    assert (drained, tests) == ([], FAILED_MAX)
    assert (left.missed, left.tried, left.rests_until_s) == (2, (), NOW_S + DAY_S)
    resting = of(replace(ALONE, pairs=left))
    assert checked(plan(resting)) == []
    (words,) = [each for each in overview(resting, None).needs_a_look if "pairs" in each]
    assert "6 pairs of 4 nodes failed and none passed (it failed): the check errs, or what" in words
    assert checked(plan(of(replace(ALONE, pairs=left).tried_anew))) == ["i-1", "i-2"]


@pytest.mark.parametrize("seed", range(40))
def test_a_check_that_errs_at_random_ends_and_drains_nobody_who_passed(seed):
    chance, passed = Random(seed), set[str]()

    def fails(first: str, second: str) -> bool:
        if chance.random() < 0.6:
            return True
        passed.update((first, second))
        return False

    drained, _, _ = play(fails, 8)
    assert passed.isdisjoint(drained)


def test_its_belief_is_its_own_and_what_does_not_run_rests_alone():
    doubted = PoolHistory("t4", stopped_checks=(StoppedCheck(FOUND_PAIR, NOW_S - 60, 2, 4),))
    assert checked(plan(of(history=doubted))) == []
    assert checked(plan(of(IdleChecks(), history=doubted))) == ["i-1"], "one alone goes on"
    doubted = PoolHistory("t4", stopped_checks=(StoppedCheck(FOUND, NOW_S - 60, 2, 4),))
    assert checked(plan(of(IdleChecks(), history=doubted))) == ["i-1", "i-2"]

    missed = of(RUNS, told=[replace(ended("FAILED"), name=NAME, exit_code=127)])
    state = state_after(missed)
    assert (state.pairs.missed, state.missed, state.rests_until_s) == (1, 0, 0.0)
    assert state.pairs.rests_until_s == NOW_S + CHECK.wait_s
    assert "the idle check on i-1 and i-2 did not run" in said(plan(missed))[0][1]


def test_one_of_the_pair_that_is_gone_is_nobodys_fault():
    lost = of(RUNS)
    lost = replace(
        lost,
        digest=replace(
            lost.heard, reading=replace(lost.heard.reading, nodes=lost.heard.reading.nodes[:1])
        ),
    )
    assert (state_after(lost).asked, after(lost).missed) == (None, 0)


def test_people_see_who_is_suspected_and_that_a_third_is_missing():
    old = replace(F12, at_s=NOW_S - OPEN_S)
    seen = of(tried(old), count=2)
    (words,) = [each for each in overview(seen, None).needs_a_look if "pairs" in each]
    assert words == (
        "pool t4: at least one of i-1, i-2 is sick: they failed the check of pairs 60 min ago, and "
        "too few nodes of their type and zone idle to tell which; to try both again: tidegate "
        "retry t4"
    )
    assert checked(plan(of(tried(old).tried_anew, count=2))) == ["i-1", "i-2"]
    assert [each.checked for each in node_reports(seen)] == ["60 min ago; in a pair suspect"] * 2
    now = overview(of(RUNS), None).idle_checks
    assert now is not None
    assert now.on == ("i-1", "i-2")


def test_a_question_is_forgotten_with_its_nodes_and_in_a_week():
    late = replace(F12, at_s=NOW_S - CHECK.every_s - 1)
    assert after(of(tried(late))).tried == ()
    assert with_verdict(tried(F12), CHECK, ["i-1"], NOW_S).pairs.tried == ()
    held = replace(tried(F12, P13, F23), sick=SickNode("i-9", "x", NOW_S, NOW_S))
    assert with_verdict(held, CHECK, ["i-1", "i-2", "i-3"], NOW_S) == held, "one at a time"


def test_the_same_in_any_order():
    found = of(tried(F12))
    turned = replace(found, nodes=found.nodes[::-1], instances=found.instances[::-1])
    assert plan(turned) == plan(found)
