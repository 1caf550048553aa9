"""Capacity Blocks on the local cloud: what is offered, bought once, and found again."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.blocks import LocalBlocks
from local.clients import client_at
from local.cloud import LocalCloud
from local.trouble import Fault, Trouble
from tidegate.adapters.capacity_blocks import CapacityBlocks
from tidegate.adapters.clients import BUYING, client_config
from tidegate.core.model.capacity import BlockOffer, BlockState, Gone, days_sold
from tidegate.core.model.errors import NotAuthorized, Throttled

TYPE, ZONE = "p5en.48xlarge", "us-east-1a"
DAY_S = 86400.0


def said(name: str = "cb-1", days: float = 2, **more: Any) -> dict[str, Any]:
    """An offer in EC2's own words, which begins in a day."""
    starts_s = time.time() // 60 * 60 + DAY_S
    return {
        "CapacityBlockOfferingId": name,
        "InstanceType": TYPE,
        "AvailabilityZone": ZONE,
        "InstanceCount": 8,
        "StartDate": datetime.fromtimestamp(starts_s, UTC),
        "EndDate": datetime.fromtimestamp(starts_s + days * DAY_S, UTC),
        "CapacityBlockDurationHours": int(days * 24),
        "UpfrontFee": "31104.0",
        "CurrencyCode": "USD",
        "Tenancy": "default",
        **more,
    }


@pytest.fixture
def local(cloud: LocalCloud) -> LocalBlocks:
    cloud.blocks.clear()
    cloud.blocks.offers.append(said())
    return cloud.blocks


@pytest.fixture
def blocks(cloud: LocalCloud, local: LocalBlocks) -> CapacityBlocks:
    client = cloud.client("ec2")
    return CapacityBlocks(client, client, "lab")


def offers(blocks: CapacityBlocks, count: int = 8, days: int = 2) -> tuple[BlockOffer, ...]:
    found = blocks.offers(TYPE, count, days, time.time())
    assert not isinstance(found, Gone), found
    return found


def test_an_offer_says_what_where_when_and_for_how_much(blocks: CapacityBlocks) -> None:
    (offer,) = offers(blocks)

    assert (offer.offer_id, offer.instance_type, offer.zone, offer.count) == ("cb-1", TYPE, ZONE, 8)
    assert (offer.hours, offer.usd, offer.fee) == (48, 31104.0, 31104.0)


def test_offers_come_in_the_order_of_their_beginning(
    blocks: CapacityBlocks, local: LocalBlocks
) -> None:
    later = datetime.fromtimestamp(time.time() + 3 * DAY_S, UTC)
    local.offers.insert(0, said("cb-0", StartDate=later))

    assert [each.offer_id for each in offers(blocks)] == ["cb-1", "cb-0"]


def test_what_our_nodes_cannot_be_launched_into_says_why(
    blocks: CapacityBlocks, local: LocalBlocks
) -> None:
    segment = {"InstanceType": TYPE, "AvailabilityZone": ZONE}
    local.offers += [
        said("cb-2", Tenancy="dedicated"),
        said("cb-4", CapacityBlockOfferingSegments=[segment, segment]),
        said("cb-5", CapacityBlockOfferingSegments=[segment]),
    ]

    assert {each.offer_id: each.unusable for each in offers(blocks)} == {
        "cb-1": "",
        "cb-2": "its tenancy is dedicated",
        "cb-4": "it is made of 2 segments",
        "cb-5": "",
    }


def test_a_price_in_another_currency_is_no_price_in_dollars(
    blocks: CapacityBlocks, local: LocalBlocks
) -> None:
    local.offers[:] = [said(CurrencyCode="CNY")]

    (offer,) = offers(blocks)

    assert (offer.usd, offer.fee, offer.currency) == (None, 31104.0, "CNY")


def test_a_type_that_is_not_sold_in_blocks_is_an_answer(blocks: CapacityBlocks) -> None:
    found = blocks.offers("g5.xlarge", 1, 1, time.time())

    assert found == Gone("g5.xlarge is not supported for Capacity Blocks.")


def test_who_asks_too_often_learns_nothing_rather_than_that_there_is_nothing() -> None:
    """The code stands in no list of botocore's, so that no client waits and asks again."""
    code = "CapacityBlockDescribeLimitExceeded"
    limited = Refusing("DescribeCapacityBlockOfferings", code)

    with pytest.raises(Throttled, match=code):
        CapacityBlocks(limited, limited, "lab").offers(TYPE, 8, 2, time.time())


