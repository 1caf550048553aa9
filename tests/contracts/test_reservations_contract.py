"""The account's reservations: the simulated feed and the real one on the local cloud."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from local.blocks import LocalBlocks
from local.cloud import LocalCloud
from local.trouble import Fault, Trouble
from tidegate.adapters.capacity_blocks import holdings
from tidegate.adapters.reservations import AwsReservations
from tidegate.core.model.capacity import Gone
from tidegate.core.model.errors import Throttled
from tidegate.service.reservations import ReservationFeed
from tidegate.sim.reservations import SimReservations

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
        ({"Interruptible": True}, "it is interruptible"),
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


def test_a_group_that_cannot_be_asked_about_now_is_throttled(
    cloud: LocalCloud, local: LocalBlocks
) -> None:
    cloud.trouble(Trouble("resource-groups:ListGroupResources", Fault.THROTTLED, times=3))

    with pytest.raises(Throttled):
        real(cloud).members(GROUP)

    assert real(cloud).members(GROUP) == IDS
