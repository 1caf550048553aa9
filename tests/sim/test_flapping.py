"""What counts as looks that undo each other, or ask the same again; and what does not."""

import pytest

from tests.sim.test_excuses import witnessed
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.slurm import Shape
from tidegate.sim.checks.flapping import SENT_MAX, TURNS_MAX, WITHIN_S, NoFlapping
from tidegate.sim.checks.witness import Broken
from tidegate.sim.slurm_parts import Submit

NAME = "i-1"


@pytest.mark.parametrize(("each_s", "is_fast"), [(1.0, True), (WITHIN_S, False)])
def test_a_node_that_opens_and_closes_in_turn_is_found_where_it_does_so_fast(
    each_s: float, *, is_fast: bool
) -> None:
    world, seen = witnessed()
    check = NoFlapping(seen)

    def turn(number: int) -> None:
        world.clock.advance(each_s)
        check.commanded(("drain", "undrain")[number % 2], (NAME,))

    for number in range(TURNS_MAX + 1):
        turn(number)
    if is_fast:
        with pytest.raises(Broken, match="was opened and closed 12 times in a minute"):
            turn(TURNS_MAX + 1)
    else:
        turn(TURNS_MAX + 1)


def test_a_node_that_opens_for_jobs_that_start_there_and_fail_at_once_makes_no_turn() -> None:
    world, seen = witnessed()
    check = NoFlapping(seen)
    job_id = world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 1.0))
    job = world.slurm.jobs[job_id]
    job.node_names = (NAME,)

    for number in range(TURNS_MAX * 4):
        check.commanded(("drain", "undrain")[number % 2], (NAME,))
        if number % 2:
            check.started(job)

    assert len(check.turns[NAME]) <= 1


def test_a_node_that_is_closed_again_and_again_makes_no_turn() -> None:
    _, seen = witnessed()
    check = NoFlapping(seen)

    for _ in range(TURNS_MAX + 2):
        check.commanded("drain", (NAME,))
    assert not check.turns


@pytest.mark.parametrize(
    ("kind", "fault", "is_found"),
    [
        (OrderKind.DRAIN, "", True),
        (OrderKind.CONSTRAIN, "", True),
        (OrderKind.REQUEUE, "", False),  # until a digest shows that it is carried out
        (OrderKind.DRAIN, "clock", False),  # the head takes each for too late
    ],
)
def test_an_order_that_each_look_repeats_is_found(
    kind: OrderKind, fault: str, *, is_found: bool
) -> None:
    world, seen = witnessed()
    world.clock.advance(600.0)
    check = NoFlapping(seen)
    if fault:
        seen.chaos.note(fault)
    order = Order("o-1", kind, (NAME,), world.clock.now_s() + 60.0)
    for _ in range(SENT_MAX):
        check.sent(order)

    if is_found:
        with pytest.raises(Broken, match=f"{kind} {NAME}: sent 12 times in a minute"):
            check.sent(order)
    else:
        check.sent(order)
