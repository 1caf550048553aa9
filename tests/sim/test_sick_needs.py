"""When a need whose nodes fell ill has to wait, and what else happened to its nodes."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.make import instance, job, node, record, snapshot
from tests.sim.test_excuses import first_node, witnessed
from tidegate.core.model.ec2 import FleetRequest
from tidegate.core.model.plan import Plan
from tidegate.core.model.slurm import SetBy, Shape
from tidegate.core.passes.futile import BACK_OFF_S
from tidegate.service.control import Looked, Round
from tidegate.service.outcome import Outcome
from tidegate.sim.checks.sickness import SLACK_S, SickNeedsWait
from tidegate.sim.checks.witness import Broken, Witness
from tidegate.sim.slurm_parts import SimJob, Submit
from tidegate.sim.world import SimWorld


@pytest.mark.parametrize("ago_s", [0.0, 100.0])
def test_a_back_off_may_have_begun_with_a_look_that_nobody_heard_of(ago_s: float) -> None:
    """Its planner wrote it down, and died before it had told."""
    world, seen = witnessed()
    check, began_s = SickNeedsWait(seen), world.clock.now_s()
    asked = fall_ill(world, seen, check, ["i-1", "i-2"], ago_s=ago_s)
    world.clock.set(began_s + BACK_OFF_S[0] - SLACK_S - 1.0)

    with pytest.raises(Broken, match="is for job 4, of which the nodes of 2 launches"):
        check.requested(asked)
    world.clock.advance(2.0)
    check.requested(asked)


def test_a_look_that_began_before_the_second_was_known_may_ask_for_a_third() -> None:
    """EC2 answers it after another look has seen both."""
    world, seen = witnessed()
    check = SickNeedsWait(seen)
    asked = fall_ill(world, seen, check, ["i-1", "i-2"])
    known = seen.record_of(asked)
    assert known
    with pytest.raises(Broken, match="is for job 4"):
        check.requested(asked)

    before = replace(known, created_at_s=world.clock.now_s())
    world.ledger.all_launches[known.launch.launch_id] = before
    check.requested(asked)


@pytest.mark.parametrize("is_shown_again", [False, True])
def test_a_node_that_ec2_does_not_show_is_dead_and_not_sick(is_shown_again: bool) -> None:
    """Its release as a dead one may be on its way when EC2 shows it again."""
    world, seen = witnessed()
    check = SickNeedsWait(seen)
    if is_shown_again:
        seen.chaos.left_out.add("i-2")

    check.requested(fall_ill(world, seen, check, ["i-1", "i-2"] if is_shown_again else ["i-1"]))


@pytest.mark.parametrize("is_of_a_run", [False, True])
def test_nodes_that_fell_ill_below_a_run_are_no_reason_to_wait_for_the_next(
    is_of_a_run: bool,
) -> None:
    world, seen = witnessed()
    check = SickNeedsWait(seen)
    run = SimJob(Submit("ada", Shape(1, "t4", 1, 1000), 60.0), "4", "") if is_of_a_run else None
    asked = fall_ill(world, seen, check, ["i-1", "i-2"], run=run)

    if is_of_a_run:
        check.requested(asked)
    else:
        with pytest.raises(Broken, match="is for job 4"):
            check.requested(asked)


def fall_ill(
    world: SimWorld,
    seen: Witness,
    check: SickNeedsWait,
    shown: Sequence[str],
    *,
    ago_s: float = 0,
    run: SimJob | None = None,
) -> FleetRequest:
    """Two launches for job 4, whose nodes are sick; the request for a third. `shown`: by EC2.
    `ago_s`: how long after that a planner looks. `run`: it began on those nodes before.
    """
    requests = [replace(first_node(world), client_token=f"t-{n}") for n in range(3)]
    for name, known in tuple(world.ledger.all_launches.items()):
        bought = replace(known.launch, for_jobs=("4",))
        world.ledger.all_launches[name] = replace(known, launch=bought)
    if run:
        world.clock.advance(1.0)
        check.started(run)
    names = ["i-1", "i-2"]
    seen.chaos.sickened.update(names)
    check.passed(1.0)
    world.clock.advance(ago_s)
    drained = "IDLE+DRAIN+DYNAMIC_NORM"
    ill = [node(n, state=drained, reason="Epilog error", set_by=SetBy.SLURM) for n in names]
    held = [replace(record(name), launch_id=f"l-{n}") for n, name in enumerate(names)]
    alive = [instance(name) for name in shown]
    snap = snapshot([job(4)], ill, records=held, instances=alive, of=world.cluster)
    check.looked(Looked([Round(snap, Plan((), (), ()), Outcome())]))
    third = seen.record_of(requests[2])
    assert third
    later = replace(third, created_at_s=world.clock.now_s() + 1.0)
    world.ledger.all_launches[third.launch.launch_id] = later
    return requests[2]
