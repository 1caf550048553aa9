"""Which nodes of a bad template count against the two that it may have."""

from dataclasses import replace

import pytest

from tests.make import T4, cluster, pool
from tests.sim.test_excuses import first_node
from tests.sim.test_rolls import deploy
from tidegate.core.model.ec2 import Instance, Template
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.slurm import Shape
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks.rollout import BadImagesTouchTwo
from tidegate.sim.checks.witness import Broken, Witness
from tidegate.sim.draw import draw
from tidegate.sim.happenings import Happenings
from tidegate.sim.image import DEPLOYED, FAILS_JOBS, bad_image, spoil_image
from tidegate.sim.options import Happening
from tidegate.sim.slurm_parts import Submit
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


def test_a_job_that_is_suspended_when_it_would_fail_fails_once_it_goes_on() -> None:
    world = SimWorld(cluster(pool(types=(T4,))), lambda instance: 60.0)
    fails = next(seed for seed in range(99) if bad_image(_chaos(seed, world)) == FAILS_JOBS)
    spoil_image(_chaos(fails, world))
    deploy(world, Template("lt-t4", "2", DEPLOYED))
    job_id = world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 600.0))
    world.slurm.table.on_start.append(lambda job: world.slurm.suspend(job.job_id))

    world.step(300.0)
    states = [world.slurm.jobs[job_id].state]
    world.slurm.resume(job_id)
    world.step(10.0)

    assert [*states, world.slurm.jobs[job_id].state] == ["SUSPENDED", "FAILED"]


def _chaos(seed: int, world: SimWorld) -> Chaos:
    return Chaos(replace(draw(seed), faults=frozenset({"image"})), world)
