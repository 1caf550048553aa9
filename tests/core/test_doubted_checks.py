"""A check that drains more nodes than it is believed of: the rest is held back, not replaced."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import launches, orders, why
from tests.make import NOW_S, T4, cluster, instance, job, node, pool, record, snapshot
from tidegate.core.explain.node_report import node_reports
from tidegate.core.explain.overview import overview
from tidegate.core.fleet.drains import check_of
from tidegate.core.model.calendar import Wanted
from tidegate.core.model.finding import BELIEVED_MAX
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Learn, Plan
from tidegate.core.model.slurm import Job, Node, SetBy
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why
from tidegate.core.planner import plan

DRAINED = "IDLE+DRAIN+DYNAMIC_NORM"
CHECK = "NHC: check_fs_used: /tmp is full"
OTHER = "tidegate-health: ecc: GPU 3 has uncorrected errors"
DAY_S, MINUTE_S = 86_400.0, 60.0


def sick(name: str, reason: str = CHECK) -> Node:
    return node(name, state=DRAINED, reason=reason, set_by=SetBy.ROOT)


def fleet(nodes: Sequence[Node], jobs: Sequence[Job] = (), idle_s: float = 1e6) -> Snapshot:
    of = cluster(pool(types=(T4,), idle_s=idle_s))
    records = [record(each.name, age_s=900) for each in nodes]
    instances = [instance(each.name, age_s=900) for each in nodes]
    return snapshot(jobs, nodes, of=of, records=records, instances=instances)


def remembering(seen: Snapshot, made: Plan, *, after_s: float = 0.0) -> Snapshot:
    """The same once the plan was carried out, `after_s` later."""
    histories = {each.pool: each for each in seen.pool_history}
    for action in made.actions:
        if isinstance(action, Learn):
            histories[action.pool_history.pool] = action.pool_history
    return replace(seen, pool_history=tuple(histories.values()), now_s=seen.now_s + after_s)


def with_nodes(seen: Snapshot, nodes: Sequence[Node]) -> Snapshot:
    other = fleet(nodes)
    return replace(seen, digest=other.digest, nodes=other.nodes, instances=other.instances)


def released(made: Plan) -> list[str]:
    return [name for each in orders(made, OrderKind.RELEASE) for name in each.names]


def all_sick(count: int = 10, jobs: Sequence[Job] = ()) -> Snapshot:
    return fleet([sick(f"i-{n}") for n in range(count)], jobs)


def lifted(seen: Snapshot) -> Snapshot:
    (history,) = seen.pool_history
    stops = tuple(replace(each, is_lifted=True) for each in history.stopped_checks)
    return replace(seen, pool_history=(replace(history, stopped_checks=stops),))


@pytest.mark.parametrize(
    ("reason", "check"),
    [
        (CHECK, "NHC: check_fs_used"),
        ("tidegate-health: xid: Xid 79: it is gone", "tidegate-health: xid"),
        ("Kill task failed (JobId=7 StepId=batch)", "Kill task failed"),
        ("tidegate: it takes jobs (open) : Epilog error", "Epilog error"),
        ("dcgm GPU 3 failed: 7", "dcgm GPU # failed: #"),
        (f"{CHECK} : Not responding", "NHC: check_fs_used"),
        ("dcgm: node i-0a1b2c3d4e5f60718 has a bad GPU", "dcgm: node # has a bad GPU"),
        ("dcgm: GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7 is slow", "dcgm: GPU-# is slow"),
        ("dcgm: that at 0000:1b:00.0 of ip-10-0-0-7 is slow", "dcgm: that at # of ip-# is slow"),
        ("dcgm: GPU at 00000000:C1:00.0 is slow", "dcgm: GPU at # is slow"),
        ("dcgm: fb0 of A100 7 is slow", "dcgm: fb# of A# # is slow"),
        ("NHC: check_hw_eth eth0 on a bad face", "NHC: check_hw_eth eth# on a bad face"),
    ],
)
def test_a_check_has_one_name_for_all_nodes_that_it_drains(reason: str, check: str) -> None:
    assert check_of(sick("i-1", reason)) == check


def test_a_check_that_names_the_node_in_its_first_words_is_one_check() -> None:
    names = [f"i-0{letter}{letter}c0ffee" for letter in "abcdefabcd"]
    names = [f"{name}{number}" for number, name in enumerate(names)]

    seen = fleet([sick(name, f"NHC: node {name} has no eth0") for name in names])

    (history,) = remembering(seen, plan(seen)).pool_history

    assert len(history.findings) == 2
    assert [each.found for each in history.stopped_checks] == [2]


def test_of_ten_that_one_check_drains_at_once_a_fifth_goes_and_the_rest_is_held_back() -> None:
    seen = all_sick()

    made = plan(seen)
    after = remembering(seen, made)

    assert len(released(made)) == 2
    held = [each for each in node_reports(after) if each.held.startswith("held back: the check")]
    assert len(held) == 8
    first = overview(after, None).needs_a_look[0]
    assert first.startswith("pool t4: the check `NHC: check_fs_used` may err")
    assert "8 nodes are held back (i-2, i-3, i-4, i-5, i-6 and 3 more)" in first
    assert "found 2 of 10 nodes" in first
    assert first.endswith("where the nodes are sick, let them go: tidegate retry t4")


def test_the_next_looks_hold_them_too_and_write_nothing_more() -> None:
    seen = all_sick()
    after = remembering(seen, plan(seen), after_s=MINUTE_S)
    gone = with_nodes(after, [sick(f"i-{n}") for n in range(2, 10)])

    for later_s in (0.0, 2 * DAY_S, 30 * DAY_S):
        made = plan(replace(gone, now_s=gone.now_s + later_s))
        assert released(made) == []
        assert not [each for each in made.actions if isinstance(each, Learn)]


def test_what_is_held_back_is_not_replaced_and_why_says_so() -> None:
    seen = all_sick(jobs=[job(1)])

    made = plan(remembering(seen, plan(seen)))

    assert launches(made) == []
    assert "nodes are held back that a check drained which may err" in why(made)
    (kind,) = {each.kind for each in made.unmet[0].why_nots}
    assert kind is Why.DOUBTED


def test_a_job_that_another_pool_can_run_goes_there() -> None:
    seen = all_sick(jobs=[job(1), job(2, nodes=2)])
    first = replace(seen.cluster.pools[0], weight=10)
    both = replace(seen, cluster=cluster(first, pool("other", (T4,))))

    made = plan(both)

    assert sorted((each.pool, each.count) for each in launches(made)) == [
        ("other", 1),
        ("other", 2),
    ]


def test_a_slow_liar_that_drains_a_node_every_ten_minutes_costs_a_fifth_of_the_pool() -> None:
    names = [f"i-{n:03}" for n in range(40)]
    seen, gone, bad = fleet([node(each) for each in names]), set[str](), set[str]()

    for step in range(3 * 144):
        up = [each for each in names if each not in gone]
        well = [each for each in up if each not in bad]
        bad.update(well[:1])
        now = with_nodes(seen, [sick(each) if each in bad else node(each) for each in up])
        made = plan(now)
        gone.update(released(made))
        names += [f"n-{step}-{n}" for n, _ in enumerate(released(made))]
        seen = remembering(seen, made, after_s=10 * MINUTE_S)

    assert len(gone) == 8


def test_of_a_small_pool_two_go_and_the_third_is_held() -> None:
    seen, gone = fleet([node(f"i-{n}") for n in range(4)]), []

    for number in range(4):
        up = [f"i-{n}" for n in range(4) if f"i-{n}" not in gone]
        made = plan(with_nodes(seen, [sick(n) if n == f"i-{number}" else node(n) for n in up]))
        gone += released(made)
        seen = remembering(seen, made, after_s=MINUTE_S)

    assert gone == ["i-0", "i-1"]


def test_of_a_large_pool_a_check_is_believed_of_no_more_than_any_fleet_could_have() -> None:
    seen = fleet([sick(f"i-{n:03}") if n < 100 else node(f"i-{n:03}") for n in range(1000)])

    after = remembering(seen, plan(seen))

    (history,) = after.pool_history
    assert len(history.findings) == BELIEVED_MAX
    assert [each.found for each in history.stopped_checks] == [BELIEVED_MAX]


def test_another_check_is_believed_while_one_is_not() -> None:
    seen = all_sick()
    after = remembering(seen, plan(seen), after_s=MINUTE_S)
    nodes = [sick(f"i-{n}") for n in range(2, 9)] + [sick("i-9", OTHER)]

    assert released(plan(with_nodes(after, nodes))) == ["i-9"]


def test_findings_of_the_day_before_do_not_count() -> None:
    seen = fleet([sick("i-0"), sick("i-1"), *(node(f"i-{n}") for n in range(2, 10))])
    after = remembering(seen, plan(seen), after_s=DAY_S + 1)

    made = plan(with_nodes(after, [sick("i-2"), *(node(f"i-{n}") for n in range(3, 10))]))

    assert released(made) == ["i-2"]


def test_a_pool_that_has_shrunk_since_does_not_make_a_check_a_liar() -> None:
    seen = fleet([sick("i-0"), sick("i-1"), *(node(f"i-{n}") for n in range(2, 20))])
    after = remembering(seen, plan(seen), after_s=MINUTE_S)

    assert released(plan(with_nodes(after, [sick("i-2"), node("i-3")]))) == ["i-2"]


def test_a_persons_word_lets_them_go_within_the_budget_and_the_check_counts_anew() -> None:
    seen = all_sick()
    held = with_nodes(remembering(seen, plan(seen)), [sick(f"i-{n}") for n in range(2, 10)])
    word = lifted(held)

    made = plan(word)
    after = remembering(word, made, after_s=MINUTE_S)

    assert len(released(made)) == 2  # a fifth of eight, rounded up
    (history,) = after.pool_history
    assert history.stopped_checks == ()
    gone = with_nodes(after, [node("n-1")])
    assert [each.excused for each in remembering(gone, plan(gone)).pool_history] == [()]
    assert history.excused == tuple(f"i-{n}" for n in range(2, 10))
    assert overview(after, None).needs_a_look[0].startswith("pool t4: 8 of 8 nodes are found")
    new = [*(sick(f"i-{n}") for n in range(4, 10)), *(sick(f"n-{n}") for n in range(3))]
    again = remembering(after, plan(with_nodes(after, new)))
    (history,) = again.pool_history
    assert [each.found for each in history.stopped_checks] == [2]
    opened = [report.name for report in node_reports(with_nodes(again, new)) if report.held]
    assert "n-2" in opened


def test_nodes_that_a_person_has_opened_open_the_pool_though_the_check_stays_stopped() -> None:
    seen = all_sick()
    after = remembering(seen, plan(seen), after_s=MINUTE_S)
    opened = with_nodes(after, [node("i-2", gpus_alloc=1, state="MIXED+DYNAMIC_NORM")])
    assert opened.digest is not None
    reading = replace(opened.digest.reading, jobs=(job(1),))
    waits = replace(opened, digest=replace(opened.digest, reading=reading))

    made = plan(waits)

    assert len(launches(made)) == 1
    assert "mend it, then: tidegate retry t4" in overview(waits, None).needs_a_look[0]


def test_slurms_word_that_a_node_is_too_small_is_no_checks() -> None:
    reason = "gres/gpu count reported lower than configured (0 < 1)"
    seen = fleet([sick(f"i-{n}", reason) for n in range(10)])

    assert not [each for each in plan(seen).actions if isinstance(each, Learn)]


def test_what_slurm_finds_down_goes_though_a_check_had_drained_it() -> None:
    seen = all_sick()
    after = remembering(seen, plan(seen), after_s=MINUTE_S)
    dead = replace(sick("i-5"), state=node(state="DOWN+DRAIN").state)

    assert released(plan(with_nodes(after, [dead]))) == ["i-5"]


def test_in_the_evening_they_go_with_all_others() -> None:
    seen = all_sick()
    after = remembering(seen, plan(seen), after_s=MINUTE_S)
    night = replace(after, wanted=Wanted(is_up=False, sentence="stopped until 8:00"))

    assert len(released(plan(night))) == 2


def test_what_it_remembers_says_when_and_where() -> None:
    seen = fleet([sick("i-0"), node("i-1")])

    (history,) = remembering(seen, plan(seen)).pool_history

    (found,) = history.findings
    assert (found.instance_id, found.check, found.at_s) == ("i-0", "NHC: check_fs_used", NOW_S)
    assert (found.offering, found.pool_nodes, found.place_nodes) == (
        seen.nodes[0].offering,
        2,
        2,
    )


@pytest.mark.parametrize(
    ("reason", "let_go"),
    [
        (CHECK, 2),
        ("tidegate-health: xid: Xid 79: it is gone (fatal; NVIDIA's remedy: reboot)", 5),
        ("tidegate-health: neuron: Neuron DMA_ERROR: it has aborted (fatal; remedy: x)", 5),
        ("Kill task failed", 5),
    ],
)
def test_what_kernel_and_slurm_say_is_believed_of_more_nodes_of_a_small_pool(
    reason: str, let_go: int
) -> None:
    seen = fleet([sick(f"i-{number}", reason) for number in range(8)])
    (learnt,) = (each for each in plan(seen).actions if isinstance(each, Learn))

    assert len(learnt.pool_history.findings) == let_go
    assert [each.found for each in learnt.pool_history.stopped_checks] == [let_go]


NAMES = ("ada", "grace", "linus", "barbara", "edsger", "john", "donald", "tony", "niklaus", "alan")


@pytest.mark.parametrize(
    ("sentence", "by"),
    [
        ("NHC: the home of {} is stale", "NHC"),
        ("NHC: {}'s home is stale", "NHC"),
        ("tidegate-health: the home of {} is stale", "tidegate-health"),
    ],
)
def test_a_program_that_says_another_sentence_of_each_node_is_one_check(
    sentence: str, by: str
) -> None:
    seen = fleet([sick(f"i-{n}", sentence.format(name)) for n, name in enumerate(NAMES)])

    made = plan(seen)
    after = remembering(seen, made)

    assert len(released(made)) == 2
    assert [each.check for each in after.pool_history[0].stopped_checks] == [by]
    assert overview(after, None).needs_a_look[0].startswith(f"pool t4: the check `{by}` may err")
    gone = with_nodes(after, [sick("i-9", sentence.format("alan"))])
    assert released(plan(gone)) == []
    assert len(released(plan(lifted(gone)))) == 1


def test_a_program_that_is_believed_no_more_does_not_stop_its_checks_that_have_names() -> None:
    nodes = [sick(f"i-{n}", f"NHC: the home of {name} is stale") for n, name in enumerate(NAMES)]
    seen = fleet(nodes)
    after = remembering(seen, plan(seen))

    other = with_nodes(after, [*nodes[2:], sick("i-1", CHECK)])

    assert released(plan(other)) == ["i-1"]


def test_the_kernels_and_slurms_own_words_are_counted_as_before() -> None:
    """They are believed of five nodes, whatever stands behind them."""
    for reason in ("tidegate-health: xid: 79 (fatal; remedy: reboot)", "Kill task failed"):
        seen = fleet([sick(f"i-{n}", reason) for n in range(10)])

        assert len(remembering(seen, plan(seen)).pool_history[0].findings) == 5
