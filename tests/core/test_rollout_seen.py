"""What counts against a template that is rolled out, and what does not."""

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
from tests.core.test_rollout import (
    BAD,
    BESIDE,
    FIRST,
    TENTH,
    WELL,
    booting,
    bought,
    failing,
    of_template,
    on_way,
    told,
    waiting,
    world,
)
from tests.make import NOW_S, instance, job, node, offering
from tidegate.core.fleet.templates import refused
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.ec2 import TEMPLATE_TAG, Cure
from tidegate.core.model.ledger import LaunchRecord, Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.rollout import WATCHED_S, Rollout, RolloutCode, Tally
from tidegate.core.model.slurm import Node, SetBy
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

DOWN, DRAINED = "DOWN+DYNAMIC_NORM", "IDLE+DRAIN+DYNAMIC_NORM"


def of(state: str, reason: str, set_by: SetBy) -> Node:
    return replace(node("i-2", state=state, reason=reason), set_by=set_by)


CHECKED = of(DRAINED, "tidegate-health: ecc: GPU 0", SetBy.ROOT)
SILENT = of(DOWN, "Not responding", SetBy.SLURM)
HOLD = str(DrainReason(DrainCode.HELD, "held by user/ada", until_s=NOW_S + 600))
NODES = {
    "a check drained it": (CHECKED, True),
    "Slurm drained it": (of(DRAINED, "Epilog error", SetBy.SLURM), True),
    "it has too few GPUs": (of(DRAINED, "gres/gpu count reported lower", SetBy.SLURM), True),
    "it is silent": (SILENT, True),
    "a person set it DOWN": (of(DOWN, "I look into it", SetBy.USER), False),
    "a person holds it": (of(DOWN, HOLD, SetBy.USER), False),
    "it is open": (node("i-2"), False),
}


def bad(made: Snapshot) -> tuple[str, ...]:
    found = [each.rollout for each in learns(plan(made)) if each.rollout]
    return found[0].bad if found else ()


@pytest.mark.parametrize("how", NODES)
def test_nodes_that_software_finds_unhealthy_count_and_what_people_do_does_not(how):
    shown, counts = NODES[how]

    assert bool(bad(world(WELL, made_from({"i-2": NEW}), [shown]))) is counts


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_first_node_that_describe_leaves_out_as_it_joins_is_one_of_the_two(is_shown):
    """It goes, and would else make room for a third one."""
    (second,) = made_from({"i-3": NEW})
    second = replace(second, phase=Phase.LAUNCHED, launched_at_s=NOW_S - 200)
    made = world(WELL, [*made_from({"i-2": NEW}), second], [node("i-2"), node("i-3")])
    if not is_shown:
        left = tuple(each for each in made.instances if each.instance_id != "i-3")
        made = replace(made, instances=left)

    found = [each.rollout for each in learns(plan(made)) if each.rollout]

    assert [each.tried for each in found] == [("i-2", "i-3")]


def test_what_aws_takes_does_not_count():
    (record,) = made_from({"i-2": NEW})
    noticed = world(WELL, [replace(record, reclaim_at_s=NOW_S + 60)], [SILENT])
    gone = replace(world(WELL, [record], [SILENT]), instances=())

    assert bad(noticed) == bad(gone) == ()


def test_nodes_of_older_templates_say_nothing():
    others = [replace(CHECKED, name="i-1"), busy("i-2")]
    late = replace(booting("i-3")[0], template=OLD.digest, launched_at_s=NOW_S - 1000)

    assert bad(world(WELL, BESIDE, others)) == ()
    assert bad(world(WELL, [late], [])) == ()


def doubtful(digest: str, count: int = 1) -> LaunchRecord:
    found = in_doubt()
    request = replace(found.request, tags=((TEMPLATE_TAG, digest),))
    launch = replace(found.launch, count=count)
    return replace(found, launch=launch, request=request)


@pytest.mark.parametrize(
    ("digest", "count", "shown", "room"),
    [("new-2", 1, 0, 0), ("new-2", 1, 1, 0), ("old-1", 1, 0, 1), ("new-2", 2, 1, 0)],
)
def test_each_node_of_a_launch_in_doubt_counts_once(digest, count, shown, room):
    doubt = doubtful(digest, count)
    rollout = WELL if count == 1 else replace(WELL, tried=("i-2",))
    made = replace(world(rollout, jobs=waiting(5)), launches=(doubt,))
    if shown:
        one = instance("i-8", launch_id=doubt.launch.launch_id)
        made = replace(made, instances=(replace(one, template="new-2"),))
    if digest == "new-2" and count == 1:
        made = replace(made, pool_history=(on_way(FIRST),))

    assert bought(plan(made)).get("new-2", 0) == room


