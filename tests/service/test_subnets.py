"""A pool with several subnets in a zone: each is filled, and the next one is asked for then."""

from dataclasses import dataclass, replace

import pytest

from tests.make import T4, ZONE, cluster, job, offering, pool
from tests.service.conftest import World
from tidegate.core.model.ec2 import Market, Template
from tidegate.core.model.why import Why
from tidegate.core.offers.subnets import stopped_by
from tidegate.service.control import Control

FIRST, SECOND, THEIRS = "subnet-first", "subnet-second", f"subnet-{ZONE}"


@dataclass
class TwoSubnets(World):
    """Pool `own` names two subnets in the zone, pool `other` none."""

    def control(self, **newer: Template) -> Control:
        made = super().control(**newer)
        own = {f"own/{ZONE}": (FIRST, SECOND)}
        return replace(made, placement=replace(made.placement, pool_subnets=own))

    def asked(self) -> list[str]:
        """The subnets of all requests, in order."""
        return [one.subnet_id for each in self.compute.requests for one in each.overrides]


@pytest.fixture
def world() -> TwoSubnets:
    own, other = (pool(name, (T4,), markets=(Market.ON_DEMAND,)) for name in ("own", "other"))
    made = TwoSubnets(cluster(replace(own, weight=2), other))
    made.report([job(1)])
    return made


def test_the_first_subnet_is_asked_for_while_it_has_room(world: TwoSubnets) -> None:
    world.look()

    assert world.asked() == [FIRST]


def test_a_full_subnet_has_the_next_one_of_its_zone_asked_for_in_the_same_look(
    world: TwoSubnets,
) -> None:
    world.compute.full_subnets = {FIRST}

    world.look()

    assert world.asked() == [FIRST, SECOND]
    (one,) = world.compute.live()
    assert one.pool == "own"
    (rest,) = world.ledger.view().resting
    assert (rest.subnet, rest.pool, rest.code) == (FIRST, "", "InsufficientFreeAddressesInSubnet")


def test_it_is_passed_over_until_its_rest_is_over(world: TwoSubnets) -> None:
    world.compute.full_subnets = {FIRST}
    world.look()
    world.compute.full_subnets.clear()

    world.report([job(1), job(2)])
    world.look()
    world.clock.advance(world.of.timings.rest_min_s + 1.0)
    world.report([job(1), job(2), job(3)])
    world.look()

    assert world.asked() == [FIRST, SECOND, SECOND, FIRST]


def test_a_pool_whose_subnets_are_all_full_stops_alone(world: TwoSubnets) -> None:
    world.compute.full_subnets = {FIRST, SECOND}

    world.look()

    assert world.asked() == [FIRST, SECOND, THEIRS]
    (one,) = world.compute.live()
    assert one.pool == "other"


def test_every_pool_that_has_no_other_subnet_stops_with_a_full_one(world: TwoSubnets) -> None:
    """The second of them is not asked for what the first was refused."""
    alike = World(world.of)
    alike.compute.full_subnets = {THEIRS}
    alike.report([job(1)])

    alike.look()

    assert len(alike.compute.requests) == 1
    assert alike.compute.live() == ()


def test_the_job_hears_which_subnet_is_full_and_what_helps(world: TwoSubnets) -> None:
    world.compute.full_subnets = {FIRST, SECOND, THEIRS}

    looked = world.look()

    assert looked.last_known
    (unmet,) = looked.last_known.plan.unmet
    said = {each.pool: each for each in unmet.why_nots if each.kind is Why.RESTING}
    assert "InsufficientFreeAddressesInSubnet" in said["own"].sentence
    assert FIRST in said["own"].remedy
    assert "pools.own.subnets" in said["own"].remedy


def test_a_refusal_for_want_of_capacity_rests_in_every_subnet(world: TwoSubnets) -> None:
    on = offering(market=Market.ON_DEMAND)
    world.compute.shortages = {on: 0}

    world.look()

    assert world.asked() == [FIRST]
    (rest,) = world.ledger.view().resting
    assert (rest.offering, rest.subnet) == (on, "")


def test_a_rest_of_subnets_that_the_file_does_not_name_any_more_stops_nobody(
    world: TwoSubnets,
) -> None:
    world.compute.full_subnets = {FIRST}
    world.look()
    rests = world.ledger.view().resting

    now = stopped_by(rests, world.of.pools, lambda name, zone: (SECOND,))

    assert rests[0].subnet == FIRST
    assert now == ()


def test_where_no_subnets_are_known_it_stops_all(world: TwoSubnets) -> None:
    world.compute.full_subnets = {FIRST}
    world.look()
    rests = world.ledger.view().resting

    assert stopped_by(rests, world.of.pools, lambda name, zone: ()) == rests
