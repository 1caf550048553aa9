"""What people are told of a roll-out, and what comes of their word about it."""

from dataclasses import replace

import pytest

from tests.core.test_drift import NEW, OLD, busy, going, made_from, running
from tests.core.test_rollout import (
    BAD,
    BESIDE,
    FIRST,
    TENTH,
    WELL,
    bought,
    of_template,
    told,
    waiting,
    world,
)
from tests.make import node
from tidegate.core.explain.node_report import node_reports
from tidegate.core.explain.overview import overview
from tidegate.core.explain.rollouts import rollouts
from tidegate.core.model.ec2 import Cure
from tidegate.core.model.rollout import Rollout, RolloutCode, Tally
from tidegate.core.planner import plan

HELD = {
    "first": (
        WELL,
        "roll-out of template new-2: watched for 9 min more or until 5 jobs have ended",
    ),
    "paused": (replace(WELL, is_paused=True), "roll-out of template new-2: is paused"),
    "tenth": (TENTH, "roll-out of template new-2: watched for 9 min more"),
}


def test_an_old_node_tells_that_no_job_has_met_the_new_template():
    records, nodes = made_from({"i-1": OLD, "i-2": NEW}), [busy("i-1"), node("i-2")]
    of = world(WELL, records, nodes, running("i-1"))

    report = next(each for each in node_reports(of) if each.name == "i-1")

    assert report.held == (
        "roll-out of template new-2: no job has run there yet, one is waited for, 24.0 h more at "
        "most; or go on without: tidegate rollout finish t4"
    )


@pytest.mark.parametrize("how", HELD)
def test_an_old_node_tells_what_it_waits_for(how):
    rollout, says = HELD[how]
    tried = made_from({"i-2": NEW, "i-3": NEW})
    old = made_from({"i-1": OLD})
    nodes = [busy("i-1"), busy("i-2"), busy("i-3")]

    of = world(rollout, [*old, *tried], nodes, running("i-1", "i-2", "i-3"))
    report = next(each for each in node_reports(of) if each.name == "i-1")

    assert report.held.startswith(says)


def test_an_old_node_tells_that_the_new_template_rests_where_it_is_from():
    rest = replace(of_template(NEW, Cure.NONE), template="new-2")
    of = world(FIRST, made_from({"i-1": OLD}), [busy("i-1")], running("i-1"))

    (report,) = node_reports(replace(of, refused_templates=(rest,)))

    assert report.held == (
        f"roll-out of template new-2: it has failed in {rest.offering} and rests there"
    )


def asked(asks: RolloutCode, before: Rollout = WELL) -> list[tuple[str, str]]:
    return told(plan(world(replace(before, asked=asks, by="user/ada"))))


def test_the_next_plan_does_what_a_person_asks():
    assert asked(RolloutCode.PAUSED) == [
        (
            RolloutCode.PAUSED,
            "pool t4: no more nodes are made from template new-2: paused by user/ada",
        )
    ]
    assert asked(RolloutCode.RESUMED, replace(WELL, is_paused=True))[0][0] == RolloutCode.RESUMED
    assert asked(RolloutCode.ABORTED, replace(WELL, is_paused=True)) == [
        (
            RolloutCode.ABORTED,
            "pool t4: template new-2 is given up: by the word of user/ada; nodes come from old-1",
        )
    ]


def test_a_person_may_take_it_for_good_without_waiting():
    word = replace(WELL, asked=RolloutCode.DONE, by="user/ada")
    made = plan(world(word, jobs=waiting(3)))

    assert told(made)[0] == (
        RolloutCode.DONE,
        "pool t4: template new-2 is taken for good by the word of user/ada: all nodes go over to "
        "it",
    )
    assert bought(made) == {"new-2": 3}


def test_what_a_person_gave_up_goes_in_the_same_plan():
    word = replace(WELL, asked=RolloutCode.ABORTED, by="user/ada")
    made = plan(world(word, BESIDE, [busy("i-1"), busy("i-2")], running("i-1", "i-2")))

    assert going(made) == ["i-2"]


SHOWN = {
    "none": (None, ("everywhere", None, "all new nodes are made from it")),
    "first": (WELL, ("canary", 2, "its first nodes: watched for 9 min more or until 5 jobs have")),
    "untried": (FIRST, ("canary", 1, "its first nodes: a first node made from it has to join")),
    "doubtful": (
        replace(WELL, jobs=Tally(2, 2)),
        ("canary", 2, "its first nodes: 2 of 2 jobs failed there, 5 have to end"),
    ),
    "tenth": (TENTH, ("tenth", 2, "10 % of the nodes: watched for 9 min more")),
    "paused": (
        replace(WELL, is_paused=True, by="user/ada"),
        ("rollout-paused", 0, "paused by user/ada; go on: tidegate rollout resume t4"),
    ),
    "given up": (BAD, ("rollout-bad-nodes", 0, "given up: 2 of its nodes are no good; mend it")),
}


@pytest.mark.parametrize("how", SHOWN)
def test_how_far_a_template_has_come_is_told(how):
    rollout, (state, most, says) = SHOWN[how]
    of = world(rollout, BESIDE, [busy("i-1"), busy("i-2")])
    if rollout is None:
        of = replace(of, pool_history=())

    (found,) = rollouts(of)

    assert (found.state, found.most, found.nodes, found.of) == (state, most, 1, 2)
    assert found.sentence.startswith(says)
    assert (found.template, found.good) == ("new-2", "old-1" if rollout else "new-2")


STATUS = {
    "given up": (BAD, "is given up: 2 of its nodes are no good; nodes come from old-1; mend it"),
    "paused": (replace(WELL, is_paused=True), "is paused; nodes come from old-1; go on: tidegate"),
    "on its way": (WELL, ""),
}


@pytest.mark.parametrize("how", STATUS)
def test_status_tells_of_one_that_a_person_has_to_see_to(how):
    rollout, says = STATUS[how]
    found = [each for each in overview(world(rollout), None).needs_a_look if "new-2" in each]

    assert len(found) == bool(says)
    assert not says or says in found[0]
