"""Which nodes of a bad template count against the two that it may have."""

from dataclasses import replace

import pytest

from tests.make import T4, cluster, pool
from tests.sim.test_excuses import first_node
from tidegate.core.model.ec2 import Instance, Template
from tidegate.core.model.pool_history import PoolHistory
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks.rollout import BadImagesTouchTwo
from tidegate.sim.checks.witness import Broken, Witness
from tidegate.sim.draw import draw
from tidegate.sim.happenings import Happenings
from tidegate.sim.options import Happening
from tidegate.sim.world import SimWorld


@pytest.mark.parametrize("how", ["announced", "doomed", "cordoned"])
def test_a_third_node_may_come_for_one_that_aws_takes_and_for_no_other(how: str) -> None:
    """Its word is enough: the planner may end the node before AWS does."""
    world = SimWorld(cluster(pool(types=(T4,))), lambda instance: 60.0)
    seen = Witness(world, Chaos(replace(draw(0), faults=frozenset({"image"})), world))
    history = PoolHistory("t4", good=Template("lt-t4", "1", "one-1"))
    seen.views[seen.depth] = replace(world.ledger.view(), pool_history=(history,))
    check = BadImagesTouchTwo(seen)
    first = _launched(world)
    check.launched(first)
    check.launched(_launched(world))

    name = first.instance_id
    if how == "announced":
        seen.chaos.announced[name] = world.clock.now_s()
    else:
        (seen.chaos.doomed if how == "doomed" else seen.chaos.cordoned).add(name)

    if how == "cordoned":
        with pytest.raises(Broken, match="of pool t4 are from it"):
            check.launched(_launched(world))
    else:
        check.launched(_launched(world))


def _launched(world: SimWorld) -> Instance:
    (one,) = world.compute.create_fleet(first_node(world)).instances
    return one


def test_a_machine_that_dies_is_one_that_aws_took() -> None:
    """EC2 ends it without a word, as spot instances sometimes end."""
    world = SimWorld(cluster(pool(types=(T4,))), lambda instance: 60.0)
    death = Happening("death", 5.0, what="instance")
    chaos = Chaos(replace(draw(0), happenings=(death,), arrivals=(), faults=frozenset()), world)
    Happenings(chaos).begin()
    one = _launched(world)

    world.step(10.0)

    assert chaos.doomed == {one.instance_id}
    assert not world.compute.live()
