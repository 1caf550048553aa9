"""`tidegate validate --live`: an account whose VPCs reach nothing by an internet gateway."""

from typing import Any

import pytest

from local.cloud_resources import CloudNames
from tests.cli.region import Region, names, region
from tests.contracts.conftest import cloud
from tidegate.wire.deployment import NEEDED_ENDPOINTS

__all__ = ["cloud", "names", "region"]

PRIVATE = {"network": {"endpoints": list(NEEDED_ENDPOINTS)}}
NAT = {"network": {"nat": "one"}}


@pytest.mark.parametrize(
    ("mode", "file", "is_told"),
    [
        ("block-ingress", {}, True),
        ("block-bidirectional", {}, True),
        ("block-ingress", NAT, False),
        ("block-bidirectional", NAT, True),
        ("block-bidirectional", PRIVATE, False),
        ("off", {}, False),
    ],
)
def test_a_network_of_its_own_needs_another_way_out(
    region: Region, mode: str, file: dict[str, Any], is_told: bool
):
    region.internet_block = mode

    told = [line for line in region.told(file) if line.startswith("network ")]

    assert len(told) == is_told
    for line in told:
        assert f"VPC Block Public Access of this account ({mode}) stops it" in line
        assert ("`nat: one`" in line) == (mode == "block-ingress")


def test_images_are_baked_in_a_network_that_has_no_other_way_out(region: Region):
    region.internet_block = "block-ingress"

    told = region.told({**NAT, "images": {}})

    assert any(line.startswith("images they are baked in a network whose way out") for line in told)


@pytest.mark.parametrize("left_out", ["", "vpc", "subnets"])
def test_a_network_of_yours_may_be_left_out_of_the_block(
    region: Region, names: CloudNames, left_out: str
):
    region.internet_block = "block-bidirectional"
    region.let_out = {"": [], "vpc": [names.vpc_id], "subnets": list(names.subnets.values())}[
        left_out
    ]

    told = region.told({"network": {"vpc": names.vpc_id, "subnets": dict(names.subnets)}})

    shut = [line for line in told if "VPC Block Public Access" in line]
    assert len(shut) == (0 if left_out else len(names.subnets))
    assert all(line.startswith("network.subnets.us-east-1") for line in shut)