RESTS = {
    "of the template": (of_template(NEW, Cure.IMAGE), 0),
    "of its nodes": (replace(of_template(NEW, Cure.NONE), template="new-2"), 0),
    "it is over": (replace(of_template(NEW, Cure.IMAGE), until_s=NOW_S - 1), 1),
    "of another pool": (replace(of_template(NEW, Cure.IMAGE), pool="a10g"), 1),
    "of another template": (of_template(OLD, Cure.IMAGE), 1),
}


@pytest.mark.parametrize("how", RESTS)
def test_what_rests_for_the_template_is_not_made_from_it(how):
    rest, room = RESTS[how]
    made = plan(replace(world(FIRST, jobs=waiting(2)), refused_templates=(rest,)))

    assert bought(made).get("new-2", 0) == room
    assert told(made) == [] or told(made)[0][0] is not RolloutCode.NOT_SOLD


def test_what_rests_for_the_template_does_not_come_instead_of_another_either():
    rest = replace(of_template(NEW, Cure.NONE), offering=replace(offering(), zone="us-east-1b"))
    made = plan(replace(world(FIRST, jobs=waiting(1)), refused_templates=(rest,)))

    (one,) = launches(made)
    assert one.template == NEW
    assert {each.zone for each in one.offerings} == {"us-east-1a"}


def test_refusals_of_others_give_nothing_up():
    twice = of_template(NEW, Cure.IMAGE, failures=2)
    for rest in (replace(twice, pool="a10g"), of_template(OLD, Cure.IMAGE, failures=2)):
        assert told(plan(replace(world(FIRST), refused_templates=(rest,))))[:1] == []


def given_up(rollout: Rollout, most: int) -> bool:
    pool = t4()
    patient = replace(pool, disruption=replace(pool.disruption, roll_back_after=most))
    late = failing("i-9", rollout)
    made = plan(seen(patient, (), late.nodes, pool_history=on_way(rollout)))
    return RolloutCode.BAD_NODES in [code for code, _ in told(made)]


@pytest.mark.parametrize(
    ("before", "bad_before", "most", "is_given_up"),
    [
        (WELL, 0, 1, True),
        (WELL, 1, 2, True),
        (WELL, 1, 5, True),
        (TENTH, 1, 5, False),
        (TENTH, 4, 5, True),
    ],
)
def test_two_first_nodes_are_enough_and_later_what_the_file_says(
    before, bad_before, most, is_given_up
):
    names = tuple(f"i-{number}" for number in range(3, 3 + bad_before))

    assert given_up(replace(before, bad=names), most) is is_given_up


def test_time_alone_ends_no_step_in_which_jobs_failed():
    late = replace(TENTH, step_since_s=NOW_S - 2 * WATCHED_S)

    assert learns(plan(world(replace(late, jobs=Tally(4, 1))))) == []
    assert learns(plan(world(replace(late, jobs=Tally(5, 1)))))[0].good == NEW


def test_a_job_that_runs_there_shows_as_much_as_one_that_has_ended():
    late = replace(WELL, step_since_s=NOW_S - WATCHED_S)
    records = made_from({"i-2": NEW})

    idle = plan(world(late, records, [node("i-2")]))
    at_work = plan(world(late, records, [busy("i-2")]))

    assert RolloutCode.TENTH not in [code for code, _ in told(idle)]
    assert RolloutCode.TENTH in [code for code, _ in told(at_work)]


def test_where_both_first_nodes_are_gone_no_job_is_waited_for():
    late = replace(WELL, step_since_s=NOW_S - WATCHED_S)

    one = plan(world(late, jobs=waiting(10)))
    both = plan(world(replace(late, tried=("i-2", "i-3")), jobs=waiting(10)))

    assert bought(one) == {"new-2": 1, "old-1": 9}
    assert RolloutCode.TENTH not in [code for code, _ in told(one)]
    assert RolloutCode.TENTH in [code for code, _ in told(both)]


def test_a_second_node_that_joins_begins_no_new_watch():
    records = [*made_from({"i-2": NEW}), *booting("i-3")]

    (after,) = learns(plan(world(WELL, records, [busy("i-2"), node("i-3")])))

    assert after.rollout is not None
    assert (after.rollout.tried, after.rollout.step_since_s) == (("i-2", "i-3"), WELL.step_since_s)


