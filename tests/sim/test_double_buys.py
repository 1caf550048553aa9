"""What NoDoubleBuy makes of a node that boots beside what is bought."""

from dataclasses import replace

import pytest

from tests.make import T4, ZONE, cluster, digest, job, pool
from tidegate.core.model.ec2 import LAUNCH_TAG, POOL_TAG, FleetRequest, Market, Offering, Override
from tidegate.core.model.headroom import Headroom
from tidegate.core.model.ledger import Launch, LaunchRecord, LaunchStatus, NodeRecord
from tidegate.core.model.mig import profile, uniform
from tidegate.core.model.slurm import Shape
from tidegate.ports import Finished
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks.buying import NoDoubleBuy
from tidegate.sim.checks.witness import Broken, Checks, Witness
from tidegate.sim.draw import draw
from tidegate.sim.kept import of_another_kind
from tidegate.sim.world import SimWorld

SPOT = Offering(T4.name, ZONE, Market.SPOT)


@pytest.mark.parametrize("is_lossy", [True, False])
def test_a_job_that_begins_soon_is_as_the_look_knew_it_and_not_as_its_digest_was_written(
    is_lossy: bool,
) -> None:
    """A node that boots on spot counts for it, unless spot is dearer than on demand by now."""
    made = cluster(pool(types=(T4,)))
    prices = {**made.prices, SPOT: 0.55 if is_lossy else 0.2}
    world = SimWorld(replace(made, prices=prices), lambda instance: 400.0)
    seen = Witness(world, Chaos(draw(0), world))
    Checks(seen, ()).install()
    booting(world)
    begins_s = world.clock.now_s() + world.cluster.pools[0].boot_s + 30.0
    waiting = job(1, reason="BeginTime", begins_at_s=begins_s)
    world.bus.put_digest(replace(digest([waiting]), written_at_s=world.clock.now_s()))
    world.clock.advance(60.0)  # a node that is bought now is there as it begins
    world.actors.append("planner")
    world.bus.newest_digest()

    asked = recorded(world, Market.ON_DEMAND)

    if is_lossy:
        NoDoubleBuy(seen).requested(asked)
    else:
        with pytest.raises(Broken, match="makes 2 nodes that boot, 1 are waited for"):
            NoDoubleBuy(seen).requested(asked)


def booting(world: SimWorld, layout: str = "") -> None:
    world.compute.create_fleet(recorded(world, Market.SPOT, layout))
    (one,) = world.compute.live()
    node = NodeRecord(
        one.instance_id, one.launch_id, "t4", one.offering, one.launched_at_s, usd_per_hour=0.2
    )
    world.ledger.finish_launches(Finished(one.launch_id, LaunchStatus.DONE, [node]))


def recorded(world: SimWorld, market: Market, layout: str = "") -> FleetRequest:
    """The request for a node, for job 1."""
    name = f"l-{len(world.ledger.all_launches)}"
    tags = ((LAUNCH_TAG, name), (POOL_TAG, "t4"))
    override = Override(T4.name, ZONE, "subnet", 0)
    asked = FleetRequest(name, "lt-t4", "1", market, 1, 1, (override,), tags)
    offering = Offering(T4.name, ZONE, market)
    launch = Launch(name, "t4", (offering,), 1, 1, ("1",), 0.2, "", "it waits", layout=layout)
    world.ledger.all_launches[name] = LaunchRecord(launch, world.clock.now_s(), asked)
    return asked


@pytest.mark.parametrize(
    ("asked", "is_double"), [("t4_1g.5gb", True), ("t4_3g.20gb", False), ("", True)]
)
def test_a_node_that_boots_is_one_for_jobs_that_its_layout_holds(
    asked: str, is_double: bool
) -> None:
    """It was bought before anybody asked for larger parts of a GPU."""
    made = (
        profile("1g.5gb", "t4_1g.5gb", most=7, slices=7),
        profile("3g.20gb", "t4_3g.20gb", most=2, slices=7),
    )
    profiles = tuple(each for each in made if each)
    of = cluster(pool(types=(replace(T4, profiles=profiles),)))
    world = SimWorld(of, lambda instance: 400.0)
    seen = Witness(world, Chaos(draw(0), world))
    Checks(seen, ()).install()
    booting(world, uniform(profiles, 1))
    world.bus.put_digest(digest([job(1, gpu_type=asked)]))
    world.actors.append("planner")
    world.bus.newest_digest()

    request = recorded(world, Market.ON_DEMAND)

    if is_double:
        with pytest.raises(Broken, match="makes 2 nodes that boot, 1 are waited for"):
            NoDoubleBuy(seen).requested(request)
    else:
        NoDoubleBuy(seen).requested(request)


@pytest.mark.parametrize("kinds", [1, 2])
def test_what_a_job_took_of_another_kind_of_headroom_is_bought_again(kinds: int) -> None:
    """The node that was meant for it is too much of its kind then."""
    shapes = [Shape(1, "", 1, 0), Shape(1, "", 4, 0)][:kinds]
    kept = replace(pool(types=(T4,)), headroom=tuple(Headroom(each, 1) for each in shapes))
    world = SimWorld(cluster(kept), lambda instance: 400.0)
    booting(world)
    (one,) = world.compute.live()
    known = world.ledger.all_launches[one.launch_id]
    for_nobody = replace(known, launch=replace(known.launch, for_jobs=()))
    world.ledger.all_launches[one.launch_id] = for_nobody

    found = of_another_kind(world, kept, [job(1, on=[one.instance_id])])

    assert found == (0 if kinds == 1 else 1)
    assert of_another_kind(world, kept, [job(1)]) == 0
