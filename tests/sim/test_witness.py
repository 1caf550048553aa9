"""What the checks know of who has read what."""

import pytest

from tests.make import T4, cluster, digest, pool
from tidegate.core.model.digest import Digest
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks.witness import Check, Checks, Witness
from tidegate.sim.draw import draw
from tidegate.sim.world import SimWorld


@pytest.mark.parametrize("other", ["hours", "interruption"])
def test_what_another_function_reads_while_a_planner_stands_still_is_not_what_that_has_read(
    other: str,
) -> None:
    heard: list[int] = []

    class Hears(Check):
        """Planners read digests."""

        def read(self, digest: Digest) -> None:
            heard.append(digest.stamp.sequence)

    world = SimWorld(cluster(pool(types=(T4,))), lambda instance: 60.0)
    seen = Witness(world, Chaos(draw(0), world))
    Checks(seen, (Hears,)).install()
    world.bus.put_digest(digest(sequence=1))
    world.actors.append("planner")
    began_s, view = world.clock.now_s(), world.ledger.view()
    world.bus.newest_digest()
    world.clock.advance(20.0)
    world.bus.put_digest(digest(sequence=2))
    world.actors.append(other)

    world.ledger.view()
    world.bus.newest_digest()

    assert (seen.viewed_s[1], seen.view()) == (began_s, view)
    assert seen.digests[1].stamp.sequence == 1
    assert heard == [1]
