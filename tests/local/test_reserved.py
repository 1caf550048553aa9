"""Launches into reservations and blocks of the local EC2."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from local.cloud import IMAGE_ID, LocalCloud

ONLY = {"CapacityReservationPreference": "capacity-reservations-only"}
GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/gpus"
FULL = "ReservationCapacityExceeded"
NAME, LIFE = "cr-00000001", "capacity-block"


def held(**more: Any) -> dict[str, Any]:
    """What EC2 says of an open reservation of two, which has begun."""
    began = datetime.fromtimestamp(time.time() - 3600, UTC)
    return {
        "CapacityReservationId": NAME,
        "InstanceType": "g4dn.xlarge",
        "AvailabilityZone": "us-east-1a",
        "TotalInstanceCount": 2,
        "State": "active",
        "StartDate": began,
        "CreateDate": began,
        "InstanceMatchCriteria": "open",
        "ReservationType": "default",
        **more,
    }


def aimed(**wanted: Any) -> dict[str, Any]:
    target = {f"CapacityReservation{key}": value for key, value in wanted.items()}
    return {"CapacityReservationSpecification": {"CapacityReservationTarget": target}}


class Fleets:
    """What becomes of fleets in one subnet of us-east-1a."""

    def __init__(self, cloud: LocalCloud) -> None:
        self.ec2 = cloud.client("ec2")
        self.all_ids = list[str]()
        filters = [{"Name": "availability-zone", "Values": ["us-east-1a"]}]
        self.subnet = self.ec2.describe_subnets(Filters=filters)["Subnets"][0]["SubnetId"]

    def launch(
        self, count: int, *, kind: str = "on-demand", of: str = "g4dn.xlarge", **data: Any
    ) -> list[tuple[str, str]]:
        """The reservation and the life cycle of each instance; then codes of refusals."""
        made = self.ec2.create_launch_template(
            LaunchTemplateName=f"t{time.time_ns()}",
            LaunchTemplateData={"ImageId": IMAGE_ID, **data},
        )
        template = {
            "LaunchTemplateId": made["LaunchTemplate"]["LaunchTemplateId"],
            "Version": "1",
        }
        overrides = [{"InstanceType": of, "SubnetId": self.subnet}]
        lent = {"ReservationTypes": ["interruptible-capacity-reservation"]}
        answer = self.ec2.create_fleet(
            Type="instant",
            LaunchTemplateConfigs=[
                {"LaunchTemplateSpecification": template, "Overrides": overrides}
            ],
            TargetCapacitySpecification={
                "TotalTargetCapacity": count,
                "DefaultTargetCapacityType": kind,
            },
            **({"ReservedCapacityOptions": lent} if kind == "reserved-capacity" else {}),
        )
        self.ids = [one for each in answer["Instances"] for one in each["InstanceIds"]]
        self.all_ids += self.ids
        errors = [(each["ErrorCode"], "") for each in answer.get("Errors", ())]
        if not self.ids:
            return errors
        described = self.ec2.describe_instances(InstanceIds=self.ids)["Reservations"]
        return [
            (one.get("CapacityReservationId", ""), one.get("InstanceLifecycle", ""))
            for each in described
            for one in each["Instances"]
        ] + errors

    def free(self) -> list[int]:
        shown = self.ec2.describe_capacity_reservations()["CapacityReservations"]
        return [each["AvailableInstanceCount"] for each in shown]


@pytest.fixture
def fleets(cloud: LocalCloud) -> Iterator[Fleets]:
    cloud.blocks.clear()
    yield (made := Fleets(cloud))
    cloud.blocks.clear()
    if made.all_ids:
        made.ec2.terminate_instances(InstanceIds=made.all_ids)


def test_what_is_bought_by_the_hour_fills_an_open_reservation_first(
    cloud: LocalCloud, fleets: Fleets
) -> None:
    cloud.blocks.others.append(held())

    assert fleets.launch(1, of="g5.xlarge") == [("", "")]
    assert fleets.launch(3) == [(NAME, ""), (NAME, ""), ("", "")]
    assert fleets.free() == [0]
    fleets.ec2.terminate_instances(InstanceIds=fleets.ids)
    assert fleets.free() == [2]


def test_what_asks_for_reservations_alone_gets_nothing_else(
    cloud: LocalCloud, fleets: Fleets
) -> None:
    cloud.blocks.others.append(held())
    asked: dict[str, Any] = {"CapacityReservationSpecification": ONLY}

    assert fleets.launch(3, **asked) == [
        (NAME, ""),
        (NAME, ""),
        ("InsufficientInstanceCapacity", ""),
    ]
    assert fleets.launch(1, **asked) == [(FULL, "")]


def test_a_targeted_one_takes_what_names_it_alone(cloud: LocalCloud, fleets: Fleets) -> None:
    cloud.blocks.others.append(held(InstanceMatchCriteria="targeted"))

    assert fleets.launch(1) == [("", "")]
    assert fleets.launch(1, **aimed(Id=NAME)) == [(NAME, "")]
    assert fleets.launch(1, **aimed(Id="cr-00000009")) == [
        ("InvalidCapacityReservationId.NotFound", "")
    ]
    assert fleets.launch(1, of="g5.xlarge", **aimed(Id=NAME)) == [(FULL, "")]


def test_a_group_takes_as_many_as_its_members_hold(cloud: LocalCloud, fleets: Fleets) -> None:
    arn = f"arn:aws:ec2:us-east-1:123456789012:capacity-reservation/{NAME}"
    cloud.blocks.groups[GROUP] = [arn]
    cloud.blocks.others.append(held(InstanceMatchCriteria="targeted"))
    asked = aimed(ResourceGroupArn=GROUP)
    asked["CapacityReservationSpecification"] |= ONLY

    assert fleets.launch(2, **asked) == [(NAME, ""), (NAME, "")]
    assert fleets.launch(1, **asked) == [(FULL, "")]


@pytest.mark.parametrize(
    ("life", "kind", "more"),
    [
        (LIFE, LIFE, {"ReservationType": LIFE}),
        ("interruptible-capacity-reservation", "reserved-capacity", {"Interruptible": True}),
    ],
)
def test_a_block_and_what_is_lent_are_named_with_their_market(
    cloud: LocalCloud, fleets: Fleets, life: str, kind: str, more: dict[str, Any]
) -> None:
    cloud.blocks.others.append(held(InstanceMatchCriteria="targeted", **more))
    data = aimed(Id=NAME) | {"InstanceMarketOptions": {"MarketType": life}}

    assert fleets.launch(1, kind=kind, **data) == [(NAME, life)]
    assert fleets.free() == [1]


def test_a_block_that_has_not_begun_takes_nobody(cloud: LocalCloud, fleets: Fleets) -> None:
    cloud.blocks.others.append(held(ReservationType=LIFE, State="scheduled"))
    data = aimed(Id=NAME) | {"InstanceMarketOptions": {"MarketType": LIFE}}

    assert fleets.launch(1, kind=LIFE, **data) == [("InvalidCapacityReservationState", "")]


def test_efa_interfaces_are_counted(cloud: LocalCloud, fleets: Fleets) -> None:
    kinds = ("interface", "efa-only", "efa-only")
    cards = [
        {"NetworkCardIndex": card, "DeviceIndex": 0, "InterfaceType": kind}
        for card, kind in enumerate(kinds)
    ]

    fleets.launch(1, NetworkInterfaces=cards)

    assert cloud.capacity.efa_devices[fleets.ids[0]] == 2
