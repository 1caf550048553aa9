"""A new template comes on one node, on two, on every tenth, on all; a bad one goes back."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import launches, orders
from tests.core.test_drift import (
    NEW,
    OLD,
    busy,
    going,
    in_doubt,
    learns,
    made_from,
    running,
    seen,
    t4,
)
from tests.make import NOW_S, job, node, record
from tidegate.core.fleet.templates import chosen
from tidegate.core.model.budgets import Budget, Disruption
from tidegate.core.model.ec2 import Cure, Template
from tidegate.core.model.ended import EndedJob
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Learn, Plan
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import Resting
from tidegate.core.model.rollout import (
    WATCHED_IDLE_S,
    WATCHED_JOBS,
    WATCHED_S,
    Rollout,
    RolloutCode,
    Step,
    Tally,
    fails_more,
)
from tidegate.core.model.site_check import Checked
from tidegate.core.model.slurm import Job, Node, SetBy
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

FIRST = Rollout(NEW, NOW_S - 900)
WELL = replace(FIRST, tried=("i-2",), step_since_s=NOW_S - 60)
TENTH = replace(WELL, step=Step.TENTH)
ONE = Tally(1, 0)
BAD = WELL.giving_up(RolloutCode.BAD_NODES, "2 of its nodes are no good")


def on_way(rollout: Rollout | None = None) -> PoolHistory:
    return PoolHistory("t4", good=OLD, rollout=rollout)


def world(
    rollout: Rollout | None,
    records: Sequence[NodeRecord] = (),
    nodes: Sequence[Node] = (),
    jobs: Sequence[Job] = (),
    **more: object,
) -> Snapshot:
    return seen(t4(**more), nodes, records, jobs=jobs, pool_history=on_way(rollout))


def waiting(count: int) -> list[Job]:
    return [job(number, time_limit_s=3600.0) for number in range(1, count + 1)]


def bought(made: Plan) -> dict[str, int]:
    """How many nodes are made from each template."""
    found: dict[str, int] = {}
    for each in launches(made):
        assert each.template is not None
        found[each.template.digest] = found.get(each.template.digest, 0) + each.count
    return found


def told(made: Plan) -> list[tuple[str, str]]:
    return [(each.code, each.reason) for each in made.actions if isinstance(each, Learn)]


def booting(*names: str) -> list[NodeRecord]:
    found = made_from(dict.fromkeys(names, NEW), age_s=60.0)
    return [replace(each, phase=Phase.LAUNCHED) for each in found]


def test_the_first_launches_after_a_deployment_are_made_from_it_once_and_else_from_the_last_good():
    made = plan(world(None, jobs=waiting(10)))

    assert bought(made) == {"new-2": 1, "old-1": 9}
    assert sorted(name for each in launches(made) for name in each.for_jobs) == sorted(
        str(number) for number in range(1, 11)
    )
    assert len({each.launch_id for each in launches(made)}) == len(launches(made))
    assert told(made)[0][0] == RolloutCode.BEGUN
    tried = next(each for each in launches(made) if each.template == NEW)
    assert tried.reason.endswith("; made from template new-2, which is rolled out")


def test_the_first_template_of_all_needs_to_show_nothing():
    made = plan(replace(world(None, jobs=waiting(3)), pool_history=()))

    assert bought(made) == {"new-2": 3}


ROOM = {
    "one boots": (FIRST, booting("i-2"), [], 0),
    "one joined": (WELL, made_from({"i-2": NEW}), [busy("i-2")], 1),
    "one joined, one boots": (
        WELL,
        [*made_from({"i-2": NEW}), *booting("i-3")],
        [busy("i-2")],
        0,
    ),
    "one joined and went": (WELL, [], [], 1),
    "both joined and went": (replace(WELL, tried=("i-2", "i-3")), [], [], 0),
    "one failed": (replace(FIRST, tried=("i-2",), bad=("i-2",)), [], [], 1),
    "paused": (replace(WELL, is_paused=True), [], [], 0),
    "given up": (BAD, [], [], 0),
}


@pytest.mark.parametrize("how", ROOM)
def test_until_it_is_good_two_nodes_are_made_from_it(how):
    rollout, records, nodes, room = ROOM[how]
    jobs = [*running(*(each.name for each in nodes)), *waiting(4)]

    made = plan(world(rollout, records, nodes, jobs))

    assert bought(made).get("new-2", 0) == room
    assert bought(made).get("old-1", 0) == 4 - room - (len(records) - len(nodes))


def test_what_a_planner_may_have_bought_and_not_noted_counts():
    of = in_doubt()
    tags = (("tidegate:template", "new-2"),)
    doubted = replace(of, request=replace(of.request, tags=tags), created_at_s=NOW_S - 5)

    made = plan(replace(world(FIRST, jobs=waiting(4)), launches=(doubted,)))

    assert "new-2" not in bought(made)


def test_a_gang_is_never_mixed():
    made = plan(world(FIRST, jobs=[job(1, nodes=4)]))

    assert bought(made) == {"old-1": 4}


def test_every_tenth_node_is_made_from_a_template_whose_first_nodes_are_good():
    made = plan(world(TENTH, jobs=waiting(40)))

    assert bought(made) == {"new-2": 4, "old-1": 36}


def joins(name: str = "i-2") -> Snapshot:
    return world(FIRST, booting(name), [node(name)])


def test_a_first_node_that_joins_well_makes_room_for_a_second():
    made = plan(joins())

    (after,) = learns(made)
    assert after.good == OLD
    assert after.rollout is not None
    assert (after.rollout.tried, after.rollout.step_since_s) == (("i-2",), NOW_S)
    assert told(made)[0][0] == RolloutCode.SEEN
    assert "1 of 1 first nodes joined well" in told(made)[0][1]


PASSES = {
    "watched": (replace(WELL, step_since_s=NOW_S - WATCHED_S, jobs=ONE), Step.TENTH),
    "not yet": (replace(WELL, step_since_s=NOW_S - WATCHED_S + 1, jobs=ONE), Step.CANARY),
    "no job but the site's check": (
        replace(WELL, step_since_s=NOW_S - WATCHED_S, checked=Checked(is_passed=True)),
        Step.TENTH,
    ),
    "no job": (replace(WELL, step_since_s=NOW_S - WATCHED_IDLE_S + 1), Step.CANARY),
    "no job in a day": (replace(WELL, step_since_s=NOW_S - WATCHED_IDLE_S), Step.TENTH),
    "jobs": (replace(WELL, jobs=Tally(WATCHED_JOBS, 0)), Step.TENTH),
    "few jobs, and some failed": (
        replace(WELL, step_since_s=NOW_S - 9 * WATCHED_S, jobs=Tally(2, 1)),
        Step.CANARY,
    ),
    "jobs, and some failed": (replace(WELL, jobs=Tally(WATCHED_JOBS, 2)), Step.TENTH),
    "paused": (replace(WELL, step_since_s=0.0, is_paused=True), Step.CANARY),
    "nobody joined": (replace(FIRST, tried=("i-2",), bad=("i-2",)), Step.CANARY),
    "a tenth, not yet": (replace(TENTH, jobs=Tally(50, 0)), Step.TENTH),
}


@pytest.mark.parametrize("how", PASSES)
def test_a_step_lasts_until_its_nodes_have_shown_enough(how):
    before, step = PASSES[how]
    made = plan(world(before))

    after = next((each.rollout for each in learns(made)), before)

    assert after is not None
    assert after.step is step
    assert (RolloutCode.TENTH in [code for code, _ in told(made)]) is (after != before)


def test_after_the_tenth_it_is_the_good_one():
    made = plan(world(replace(TENTH, step_since_s=NOW_S - WATCHED_S), jobs=waiting(3)))

    assert [(each.good, each.rollout) for each in learns(made)] == [(NEW, None)]
    assert told(made)[0] == (
        RolloutCode.DONE,
        "pool t4: template new-2 is good: all nodes go over to it",
    )
    assert bought(made) == {"new-2": 3}


def test_of_old_nodes_as_many_go_as_the_step_allows():
    names = [f"i-{number}" for number in range(10, 40)]
    records = made_from(dict.fromkeys(names, OLD))
    nodes, jobs = [busy(name) for name in names], running(*names)

    assert going(plan(world(WELL, records, nodes, jobs))) == []
    assert len(going(plan(world(TENTH, records, nodes, jobs)))) == 3


def test_nodes_that_go_already_count():
    names = [f"i-{number}" for number in range(10, 40)]
    reason = "tidegate: drifted: made from template old-1, pool t4 has new-2 now (drifted)"
    drained = "ALLOCATED+DRAIN+DYNAMIC_NORM"
    nodes = [
        replace(node(name, state=drained, reason=reason), set_by=SetBy.US) if n < 2 else busy(name)
        for n, name in enumerate(names)
    ]
    records = made_from(dict.fromkeys(names, OLD))

    assert len(going(plan(world(TENTH, records, nodes, running(*names))))) == 1


def test_what_came_to_replace_a_node_is_no_reason_to_keep_it():
    tried = made_from({"i-2": NEW, "i-3": NEW})
    nodes = [busy("i-1"), node("i-2"), node("i-3")]
    records = [*made_from({"i-1": OLD}), *tried]

    assert going(plan(world(TENTH, records, nodes, running("i-1"), min_nodes=2))) == ["i-1"]
    assert going(plan(world(TENTH, records, nodes, running("i-1"), min_nodes=3))) == []


def test_what_has_to_show_that_it_is_good_goes_last_of_those_that_idle():
    of = replace(t4(min_nodes=1), idle_s=0.0)
    records = made_from({"i-2": NEW, "i-3": OLD})

    made = plan(seen(of, [node("i-2"), node("i-3")], records, pool_history=on_way(WELL)))

    assert going(made) == ["i-3"]


def test_what_is_tried_and_fails_closes_no_pool():
    (after,) = learns(plan(failing("i-3", WELL)))

    assert after.failed == ()


def failing(name: str, before: Rollout) -> Snapshot:
    late = replace(booting(name)[0], launched_at_s=NOW_S - 1000)
    return world(before, [late], [])


def test_two_nodes_that_do_not_join_are_the_fault_of_what_they_are_made_from():
    one = replace(FIRST, tried=("i-2",), bad=("i-2",), said="i-2: it did not join as it should")
    made = plan(failing("i-3", one))

    assert told(made)[0] == (
        RolloutCode.BAD_NODES,
        "pool t4: template new-2 is given up: 2 of its nodes are no good, the last is i-3: it did "
        "not join as it should; nodes come from old-1",
    )


def test_one_failed_boot_is_the_fault_of_one_machine():
    (after,) = learns(plan(failing("i-3", WELL)))

    assert after.rollout is not None
    assert (after.rollout.bad, after.rollout.given_up) == (("i-3",), None)


def test_where_the_only_node_that_was_well_becomes_sick_the_watch_begins_anew():
    drained = node("i-2", state="IDLE+DRAIN+DYNAMIC_NORM", reason="tidegate-health: ecc: GPU 0")
    sick = replace(drained, set_by=SetBy.ROOT)
    made = plan(world(WELL, made_from({"i-2": NEW}), [sick]))

    (after,) = learns(made)
    assert after.rollout is not None
    assert (after.rollout.bad, after.rollout.step_since_s) == (("i-2",), None)
    assert after.rollout.said == "i-2: tidegate-health: ecc: GPU 0"


def test_a_persons_drain_says_nothing_of_the_template():
    drained = node("i-2", state="IDLE+DRAIN+DYNAMIC_NORM", reason="I look into it")
    theirs = replace(drained, set_by=SetBy.USER)

    assert learns(plan(world(WELL, made_from({"i-2": NEW}), [theirs]))) == []


def ended(number: int, name: str, *, failed: bool, ago_s: float = 30.0) -> EndedJob:
    return EndedJob(str(number), (name,), NOW_S - ago_s, failed)


def with_ended(of: Snapshot, found: Sequence[EndedJob]) -> Snapshot:
    assert of.digest is not None
    reading = replace(of.digest.reading, ended=tuple(found))
    return replace(of, digest=replace(of.digest, reading=reading))


BESIDE = made_from({"i-1": OLD, "i-2": NEW})


def test_jobs_that_fail_on_its_nodes_more_often_than_elsewhere_are_its_fault():
    fail = [ended(number, "i-2", failed=True) for number in range(3)]
    others = [ended(number, "i-1", failed=number == 10) for number in range(10, 30)]
    made = plan(with_ended(world(WELL, BESIDE, [busy("i-1"), busy("i-2")]), [*fail, *others]))

    assert told(made)[0] == (
        RolloutCode.BAD_JOBS,
        "pool t4: template new-2 is given up: 3 of 3 jobs failed on its nodes, 1 of 20 on others; "
        "nodes come from old-1",
    )
    assert going(made) == ["i-2"]


def test_each_end_counts_once_and_only_when_its_second_is_over():
    fail = [ended(number, "i-2", failed=True, ago_s=ago_s) for number, ago_s in ((1, 30), (2, 0))]
    of = with_ended(world(WELL, BESIDE, [busy("i-1"), busy("i-2")]), fail)

    (after,) = learns(plan(of))
    assert after.rollout is not None
    assert after.rollout.jobs == Tally(1, 1)
    assert learns(plan(replace(of, pool_history=(after,)))) == []


@pytest.mark.parametrize(
    ("there", "beside", "is_more"),
    [
        (Tally(2, 2), Tally(), False),
        (Tally(3, 3), Tally(), True),
        (Tally(4, 3), Tally(), True),
        (Tally(5, 3), Tally(), False),
        (Tally(3, 3), Tally(100, 30), False),
        (Tally(6, 6), Tally(100, 30), True),
        (Tally(100, 5), Tally(400, 20), False),
        (Tally(0, 0), Tally(50, 50), False),
        (Tally(50, 0), Tally(50, 0), False),
    ],
)
def test_chance_makes_jobs_fail_too(there, beside, is_more):
    assert fails_more(there, beside) is is_more


def test_what_was_given_up_goes_whatever_its_pool_keeps_and_its_budgets_say():
    never = Disruption((Budget(nodes=0),))
    of = replace(t4(min_nodes=2), disruption=never)
    nodes, jobs = [busy("i-1"), busy("i-2")], running("i-1", "i-2")

    made = plan(seen(of, nodes, BESIDE, jobs=jobs, pool_history=on_way(BAD)))

    assert orders(made, OrderKind.DRAIN)[0].names == ("i-2",)
    assert orders(made, OrderKind.DRAIN)[0].text == (
        "tidegate: made from template new-2, which is given up: 2 of its nodes are no good "
        "(given-up)"
    )
    assert bought(made) == {"old-1": 1}


def test_the_next_deployment_is_tried_anew():
    third = Template("lt-t4", "3", "third-3")
    of = replace(world(BAD, jobs=waiting(3)), templates=(("t4", third),))

    assert chosen(of, "t4") == OLD
    assert bought(plan(of)) == {"third-3": 1, "old-1": 2}


def test_the_last_good_one_deployed_again_ends_the_roll_out():
    made = plan(replace(world(WELL), templates=(("t4", OLD),)))

    assert [each.rollout for each in learns(made)] == [None]
    assert told(made)[0][1] == "pool t4: template old-1 is deployed again: nothing to roll out"


def of_template(template: Template, cure: Cure, failures: int = 1) -> Resting:
    on = record("i-1").offering
    said = ("InvalidAMIID.NotFound", "The image id does not exist")
    return Resting(on, NOW_S + 60, failures, *said, cure, "t4", template.name)


def test_where_the_last_good_one_cannot_be_launched_any_more_all_are_made_from_the_new_one():
    made = plan(replace(world(WELL, jobs=waiting(2)), resting=(of_template(OLD, Cure.IMAGE),)))

    assert [(each.good, each.rollout) for each in learns(made)] == [(None, None)]
    assert told(made)[0][0] == RolloutCode.NO_WAY_BACK
