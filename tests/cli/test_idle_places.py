"""What reservations cost while nobody uses them, those of a group one by one."""

from dataclasses import replace

from tests.core.test_reservation_groups import BLOCK, GROUP, odcr
from tests.make import T4, ZONE, cluster
from tidegate.cli.capacity.advise import idle_places
from tidegate.core.explain.capacity import lines
from tidegate.core.model.capacity import BlockState, Holding
from tidegate.core.model.capacity_advice import Advice, IdlePlaces


def test_each_member_of_a_group_costs_its_idle_places_on_demand() -> None:
    one, full = odcr("cr-1", 4, group=GROUP), odcr("cr-2", 1, group=GROUP)
    gone, silent = odcr("cr-3"), odcr("cr-4")
    unpriced = odcr("cr-5", type_="p5.48xlarge")
    named = [one, full, gone, silent, BLOCK, unpriced]
    known = [
        Holding(one, BlockState.ACTIVE, free=3),
        Holding(full, BlockState.ACTIVE, free=0),
        Holding(gone, BlockState.CANCELLED, free=1),
        Holding(silent, BlockState.ACTIVE),
        Holding(BLOCK, BlockState.ACTIVE, free=1),
        Holding(unpriced, BlockState.ACTIVE, free=2),
    ]

    found = idle_places(named, {each.reservation.id: each for each in known}, cluster())

    assert list(found) == [
        IdlePlaces(one, 3, round(3 * 0.526, 4)),
        IdlePlaces(BLOCK, 1, None),
        IdlePlaces(unpriced, 2, None),
    ]


def test_idle_places_are_a_line_each() -> None:
    idle = (
        IdlePlaces(odcr("cr-1", 4, group=GROUP), 3, 1.578),
        IdlePlaces(replace(BLOCK, count=2), 1, None),
    )
    advice = Advice("lab", 0.0, 0, (), (), (), (), (), idle, (), ())

    told = list(lines(advice, "lab.yaml"))

    assert f"cr-1 of group gpus, 4 x {T4.name} in {ZONE}: 3 idle, 1.58 USD an hour" in told
    assert f"cr-7, 2 x {T4.name} in {ZONE}: 1 idle, paid for" in told
