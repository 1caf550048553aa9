"""UltraServers on the local cloud: offered and bought as a whole, each of them a block."""

import time
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.blocks import LocalBlocks
from local.cloud import LocalCloud
from tests.adapters.test_capacity_blocks import said
from tidegate.adapters.capacity_blocks import CapacityBlocks
from tidegate.adapters.reservations import AwsReservations
from tidegate.core.model.capacity import BlockOffer, Gone, Holding

TYPE, ZONE = "p6e-gb200.36xlarge", "us-east-1-dfw-2a"


def ultra(
    name: str = "cb-1", ultraserver: str = "u-p6e-gb200x72", many: int = 2, **more: Any
) -> dict[str, Any]:
    size = 9 if ultraserver.endswith("x36") else 18
    what: dict[str, Any] = {
        "InstanceType": TYPE,
        "AvailabilityZone": ZONE,
        "InstanceCount": many * size,
    }
    its: dict[str, Any] = {"UltraserverType": ultraserver, "UltraserverCount": many}
    return said(name, **what, **its, **more)


@pytest.fixture
def local(cloud: LocalCloud) -> LocalBlocks:
    cloud.blocks.clear()
    cloud.blocks.offers += [ultra(), ultra("cb-2", "u-p6e-gb200x36", 1)]
    return cloud.blocks


@pytest.fixture
def blocks(cloud: LocalCloud, local: LocalBlocks) -> CapacityBlocks:
    client = cloud.client("ec2")
    return CapacityBlocks(client, client, "lab")


def offers(blocks: CapacityBlocks, nodes: int = 36) -> tuple[BlockOffer, ...]:
    found = blocks.offers(TYPE, nodes, 2, time.time())
    assert not isinstance(found, Gone), found
    return found


def bought(blocks: CapacityBlocks) -> tuple[Holding, ...]:
    found = blocks.buy(offers(blocks)[0])
    assert not isinstance(found, Gone)
    return found


@pytest.mark.parametrize(
    ("nodes", "found"), [(36, ("cb-1", 36, 2)), (30, ("cb-1", 36, 2)), (7, ("cb-2", 9, 1))]
)
def test_nodes_are_asked_for_as_ultraservers(
    blocks: CapacityBlocks, nodes: int, found: tuple[str, int, int]
) -> None:
    (offer,) = offers(blocks, nodes)

    assert (offer.offer_id, offer.count, offer.ultraservers) == found
    assert (offer.instance_type, offer.unusable) == (TYPE, "")


def test_the_local_cloud_sells_no_single_instances_of_them(cloud: LocalCloud, local: Any) -> None:
    with pytest.raises(ClientError, match="not supported for Capacity Blocks"):
        cloud.client("ec2").describe_capacity_block_offerings(
            InstanceType=TYPE, InstanceCount=18, CapacityDurationHours=48
        )


def test_an_offer_that_names_no_instances_has_those_of_its_ultraservers(
    blocks: CapacityBlocks, local: LocalBlocks
) -> None:
    bare = {key: value for key, value in ultra().items() if key != "InstanceType"}
    local.offers[:] = [bare | {"InstanceCount": 0}]

    (offer,) = offers(blocks)

    assert (offer.instance_type, offer.count) == (TYPE, 36)


def test_each_ultraserver_of_a_purchase_is_a_reservation(
    blocks: CapacityBlocks, local: LocalBlocks
) -> None:
    """Also those that EC2's answer only names."""
    both = bought(blocks)

    assert [each.reservation.count for each in both] == [18, 18]
    assert len({each.reservation.id for each in both}) == 2
    assert len({each.reservation.block for each in both}) == 2
    shown = blocks.holdings()
    assert [each.reservation for each in shown] == [each.reservation for each in both]


def test_where_one_consists_of_several_they_share_its_block(
    blocks: CapacityBlocks, local: LocalBlocks
) -> None:
    local.parts = 2

    both = bought(blocks)

    assert [each.reservation.count for each in both] == [9] * 4
    names = [each.reservation.block for each in both]
    assert names[0] == names[1] != names[2] == names[3]


def test_a_lost_purchase_is_found_by_the_tags_of_its_blocks(
    blocks: CapacityBlocks, local: LocalBlocks
) -> None:
    """The reservations have none of their own here."""
    bought(blocks)

    assert [each.offer_id for each in blocks.holdings()] == ["cb-1", "cb-1"]
    other = CapacityBlocks(blocks.client, blocks.buyer, "other")
    assert [each.offer_id for each in other.holdings()] == ["", ""]


def test_ec2_says_which_interconnect_is_impaired(
    cloud: LocalCloud, blocks: CapacityBlocks, local: LocalBlocks
) -> None:
    first, _ = bought(blocks)
    feed = AwsReservations(cloud.client("ec2"), None, "lab")
    assert feed.impaired() == frozenset()

    local.interconnects[first.reservation.block] = "impaired"

    assert feed.impaired() == {first.reservation.block}


def test_what_takes_no_launches_now_is_known(blocks: CapacityBlocks, local: LocalBlocks) -> None:
    bought(blocks)
    local.bought[0]["LaunchStatus"] = "unlaunchable"

    assert [each.is_launchable for each in blocks.holdings()] == [False, True]
