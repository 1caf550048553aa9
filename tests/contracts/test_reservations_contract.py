"""The account's reservations: the simulated feed and the real one on the local cloud."""

import time
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.blocks import LocalBlocks
from local.cloud import LocalCloud
from local.trouble import Fault, Trouble
from tidegate.adapters.capacity_blocks import holdings
from tidegate.adapters.reservations import AwsReservations
from tidegate.core.model.capacity import Gone
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.ec2 import FleetRequest, Market, Override
from tidegate.core.model.errors import Throttled
from tidegate.service.reservations import ReservationFeed
from tidegate.sim.clock import SimClock
from tidegate.sim.ec2 import SimCompute
from tidegate.sim.prepaid import Prepaid
from tidegate.sim.reservations import Owner, SimReservations

GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/gpus"
EMPTY = GROUP.replace("gpus", "none-yet")
IDS = ("cr-00000001", "cr-00000002", "cr-00000003")


def arn(name: str) -> str:
    return f"arn:aws:ec2:us-east-1:123456789012:capacity-reservation/{name}"


def reserved(name: str, **more: Any) -> dict[str, Any]:
    """A reservation in EC2's own words, which began an hour ago and is not cancelled."""
    began = datetime.fromtimestamp(time.time() // 60 * 60 - 3600, UTC)
    return {
        "CapacityReservationId": name,
        "InstanceType": "g4dn.xlarge",
        "InstancePlatform": "Linux/UNIX",
        "AvailabilityZone": "us-east-1a",
        "Tenancy": "default",
        "TotalInstanceCount": 4,
        "AvailableInstanceCount": 3,
        "State": "active",
        "StartDate": began,
        "CreateDate": began,
        "EndDateType": "unlimited",
        "InstanceMatchCriteria": "targeted",
        "ReservationType": "default",
        **more,
    }


@pytest.fixture
def local(cloud: LocalCloud) -> LocalBlocks:
    cloud.blocks.clear()
    cloud.blocks.others.extend(map(reserved, IDS))
    cloud.blocks.groups[GROUP] = [
        *map(arn, reversed(IDS)),
        "arn:aws:ec2:us-east-1:123456789012:instance/i-0",
    ]
    cloud.blocks.groups[EMPTY] = []
    return cloud.blocks


def real(cloud: LocalCloud) -> AwsReservations:
    return AwsReservations(cloud.client("ec2"), cloud.client("resource-groups"), "lab")


@pytest.fixture(params=["sim", "local cloud"])
def feed(request: pytest.FixtureRequest, cloud: LocalCloud, local: LocalBlocks) -> ReservationFeed:
    if request.param == "sim":
        has = list(holdings(cloud.client("ec2"), "lab"))
        return SimReservations(has, {GROUP: list(reversed(IDS)), EMPTY: []})
    return real(cloud)


def test_all_that_is_in_a_group_is_listed(feed: ReservationFeed) -> None:
    assert feed.members(GROUP) == IDS
    assert feed.members(EMPTY) == ()


def test_a_group_that_is_not_there_is_no_error(feed: ReservationFeed) -> None:
    assert isinstance(feed.members(GROUP + "-gone"), Gone)


def test_a_reservation_says_what_is_free_in_it(feed: ReservationFeed) -> None:
    first = feed.held()[0]

    assert (first.reservation.id, first.reservation.count, first.free) == (IDS[0], 4, 3)
    assert first.reservation.is_targeted


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"Tenancy": "dedicated"}, "its tenancy is dedicated"),
        ({"InstancePlatform": "Windows"}, "its platform is Windows"),
    ],
)
def test_what_our_launches_do_not_fit_says_why(
    cloud: LocalCloud, local: LocalBlocks, said: dict[str, Any], why: str
) -> None:
    local.others[:] = [reserved(IDS[0], **said)]

    (found,) = real(cloud).held()

    assert found.unusable == why


