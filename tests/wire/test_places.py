"""Regions and their zones; what a head may be, held against EC2's own table of instance types."""

import gzip
import json
from pathlib import Path

import botocore.session
import moto
import pytest
from pydantic import TypeAdapter

from tests.wire.cluster_files import good, load
from tidegate.wire.arns import foreign_arns, partition_of
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.names import Zone
from tidegate.wire.places import REGIONS, head_type

# Answers of DescribeInstanceTypes, which lack the older ones of P3.
TYPES = json.loads(
    gzip.decompress(
        (Path(moto.__file__).parent / "ec2/resources/instance_types.json.gz").read_bytes()
    )
)
XEN = {name for name, each in TYPES.items() if each.get("Hypervisor") == "xen"}
OLD_P3 = {f"p3.{size}xlarge" for size in (2, 8, 16)}


def test_every_region_is_of_the_partition_that_aws_says():
    known = botocore.session.get_session()

    said = {region: known.get_partition_for_region(region) for region in REGIONS}

    assert {region: partition_of(region) for region in REGIONS} == said


def test_ranges_of_addresses_are_written_as_ec2_takes_them(tmp_path: Path):
    """With the length of their prefix: EC2 refuses a bare address and a mask."""
    network = {"cidr": "10.20.0.0/255.255.0.0"}

    file = load(tmp_path, good({"network": network, "login": {"ssh_from": ["198.51.100.7"]}}))

    (login,) = file.login_kinds
    assert (file.network.cidr, login.model.ssh_from) == ("10.20.0.0/16", ("198.51.100.7/32",))


def test_arns_that_lead_back_to_themselves_end():
    node_policies: list[object] = ["arn:aws-cn:iam::123456789012:policy/x"]
    node_policies.append(node_policies)

    (found,) = foreign_arns({"node_policies": node_policies}, "us-east-1")

    assert found.path == "node_policies[0]"


def test_a_head_is_of_every_type_but_bare_metal_and_those_on_xen_whose_volumes_are_no_nvme():
    known = set(load_catalogue())
    metal = {name for name, row in load_catalogue().items() if row.is_bare_metal}

    refused = {name for name in known if is_refused(name)}

    assert refused == known & (XEN | OLD_P3) | metal
    assert refused > OLD_P3 | metal > OLD_P3


def is_refused(name: str) -> bool:
    try:
        return head_type(name) != name
    except ValueError as error:
        assert ("is bare metal" if ".metal" in name else "not built on Nitro") in str(error)
        return True


def test_a_head_is_told_what_to_take_instead():
    with pytest.raises(ValueError, match=r"take one like m6i\.large or t3\.medium"):
        head_type("t2.medium")


@pytest.mark.parametrize("region", sorted(REGIONS))
def test_every_region_s_zones_can_be_named(region):
    """That of the European Sovereign Cloud begins with four letters."""
    assert TypeAdapter(Zone).validate_python(f"{region}a") == f"{region}a"
