"""When buying by the hour is right although something that is paid for is free."""

from dataclasses import replace

import pytest

from tests.make import T4, ZONE, cluster, digest, job, pool
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.ec2 import LAUNCH_TAG, POOL_TAG, FleetRequest, Market, Offering, Override
from tidegate.core.model.ledger import Launch, LaunchRecord
from tidegate.service.control import Looked
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks.prepaid import COUNTED_LATE_S, PrepaidFirst
from tidegate.sim.checks.witness import Broken, Witness
from tidegate.sim.clock import START_S
from tidegate.sim.draw import draw
from tidegate.sim.slurm_parts import SimNode
from tidegate.sim.world import SimWorld

DAY_S = 86_400.0
OVERRIDE = Override(T4.name, ZONE, "subnet", 0)


def block(name: str, count: int, days: int) -> Reservation:
    market = Market.CAPACITY_BLOCK
    return Reservation(name, T4.name, ZONE, count, market, START_S - 600, START_S + days * DAY_S)


def holding(*reservations: Reservation) -> tuple[SimWorld, PrepaidFirst]:
    """Two jobs on two nodes together, and one planner that has read of them."""
    made = cluster(pool(types=(T4,)))
    markets = (*dict.fromkeys(each.market for each in reservations), *made.pools[0].markets)
    prices = {**made.prices, **{each.offering: 0.0 for each in reservations}}
    pools = (replace(made.pools[0], markets=markets),)
    of = replace(made, pools=pools, prices=prices, reservations=reservations)
    world = SimWorld(of, lambda instance: 60.0)
    world.clock.advance(300.0)
    check = PrepaidFirst(Witness(world, Chaos(draw(0), world)))
    check.witness.digests[check.witness.depth] = digest([job(1, nodes=2, time_limit_s=60.0)])
    return world, check


def note(world: SimWorld, name: str, count: int, starts: str = "") -> FleetRequest:
    """A launch that is written down and about to be asked for."""
    tags = ((LAUNCH_TAG, name), (POOL_TAG, "t4"))
    market = Market.ON_DEMAND
    request = FleetRequest(name, "lt", "1", market, count, count, (OVERRIDE,), tags)
    offerings, gang = (Offering(T4.name, ZONE, market),), "1" if count > 1 or starts else ""
    launch = Launch(name, "t4", offerings, count, count, ("1",), 0.5, gang, "", starts=starts)
    world.ledger.all_launches[name] = LaunchRecord(launch, world.clock.now_s(), request)
    return request


def buys_by_the_hour(world: SimWorld, check: PrepaidFirst, count: int) -> None:
    check.requested(note(world, f"l-{world.clock.now_s()}", count))


def fill(world: SimWorld, reservation: Reservation) -> None:
    """EC2 has a node of ours in it, which a template that names a block asked for."""
    tags, market = ((POOL_TAG, "t4"),), reservation.market
    number = len(world.compute.everything)
    asked = (OVERRIDE,)
    request = FleetRequest(f"f-{number}", f"lt-{reservation.id}", "1", market, 1, 1, asked, tags)
    world.compute.create_fleet(request)


def test_a_block_that_is_free_comes_before_what_is_paid_by_the_hour() -> None:
    world, check = holding(block("cr-1", 2, 1))

    with pytest.raises(Broken, match="cr-1 holds it ready"):
        buys_by_the_hour(world, check, 2)


def test_every_block_that_holds_a_gang_whole_comes_before_what_is_paid_by_the_hour() -> None:
    """Not those that only hold it together."""
    world, check = holding(block("cr-1", 1, 2), block("cr-2", 2, 1))
    with pytest.raises(Broken, match="cr-2 holds it ready"):
        buys_by_the_hour(world, check, 2)

    buys_by_the_hour(*holding(block("cr-1", 1, 2), block("cr-2", 1, 1)), 2)


def test_of_a_gang_that_is_started_each_node_is_a_launch_and_all_want_a_place() -> None:
    world, check = holding(block("cr-1", 1, 1))
    for request in [note(world, f"l-{name}", 1, starts=name) for name in ("i-1", "i-2")]:
        check.requested(request)

    world, check = holding(block("cr-1", 2, 1))
    first, _ = [note(world, f"l-{name}", 1, starts=name) for name in ("i-1", "i-2")]
    with pytest.raises(Broken, match="cr-1 holds it ready"):
        check.requested(first)


@pytest.mark.parametrize(("lasts_s", "is_held"), [(44.0, False), (46.0, True)])
def test_a_place_that_is_over_while_a_planner_acts_completes_no_gang(
    lasts_s: float, is_held: bool
) -> None:
    """Two reservations with a place each, of which one ends within the planner's 45 s."""
    last = replace(block("cr-1", 1, 1), market=Market.RESERVED)
    short = replace(last, id="cr-0", ends_at_s=START_S + 300.0 + lasts_s)
    world, check = holding(short, last)

    if is_held:
        with pytest.raises(Broken, match="cr-0 holds it ready"):
            buys_by_the_hour(world, check, 2)
    else:
        buys_by_the_hour(world, check, 2)
        with pytest.raises(Broken, match="cr-1 holds it ready"):
            buys_by_the_hour(world, check, 1)


def test_what_ended_as_it_booted_counts_until_a_look_past_its_boot_bound() -> None:
    """Describe may have left it out, and then it boots still."""
    held = block("cr-1", 2, 1)
    world, check = holding(held)
    fill(world, held)
    (booted,) = world.compute.live()
    world.compute.end(booted.instance_id)
    check.ended(booted)
    bound_s = world.cluster.timings.given_up_s

    world.clock.advance(bound_s - 10.0)
    look(world, check)
    buys_by_the_hour(world, check, 2)
    world.clock.advance(10.0 + COUNTED_LATE_S + 1.0)
    buys_by_the_hour(world, check, 2)
    look(world, check)
    with pytest.raises(Broken, match="cr-1 holds it ready"):
        buys_by_the_hour(world, check, 1)


def test_what_joined_and_is_no_good_rests_already_in_the_plan_that_finds_it() -> None:
    held = block("cr-1", 2, 1)
    for is_good in (True, False):
        world, check = holding(held)
        fill(world, held)
        (one,) = world.compute.live()
        check.joined(SimNode(one.instance_id, 4, 16000, int(is_good), "t4", ("t4",)))
        if is_good:
            with pytest.raises(Broken, match="cr-1 holds it ready"):
                buys_by_the_hour(world, check, 1)
        else:
            buys_by_the_hour(world, check, 1)
            world.clock.advance(COUNTED_LATE_S + 1.0)
            with pytest.raises(Broken, match="cr-1 holds it ready"):
                buys_by_the_hour(world, check, 1)


def look(world: SimWorld, check: PrepaidFirst) -> None:
    """One that has a digest of this very moment."""
    world.agent.tick()
    (done,) = world.control.look().rounds
    snapshot = replace(done.snapshot, now_s=world.clock.now_s(), digest_age_s=0.0)
    assert snapshot.digest is not None
    check.looked(Looked([replace(done, snapshot=snapshot)]))
