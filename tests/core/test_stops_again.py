"""A start that EC2 takes, and stops again for want of room."""

from dataclasses import replace

import pytest

from tests.core.reading import ended
from tests.core.test_stopped_nodes import ON_DEMAND, keeping, shown, started
from tests.make import NOW_S, snapshot
from tidegate.core.model.ec2 import NO_DISKS, NO_ROOM
from tidegate.core.model.ledger import Phase
from tidegate.core.model.plan import Learn, Rest
from tidegate.core.planner import plan


@pytest.mark.parametrize("why", [NO_ROOM, NO_DISKS])
@pytest.mark.parametrize("phase", [Phase.LAUNCHED, Phase.INTERRUPTED])
def test_what_ec2_stops_again_since_it_has_no_room_is_a_refusal_and_no_failed_boot(
    phase: Phase, why: str
) -> None:
    """Whether the event of its stop came before the look or not."""
    known = started(20.0, phase)
    if phase is Phase.INTERRUPTED:
        known = replace(known, interrupted_in=Phase.LAUNCHED, reclaim_at_s=NOW_S)
    again = replace(shown(), state_reason=why)

    made = plan(snapshot(of=keeping(), records=[known], instances=[again]))

    (rest,) = [each for each in made.actions if isinstance(each, Rest)]
    assert ended(made) == ["i-1"]
    assert rest.key == (ON_DEMAND, "", "", "", "")
    assert rest.code == why.partition(".")[2]
    assert "i-1" in rest.reason
    assert not [each for each in made.actions if isinstance(each, Learn)]


def test_what_stands_stopped_for_another_reason_says_nothing_of_room() -> None:
    ours = replace(shown(), state_reason="Client.UserInitiatedShutdown")

    made = plan(snapshot(of=keeping(), records=[started(20.0)], instances=[ours]))

    assert not [each for each in made.actions if isinstance(each, Rest)]
