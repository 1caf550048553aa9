"""A refusal that lies in one pool's template rests nothing that another pool sells."""

from collections.abc import Generator, Sequence
from dataclasses import replace

import pytest

from tests.make import A10G, NOW_S, T4, cluster, job, offering, pool
from tests.service.conftest import World
from tidegate.core.model.cluster import Partition
from tidegate.core.model.ec2 import FleetRequest, Market, Template
from tidegate.core.model.errors import NotAuthorized
from tidegate.core.model.pool_history import FailedLaunch, PoolHistory
from tidegate.core.model.resting import Resting
from tidegate.ports import Answered
from tidegate.sim.clock import SimClock
from tidegate.sim.ec2 import SimCompute


def two_pools() -> World:
    """Both sell the same; `first` is asked before `second`. Templates lt-first:1, lt-second:1."""
    world = World(
        cluster(pool("first", (T4,), weight=2, markets=(Market.SPOT,)), pool("second", (T4,)))
    )
    world.report([job(1)])
    return world


def test_a_missing_template_of_one_pool_rests_nothing_of_another() -> None:
    world = two_pools()
    world.compute.missing = {"lt-first:1"}

    world.look()

    (rest,) = world.ledger.view().resting
    assert (rest.offering, rest.pool, rest.template) == (offering(), "first", "lt-first:1")
    (one,) = world.compute.live()
    assert (one.pool, one.offering) == ("second", offering())


def test_the_pool_itself_does_not_ask_again_before_its_time() -> None:
    world = two_pools()
    world.compute.missing = {"lt-first:1", "lt-second:1"}
    world.look()
    asked = len(world.compute.requests)

    world.report([job(1)])
    world.look()

    assert len(world.compute.requests) == asked


def test_a_new_version_is_tried_at_once() -> None:
    world = two_pools()
    world.compute.missing = {"lt-first:1", "lt-second:1"}
    world.look()
    world.report([job(1)])

    world.look(first=Template("lt-first", "2"))

    (one,) = world.compute.live()
    assert one.pool == "first"
    assert world.compute.requests[-1].launch_template_version == "2"


def test_a_new_version_that_is_refused_too_rests_as_long_as_any() -> None:
    world = two_pools()
    world.compute.missing = {"lt-first:1", "lt-first:2", "lt-second:1"}
    world.look()

    for _ in range(2):
        world.report([job(1)])
        world.look(first=Template("lt-first", "2"))

    first = [each for each in world.ledger.view().resting if each.pool == "first"]
    assert {each.template: each.failures for each in first} == {"lt-first:1": 1, "lt-first:2": 1}
    versions = [each.launch_template_version for each in world.compute.requests]
    assert versions.count("2") == 1


def test_a_shortage_rests_for_every_pool() -> None:
    world = two_pools()
    world.compute.shortages = {offering(): 0}

    world.look()

    (rest,) = world.ledger.view().resting
    assert (rest.pool, rest.template) == ("", "")
    asked = [each for each in world.compute.requests if each.market is Market.SPOT]
    assert len(asked) == 1


class SlowCompute(SimCompute):
    """EC2 takes half a minute for an answer."""

    def create_fleets(self, requests: Sequence[FleetRequest]) -> Generator[tuple[Answered, ...]]:
        assert isinstance(self.clock, SimClock)
        self.clock.advance(30.0)
        return super().create_fleets(requests)


def test_a_rest_begins_with_the_answer_however_long_it_took() -> None:
    world = two_pools()
    world.compute = SlowCompute(world.clock)
    world.compute.shortages = {offering(): 0}
    began_s = world.clock.now_s()

    world.look()

    (rest,) = world.ledger.view().resting
    assert rest.until_s >= began_s + 30.0 + world.of.timings.rest_min_s


def test_rights_that_one_pool_lacks_rest_nothing_of_another() -> None:
    world = two_pools()
    calls: list[str] = []

    def refuse(point: str) -> None:
        calls.append(point)
        if point == "before create_fleet" and calls.count(point) == 1:
            raise NotAuthorized("the key of the image is not shared")

    world.break_with(refuse)

    world.look()

    assert [each.pool for each in world.ledger.view().resting] == ["first"]
    assert [each.pool for each in world.compute.live()] == ["second"]


def failed(number: int) -> FailedLaunch:
    return FailedLaunch(f"l-{number}", NOW_S - 300, NOW_S - 60, "digest-1")


@pytest.mark.parametrize(("digest", "buys"), [("digest-1", False), ("digest-2", True)])
def test_a_new_image_opens_the_breaker_of_its_pool(digest: str, buys: bool) -> None:
    world = World(cluster(pool("only", (T4,))))
    world.ledger.learn(PoolHistory("only", tuple(map(failed, range(3)))))
    world.report([job(1)])

    world.look(only=Template("lt-only", "2", digest))

    assert bool(world.compute.live()) is buys


def test_pools_that_rest_apart_share_no_catalogue_of_what_is_paid_for() -> None:
    of = cluster(pool("first", (T4, A10G)), pool("second", (T4, A10G)))
    world = World(replace(of, partitions=(Partition("gpu", ("first",), is_default=True),)))
    for each in (offering(), offering(market=Market.ON_DEMAND)):
        world.ledger.rest(Resting(each, NOW_S + 60, 1, "x", "y", pool="second"))
    world.report([job(1)])

    world.look()

    assert [each.offering for each in world.compute.live()] == [offering()]
