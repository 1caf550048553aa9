"""`tidegate validate --live`: a VPC whose machines would not find each other by name."""

import pytest

from tests.cli.region import Region, names, region
from tests.contracts.conftest import cloud
from tidegate.cli.naming import node_domain

__all__ = ["cloud", "names", "region"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"domain-name-servers": ["AmazonProvidedDNS"], "domain-name": ["ec2.internal"]}, []),
        ({"domain-name-servers": ["AmazonProvidedDNS"]}, []),
        # The VPC's resolver by its addresses: the VPC is 172.31.0.0/16.
        ({"domain-name-servers": ["169.254.169.253"]}, []),
        ({"domain-name-servers": ["172.31.0.2", "fd00:ec2::253"]}, []),
        (
            {"domain-name-servers": ["10.0.0.2"]},
            ["has DNS servers of its own (10.0.0.2): unless they ask"],
        ),
        (
            {"domain-name-servers": ["10.0.0.9", "AmazonProvidedDNS"]},
            ["has DNS servers of its own beside Amazon's (10.0.0.9): a machine that asks these"],
        ),
        (
            {"domain-name-servers": ["172.31.0.2", "10.0.0.9"]},
            ["has DNS servers of its own beside Amazon's (10.0.0.9): a machine that asks these"],
        ),
        (
            {"domain-name-servers": ["10.0.0.9", "10.0.1.9"], "domain-name": ["ec2.internal"]},
            ["has DNS servers of its own (10.0.0.9, 10.0.1.9): unless they ask"],
        ),
        (
            {"domain-name-servers": ["AmazonProvidedDNS"], "domain-name": ["corp.example"]},
            ["completes names by corp.example, and EC2 knows nodes as INSTANCE.ec2.internal:"],
        ),
        (
            {
                "domain-name-servers": ["AmazonProvidedDNS"],
                "domain-name": ["corp.example ec2.internal"],
            },
            [],
        ),
        (
            {"domain-name-servers": ["10.0.0.9"], "domain-name": ["corp.example"]},
            ["has DNS servers of its own (10.0.0.9)", "completes names by corp.example"],
        ),
    ],
    ids=[
        "amazon's",
        "no domain",
        "its address",
        "two above the VPC",
        "two above another VPC",
        "a mix",
        "a mix by address",
        "own servers",
        "own domain",
        "both domains",
        "all its own",
    ],
)
def test_a_vpc_has_to_know_the_names_of_its_machines(
    region: Region, options: dict[str, list[str]], told: list[str]
):
    ec2 = region.cloud.client("ec2")
    vpc = region.names.vpc_id
    configured = [{"Key": key, "Values": values} for key, values in options.items()]
    made = ec2.create_dhcp_options(DhcpConfigurations=configured)["DhcpOptions"]["DhcpOptionsId"]
    ec2.associate_dhcp_options(DhcpOptionsId=made, VpcId=vpc)
    network = {"vpc": vpc, "subnets": dict(region.names.subnets)}

    found = [
        line
        for line in region.told({"network": network})
        if line.startswith((f"network.vpc: {vpc} has DNS", f"network.vpc: {vpc} completes"))
    ]
    ec2.associate_dhcp_options(DhcpOptionsId="default", VpcId=vpc)

    assert len(found) == len(told)
    for line, words in zip(found, told, strict=True):
        assert words in line


def test_a_vpc_without_dhcp_options_says_nothing(region: Region):
    network = {"vpc": region.names.vpc_id, "subnets": dict(region.names.subnets)}

    told = region.told({"network": network})

    assert not [line for line in told if "DNS servers" in line or "completes names" in line]


@pytest.mark.parametrize(
    ("of", "domain"),
    [
        ("us-east-1", "ec2.internal"),
        ("eu-west-1", "eu-west-1.compute.internal"),
        ("cn-north-1", "cn-north-1.compute.internal"),
    ],
)
def test_nodes_are_known_under_their_region(of: str, domain: str):
    assert node_domain(of) == domain
