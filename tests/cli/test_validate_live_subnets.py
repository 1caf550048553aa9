"""`tidegate validate --live` of subnets that machines name for themselves."""

from tests.cli.region import Region, names, region
from tests.contracts.conftest import cloud

__all__ = ["cloud", "names", "region"]


def test_subnets_that_machines_name_for_themselves_are_looked_at_as_well(region: Region):
    """Nodes go into the next one where one is full: told only when all of them are."""
    (zone, first), (other, second) = list(region.names.subnets.items())[:2]
    ec2 = region.cloud.client("ec2")
    more = ec2.create_subnet(
        VpcId=region.names.vpc_id, CidrBlock="172.31.240.0/28", AvailabilityZone=zone
    )["Subnet"]["SubnetId"]
    ec2.modify_subnet_attribute(SubnetId=more, MapPublicIpOnLaunch={"Value": True})
    for number in range(4, 15):
        ec2.create_network_interface(SubnetId=more, PrivateIpAddress=f"172.31.240.{number}")
    machine = {"zone": zone, "subnet": second}
    changes = {
        "network": {"vpc": region.names.vpc_id, "subnets": {zone: first}},
        "pools.t4.zones": [zone],
    }

    wrong = region.told(changes | {"head": machine, "login": machine})
    full = region.told(changes | {"pools.t4.subnets": {zone: [more]}})
    beside = region.told(changes | {"pools.t4.subnets": {zone: [more, first]}})

    assert wrong == [f"{each}.subnet {second} is in {other}" for each in ("head", "login")]
    assert full == [f"pools.t4.subnets.{zone}[0] {more} has no free address left"]
    assert beside == []
