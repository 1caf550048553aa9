"""How each capacity type is asked of EC2, and told by it."""

from typing import Any

import pytest
from botocore.stub import Stubber

from local import launch_rules
from tests.adapters.test_ec2 import client, compute, described, request, stub
from tidegate.adapters.ec2 import Ec2Compute, fleet_arguments
from tidegate.core.model.ec2 import Market

ZONES = {"subnet-a": "us-east-1a", "subnet-b": "us-east-1b"}

__all__ = ["client", "compute", "stub"]


def test_a_reservation_is_paid_as_on_demand_and_told_by_the_template_alone() -> None:
    """With `use-capacity-reservations-first` a fleet passes over templates that name one."""
    asked = fleet_arguments(request(market=Market.RESERVED), "demo")

    assert asked["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "on-demand"
    assert asked["OnDemandOptions"] == {"AllocationStrategy": "prioritized"}


def test_a_capacity_block_is_a_market_of_its_own() -> None:
    asked = fleet_arguments(request(market=Market.CAPACITY_BLOCK), "demo")

    assert asked["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "capacity-block"
    assert not {"SpotOptions", "OnDemandOptions"} & asked.keys()


def test_what_a_reservation_s_owner_lends_is_asked_for_as_such_and_nothing_instead() -> None:
    asked = fleet_arguments(request(market=Market.INTERRUPTIBLE, min_count=2), "demo")

    assert asked["Type"] == "instant"
    assert asked["TargetCapacitySpecification"] == {
        "TotalTargetCapacity": 2,
        "DefaultTargetCapacityType": "reserved-capacity",
    }
    lent = {"ReservationTypes": ["interruptible-capacity-reservation"]}
    assert asked["ReservedCapacityOptions"] == lent, "no fallback"
    assert not {"SpotOptions", "OnDemandOptions"} & asked.keys()


@pytest.mark.parametrize(
    ("described_as", "market"),
    [
        ({}, Market.ON_DEMAND),
        ({"InstanceLifecycle": "spot"}, Market.SPOT),
        (
            {"InstanceLifecycle": "capacity-block", "CapacityReservationId": "cr-0a1b2c3d"},
            Market.CAPACITY_BLOCK,
        ),
        ({"CapacityReservationId": "cr-0a1b2c3d"}, Market.RESERVED),
        (
            {
                "InstanceLifecycle": "interruptible-capacity-reservation",
                "CapacityReservationId": "cr-0a1b2c3d",
            },
            Market.INTERRUPTIBLE,
        ),
    ],
)
def test_an_instance_says_how_it_is_paid_for(
    compute: Ec2Compute, stub: Stubber, described_as: dict[str, str], market: Market
) -> None:
    shown = {"Reservations": [{"Instances": [described("i-1") | described_as]}]}
    stub.add_response("describe_instances", shown)

    (found,) = compute.instances()
    assert found.offering.market == market
    assert found.capacity_reservation_id == described_as.get("CapacityReservationId", "")


@pytest.mark.parametrize("market", list(Market))
def test_ec2_takes_what_each_capacity_type_asks(market: Market) -> None:
    asked = fleet_arguments(request(market=market), "demo")

    assert launch_rules.of_fleet(asked, ZONES) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"ReservedCapacityOptions": None},
        {"Type": "request"},
        {
            "TargetCapacitySpecification": {
                "TotalTargetCapacity": 2,
                "OnDemandTargetCapacity": 1,
                "DefaultTargetCapacityType": "reserved-capacity",
            }
        },
        {"TargetCapacitySpecification": {"DefaultTargetCapacityType": "on-demand"}},
    ],
)
def test_ec2_refuses_reserved_capacity_that_is_asked_in_another_way(wrong: dict[str, Any]) -> None:
    asked = fleet_arguments(request(market=Market.INTERRUPTIBLE), "demo") | wrong

    refused = launch_rules.of_fleet(asked, ZONES)

    assert refused is not None
    assert refused.code == "InvalidParameterCombination"