def test_what_a_failed_node_said_is_told_with_what_was_seen():
    (code, said) = told(plan(failing("i-3", WELL)))[0]

    assert code == RolloutCode.SEEN
    assert said.endswith(
        "1 of 2 first nodes joined well, 0 of 0 jobs failed there, "
        "i-3: it did not join as it should"
    )


GOES_ON = {
    "of the new one": of_template(NEW, Cure.IMAGE),
    "of another pool": replace(of_template(OLD, Cure.IMAGE), pool="a10g"),
    "a right": of_template(OLD, Cure.DENIED),
    "it is over": replace(of_template(OLD, Cure.IMAGE), until_s=NOW_S - 1),
}


@pytest.mark.parametrize("how", GOES_ON)
def test_the_way_back_is_there_until_ec2_refuses_the_last_good_template_itself(how):
    made = plan(replace(world(WELL), resting=(GOES_ON[how],)))

    assert learns(made) == []


FIRST_NODES = {
    "none yet": (FIRST, {}, 1),
    "one is there": (WELL, {"i-2": NEW}, 0),
    "one was there": (WELL, {}, 1),
    "two were there": (replace(WELL, tried=("i-2", "i-3")), {}, 0),
    "paused": (replace(FIRST, is_paused=True), {}, 0),
}


@pytest.mark.parametrize("how", FIRST_NODES)
def test_beside_busy_nodes_one_is_bought_that_shows_what_the_template_is(how):
    rollout, more, count = FIRST_NODES[how]
    records = made_from({"i-1": OLD, **more})
    nodes = [busy(each.instance_id) for each in records]

    made = plan(world(rollout, records, nodes, running(*(each.name for each in nodes))))

    assert bought(made) == ({"new-2": count} if count else {})


def test_of_a_launch_in_doubt_what_is_seen_counts_once():
    doubt = doubtful("new-2")
    one = instance("i-8", launch_id=doubt.launch.launch_id)
    shown = replace(world(TENTH, jobs=waiting(5)), launches=(doubt,))

    made = plan(replace(shown, instances=(replace(one, template="new-2"),)))

    assert bought(made)["new-2"] == 1


@pytest.mark.parametrize("rollout", [FIRST, WELL, TENTH], ids=["first", "second", "tenth"])
@pytest.mark.parametrize("least", [0, 1])
def test_no_old_node_goes_where_another_old_one_would_come(rollout, least):
    """What rests for the new template is bought from the old one, which would be drifted too."""
    rest = replace(of_template(NEW, Cure.NONE), template="new-2")
    records, nodes = made_from({"i-1": OLD}), [busy("i-1")]
    of = world(rollout, records, nodes, running("i-1"), min_nodes=least)

    made = plan(replace(of, refused_templates=(rest,)))
    elsewhere = replace(rest, offering=replace(rest.offering, zone="us-east-1b"))
    goes_on = plan(replace(of, refused_templates=(elsewhere,)))

    assert (bought(made), going(made)) == ({}, [])
    assert bought(goes_on) or going(goes_on)


def test_what_was_given_up_is_closed_while_slurm_deletes_it_not():
    """Slurm deletes no node that is in a reservation: an order to do so came back in each look."""
    reserved = node("i-2", state="IDLE+MAINTENANCE+RESERVED+DYNAMIC_NORM")

    made = plan(seen(t4(), [reserved], BESIDE, pool_history=on_way(BAD)))

    assert not orders(made, OrderKind.RELEASE)
    assert [each.names for each in orders(made, OrderKind.DRAIN)] == [("i-2",)]


def test_what_was_given_up_is_closed_while_a_job_waits_for_it_by_name():
    """Slurm would end the job with the node, so the agent kept it, and was asked in each look."""
    waits = replace(job(7), required_nodes=("i-2",))

    made = plan(seen(t4(), [node("i-2")], BESIDE, jobs=[waits], pool_history=on_way(BAD)))

    assert not orders(made, OrderKind.RELEASE)
    assert [each.names for each in orders(made, OrderKind.DRAIN)] == [("i-2",)]


def test_what_ec2_refuses_of_the_new_one_keeps_no_other_launch():
    rests = (of_template(NEW, Cure.IMAGE),)
    of = replace(world(FIRST, jobs=waiting(2)), resting=rests)

    assert refused(of) == rests
    once = replace(of, resting=(), refused_templates=rests)
    assert bought(plan(once)) == {"old-1": 2}
    twice = replace(once, refused_templates=(of_template(NEW, Cure.IMAGE, failures=2),))
    assert told(plan(twice))[0][0] == RolloutCode.NOT_SOLD
