"""From when on what EC2 refused may not be asked for again."""

import pytest

from tests.sim.test_excuses import SPOT, first_node, witnessed
from tidegate.core.model.ec2 import FleetResult, Refusal, RefusalKind
from tidegate.service.control import Looked
from tidegate.sim.checks.resting import RefusalsRemembered
from tidegate.sim.checks.witness import Broken

REFUSED = FleetResult((), (Refusal(SPOT, RefusalKind.CAPACITY, "NoCapacity", "there is none"),))


@pytest.mark.parametrize("too_early_s", [0.0, 1.0])
def test_a_rest_begins_with_the_answer_however_long_its_look_goes_on(too_early_s: float) -> None:
    world, seen = witnessed()
    check = RefusalsRemembered(seen)
    check.begun()
    check.answered(first_node(world), REFUSED)
    world.clock.advance(40.0)
    check.looked(Looked())

    check.begun()
    world.clock.advance(world.cluster.timings.rest_min_s - 40.0 - too_early_s)

    if too_early_s:
        with pytest.raises(Broken, match="is tried again"):
            check.requested(first_node(world))
    else:
        check.requested(first_node(world))