def test_a_bought_block_is_found_again_by_its_offer(blocks: CapacityBlocks) -> None:
    (offer,) = offers(blocks)
    answer = blocks.buy(offer)

    assert not isinstance(answer, Gone)
    (bought,) = answer
    assert (bought.state, bought.offer_id) == (BlockState.PAYMENT_PENDING, "cb-1")
    assert (bought.reservation,) == offer.reservations(bought.reservation.id)
    (again,) = blocks.holdings()
    assert (again.reservation, again.offer_id) == (bought.reservation, "cb-1")
    assert again.state is BlockState.SCHEDULED


@pytest.mark.parametrize(("matches", "is_targeted"), [("open", False), ("targeted", True)])
def test_a_reservation_says_whether_it_takes_only_what_names_it(
    blocks: CapacityBlocks, local: LocalBlocks, matches: str, is_targeted: bool
) -> None:
    blocks.buy(offers(blocks)[0])
    local.bought[0] |= {"ReservationType": "default", "InstanceMatchCriteria": matches}

    (found,) = blocks.holdings()

    assert found.reservation.is_targeted is is_targeted


def test_another_cluster_s_block_is_not_ours(cloud: LocalCloud, blocks: CapacityBlocks) -> None:
    client = cloud.client("ec2")
    CapacityBlocks(client, client, "other").buy(offers(blocks)[0])

    assert [each.offer_id for each in blocks.holdings()] == [""]


def test_what_is_sold_meanwhile_is_gone_and_nothing_is_bought(
    blocks: CapacityBlocks, local: LocalBlocks
) -> None:
    (offer,) = offers(blocks)
    local.left["cb-1"] = 0

    found = blocks.buy(offer)

    assert found == Gone("The Capacity Block offering ID 'cb-1' is no longer available.")
    assert local.bought == []


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.SERVER_ERROR])
def test_a_purchase_without_an_answer_is_not_repeated(
    cloud: LocalCloud, local: LocalBlocks, blocks: CapacityBlocks, fault: Fault
) -> None:
    """EC2 would sell a second one: it has more of them, and knows no token."""
    local.left["cb-1"] = 9
    (offer,) = offers(blocks)
    trouble = cloud.trouble(Trouble("ec2:PurchaseCapacityBlock", fault))

    with pytest.raises(Throttled):
        CapacityBlocks(cloud.client("ec2"), buyer(cloud), "lab").buy(offer)

    assert trouble.left == 0
    assert len(local.bought) == (1 if fault is Fault.LOST_ANSWER else 0)


def test_the_client_that_buys_asks_once() -> None:
    assert client_config(BUYING).retries["total_max_attempts"] == 1  # type: ignore[attr-defined]


def buyer(cloud: LocalCloud) -> Any:
    return client_at(cloud.endpoint_url, "ec2", "local", config=client_config(BUYING))


@pytest.mark.parametrize(
    ("said_state", "is_lost"),
    [("payment-failed", True), ("cancelled", True), ("delayed", False), ("assessing", False)],
)
def test_the_states_of_a_block(
    blocks: CapacityBlocks, local: LocalBlocks, said_state: str, is_lost: bool
) -> None:
    answer = blocks.buy(offers(blocks)[0])
    assert not isinstance(answer, Gone)
    local.states[answer[0].reservation.id] = said_state

    (found,) = blocks.holdings()

    assert found.state.is_lost == is_lost


@pytest.mark.parametrize(
    ("least", "sold"), [(0.1, 1), (1, 1), (1.1, 2), (14, 14), (14.5, 21), (22, 28), (400, 182)]
)
def test_blocks_are_sold_by_days_and_then_by_weeks(least: float, sold: int) -> None:
    assert days_sold(least) == sold


def test_who_may_not_buy_is_told(blocks: CapacityBlocks, local: LocalBlocks) -> None:
    denied = Refusing("PurchaseCapacityBlock", "UnauthorizedOperation")

    with pytest.raises(NotAuthorized):
        CapacityBlocks(blocks.client, denied, "lab").buy(offers(blocks)[0])


class Refusing:
    """A client to which EC2 refuses one call with a code."""

    def __init__(self, call: str, code: str) -> None:
        said: Any = {"Error": {"Code": code, "Message": "Not now."}}
        self._error = ClientError(said, call)

    def purchase_capacity_block(self, **_: Any) -> Any:
        raise self._error

    def get_paginator(self, _: str) -> "Refusing":
        return self

    def paginate(self, **_: Any) -> Any:
        raise self._error