def test_what_an_owner_lends_is_of_a_market_of_its_own(
    cloud: LocalCloud, local: LocalBlocks
) -> None:
    local.others[:] = [reserved(IDS[0], Interruptible=True)]

    (found,) = real(cloud).held()

    assert found.reservation.market is Market.INTERRUPTIBLE
    assert found.unusable == ""
    assert not found.reservation.is_targeted, "its market says it"


def test_a_group_that_cannot_be_asked_about_now_is_throttled(
    cloud: LocalCloud, local: LocalBlocks
) -> None:
    cloud.trouble(Trouble("resource-groups:ListGroupResources", Fault.THROTTLED, times=3))

    with pytest.raises(Throttled):
        real(cloud).members(GROUP)

    assert real(cloud).members(GROUP) == IDS


class Owned:
    """An open reservation of four places, one of them taken, and who may change it."""

    def __init__(self, cloud: LocalCloud, local: LocalBlocks, *, is_open: bool) -> None:
        criteria = "open" if is_open else "targeted"
        local.others[:] = [reserved(IDS[0], InstanceMatchCriteria=criteria)]
        self.client, self.feed = cloud.client("ec2"), real(cloud)

    def split(self, count: int) -> None:
        self.client.create_capacity_reservation_by_splitting(
            SourceCapacityReservationId=IDS[0], InstanceCount=count
        )

    def move(self, to: str, count: int) -> None:
        self.client.move_capacity_reservation_instances(
            SourceCapacityReservationId=IDS[0],
            DestinationCapacityReservationId=to,
            InstanceCount=count,
        )

    def shown(self) -> list[tuple[int, int | None, str]]:
        return [(e.reservation.count, e.free, str(e.state)) for e in self.feed.held()]


class SimOwned:
    """The same in the simulated EC2."""

    def __init__(self, *, is_open: bool) -> None:
        of = Reservation(
            IDS[0], "g4dn.xlarge", "us-east-1a", 4, Market.RESERVED, 0.0, is_targeted=not is_open
        )
        self.compute = SimCompute(SimClock(), prepaid=Prepaid((of,)))
        template = "lt-t4/reserved" if is_open else f"lt-t4/{IDS[0]}"
        override = Override("g4dn.xlarge", "us-east-1a", "subnet", 0)
        self.compute.create_fleet(
            FleetRequest("token", template, "1", Market.RESERVED, 1, 1, (override,), ())
        )
        self.owner = Owner(self.compute)

    def split(self, count: int) -> None:
        self.owner.move(IDS[0], "cr-new", count)

    def move(self, to: str, count: int) -> None:
        self.owner.move(IDS[0], to, count)

    def shown(self) -> list[tuple[int, int | None, str]]:
        has = self.owner.feed().has
        return [(e.reservation.count, e.free, str(e.state)) for e in has]


@pytest.fixture(params=["sim", "local cloud"])
def owned(request: pytest.FixtureRequest, cloud: LocalCloud, local: LocalBlocks) -> Any:
    if request.param == "sim":
        return partial(SimOwned)
    return partial(Owned, cloud, local)


@pytest.mark.parametrize("is_open", [True, False])
def test_free_places_are_split_off_into_a_new_reservation(owned: Any, is_open: bool) -> None:
    of = owned(is_open=is_open)

    of.split(3)

    assert of.shown() == [(1, 0, "active"), (3, 3, "active")]


def test_an_instance_is_moved_between_open_reservations_alone(owned: Any) -> None:
    moved = owned(is_open=True)
    moved.split(1)
    other = next(name for name in ids(moved) if name != IDS[0])
    moved.move(other, 3)
    assert sorted(moved.shown())[-1] == (4, 3, "active")
    assert [each for each in moved.shown() if each[2] == "cancelled"], "all of it was moved"

    kept = owned(is_open=False)
    with pytest.raises((ClientError, AssertionError)):
        kept.split(4)


def ids(of: Owned | SimOwned) -> list[str]:
    held = of.feed.held() if isinstance(of, Owned) else of.owner.feed().held()
    return [each.reservation.id for each in held]
