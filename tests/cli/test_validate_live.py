"""`tidegate validate --live`: what the account lacks, all at once, before anything is deployed."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from botocore.exceptions import NoCredentialsError
from typer.testing import CliRunner

from local.cloud_resources import CloudNames
from tests.cli.region import LARGE_IMAGE, TRUST, Region, gateway, lead, names, region
from tests.contracts.conftest import cloud
from tests.contracts.test_alarms_contract import moto
from tests.wire.cluster_files import good
from tidegate.adapters.account import Account
from tidegate.cli.main import app
from tidegate.cli.own_parts import policy_problems
from tidegate.core.model.alarms import AlarmState
from tidegate.core.model.ec2 import SPOT_ROLE
from tidegate.wire.config import parse_cluster

__all__ = ["cloud", "names", "region"]


def in_network(names: CloudNames, **more: Any) -> dict[str, Any]:
    return {"network": {"vpc": names.vpc_id, "subnets": dict(names.subnets)}, **more}


def test_an_account_that_has_everything_says_so(region: Region):
    result = region.ask()

    assert result.exit_code == 0, result.output
    assert result.output.endswith("us-east-1 has what it needs\n")


def test_programs_get_the_account_s_problems_as_json(region: Region):
    region.quotas["All G and VT Spot Instance Requests"] = 0.0
    region.ask()

    given = ["validate", "--live", "--output", "json", str(region.file)]
    (told,) = json.loads(CliRunner().invoke(app, given, obj=region.client).output)

    assert not told["is_good"]
    assert any("All G and VT Spot" in each for each in told["problems"])


def test_problems_of_all_kinds_come_at_once_with_their_places(region: Region):
    region.quotas["All G and VT Spot Instance Requests"] = 0.0
    region.cloud.client("iam").delete_role(RoleName=SPOT_ROLE)
    result = region.ask({"image": "ami-0123456789abcdef0", "head.instance_type": "p4de.24xlarge"})
    region.cloud.client("iam").create_role(RoleName=SPOT_ROLE, AssumeRolePolicyDocument=TRUST)

    assert result.exit_code == 1
    paths = [line.split()[0] for line in result.output.splitlines() if line.startswith("  ")]
    assert {"pools.t4.capacity_types[0]", "image"} <= set(paths)
    assert "is 0 vCPUs" in result.output
    assert "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com" in (
        result.output
    )
    said = "ami-0123456789abcdef0 is not there, or not shared with this account, or kept from it"
    assert said in result.output


def test_a_zone_that_offers_no_type_of_a_pool_is_told(region: Region):
    changes = {
        "pools.t4.instance_types": ["p5en.48xlarge"],
        "pools.t4.zones": ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d", "us-east-1e"],
        "prices_usd_per_hour": {"p5en.48xlarge": {"on-demand": 60, "spot": 30}},
        "pools.t4.limits": {},
    }

    told = region.told(changes)

    dry = [line for line in told if "no instance type of the pool is offered in" in line]
    assert dry
    assert all(line.startswith("pools.t4.zones[") for line in dry)
    assert "they are in us-east-1" in dry[0]


def test_what_may_not_be_asked_is_said_and_hides_nothing_else(region: Region):
    region.may_ask_quotas = False

    result = region.ask({"image": "ami-0123456789abcdef0"})

    assert result.exit_code == 1
    assert (
        "not checked: Quotas of vCPUs let every pool reach its limits, head and login nodes start."
        " NotAuthorized: " in (result.output)
    )
    assert "ami-0123456789abcdef0 is not there" in result.output


def test_what_could_not_be_asked_is_not_called_good(region: Region):
    region.may_ask_quotas = False

    result = region.ask()

    last = result.output.splitlines()[-1]
    assert last.endswith(": nothing missing in us-east-1, but 2 checks could not ask")
    assert result.exit_code == 3


def test_without_credentials_it_fails_with_one_sentence_that_says_why(region: Region):
    def nobody(service: str) -> Any:
        raise NoCredentialsError

    region.file.write_text(yaml.safe_dump(good()))
    given = ["validate", "--live", str(region.file)]

    result = CliRunner().invoke(app, given, obj=nobody)

    assert result.exit_code == 1
    assert "AWS was not asked, it does not know who asks: Unable to locate credentials" in (
        result.output
    )
    assert "aws sts get-caller-identity" in result.output
    assert "not checked" not in result.output


def test_an_image_that_is_larger_than_a_root_volume_is_refused(region: Region):
    large = f"the root volume of {LARGE_IMAGE} has 120: EC2 would refuse every launch"

    assert region.told({"image": LARGE_IMAGE}) == [
        f"pools.t4.root_gib 100 GiB, {large}",
        f"head.root_gib 30 GiB, {large}",
    ]
    enough = {"image": LARGE_IMAGE, "pools.t4.root_gib": 120}
    assert region.told({**enough, "head.root_gib": 120}) == []
    head = {"head.image": LARGE_IMAGE, "head.root_gib": 119}
    assert region.told(head) == [f"head.root_gib 119 GiB, {large}"]


def test_the_newest_image_of_aws_is_held_against_the_root_volumes_as_well(region: Region):
    region.root_gib = 101

    nodes, head = region.told()

    assert nodes.startswith("pools.t4.root_gib 100 GiB, the root volume of ami-")
    assert head.startswith("head.root_gib 30 GiB, the root volume of ami-")


@pytest.mark.parametrize(
    ("quota", "changes", "words"),
    [
        ({"vpcs": 1.0}, {}, "network.cidr the quota `VPCs per Region` is 1, and "),
        ({"one_more": 1.0}, {"images": {}}, "network.cidr the quota `VPCs per Region` is "),
        ({"one_more": 1.0}, {}, ""),
        ({}, {"network.nat": "one"}, "network.nat the quota `EC2-VPC Elastic IPs` is 0, and 0 are"),
        ({}, {}, ""),
    ],
    ids=[
        "a VPC too many",
        "none for builds",
        "one left",
        "no address for the NAT gateway",
        "no NAT gateway",
    ],
)
def test_a_network_of_its_own_needs_a_place_in_the_quotas(
    region: Region, quota: dict[str, float], changes: dict[str, Any], words: str
):
    region.vpcs = quota.get("vpcs", 1000.0)
    if "one_more" in quota:
        region.vpcs = len(region.cloud.client("ec2").describe_vpcs()["Vpcs"]) + quota["one_more"]
    region.quotas["EC2-VPC Elastic IPs"] = 0.0

    told = [line for line in region.told(changes) if not line.startswith("images:")]

    assert [line.startswith(words) for line in told] == [True] * bool(words), told


def test_a_network_that_is_not_as_the_file_says(region: Region):
    ec2 = region.cloud.client("ec2")
    other = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnets = list(region.names.subnets.items())
    (zone, first), (second_zone, _) = subnets[:2]
    network = {
        "vpc": other,
        "subnets": {zone: first, second_zone: "subnet-0123456789abcdef0"},
        "connected": ["10.9.4.0/24"],
    }

    told = region.told({"network": network, "pools.t4.zones": [zone]})

    assert any(line.startswith("network.vpc") and "enableDnsHostnames" in line for line in told)
    assert f"network.subnets.{zone} {first} is in {region.names.vpc_id}, not in {other}" in told
    assert f"network.subnets.{second_zone} subnet-0123456789abcdef0 is not there" in told
    assert any(line.startswith("network.connected[0] 10.9.4.0/24 overlaps") for line in told)


def test_a_vpc_that_another_account_shares_takes_no_head_of_ours(region: Region):
    """Its private zone could not join that VPC, whatever else of it may be used."""
    changes = in_network(region.names)
    assert not [line for line in region.told(changes) if line.startswith("network.vpc ")]
    region.vpc_owner = "210987654321"

    (told,) = [line for line in region.told(changes) if line.startswith("network.vpc ")]

    assert told.startswith(f"network.vpc {region.names.vpc_id} is of account 210987654321, and the")


EFA_POOL = {
    "pools.t4.instance_types": ["p4d.24xlarge"],
    "pools.t4.efa": True,
    "pools.t4.limits": {},
    "prices_usd_per_hour": {"p4d.24xlarge": {"on-demand": 32, "spot": 12}},
}


@pytest.mark.parametrize(
    ("routed", "is_public", "changes", "words"),
    [
        (False, True, {}, "has no default route, and its VPC no interface endpoints"),
        (True, False, {}, "but it gives no public addresses: route it to a NAT gateway"),
        (True, True, EFA_POOL, "no public address to nodes with several network interfaces"),
        (True, True, {}, ""),
    ],
    ids=["no route", "no addresses", "several interfaces", "a way out"],
)
def test_a_subnet_from_which_nodes_reach_nothing(
    region: Region, routed: bool, is_public: bool, changes: dict[str, Any], words: str
):
    ec2, zone = region.cloud.client("ec2"), "us-east-1a"
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    made = ec2.create_subnet(VpcId=vpc, CidrBlock="10.7.0.0/24", AvailabilityZone=zone)["Subnet"]
    ec2.modify_subnet_attribute(SubnetId=made["SubnetId"], MapPublicIpOnLaunch={"Value": is_public})
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=table, SubnetId=made["SubnetId"])
    if routed:
        lead(region.cloud, table, gateway(region.cloud, vpc))
    network = {"vpc": vpc, "subnets": {zone: made["SubnetId"]}}

    told = region.told({**changes, "network": network, "pools.t4.zones": [zone]})

    found = [line for line in told if line.startswith(f"network.subnets.{zone} ")]
    assert (len(found), all(words in line for line in found)) == (1 if words else 0, True), told


def test_an_own_network_that_overlaps_another_one_is_a_note(region: Region):
    result = region.ask({"network": {"cidr": "172.31.0.0/20"}})

    assert result.exit_code == 0
    assert f"network.cidr: 172.31.0.0/20 overlaps 172.31.0.0/16 of {region.names.vpc_id}" in (
        result.output
    )


def test_a_file_system_in_another_vpc_or_without_mount_targets(region: Region):
    efs, ec2 = region.cloud.client("efs"), region.cloud.client("ec2")
    file_system = efs.create_file_system(CreationToken="elsewhere")["FileSystemId"]
    group = ec2.create_security_group(
        GroupName="files", Description="a", VpcId=region.names.vpc_id
    )["GroupId"]
    existing = {"file_system": file_system, "file_security_group": group}
    changes = in_network(region.names, existing=existing)
    (without,) = region.told(changes)
    vpc = ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.8.0.0/24", AvailabilityZone="us-east-1a")
    efs.create_mount_target(FileSystemId=file_system, SubnetId=subnet["Subnet"]["SubnetId"])

    assert without.startswith(f"existing.file_system {file_system} has no mount target in us-east")
    assert region.told(changes) == [
        f"existing.file_system {file_system} is in {vpc}, not in {region.names.vpc_id}"
    ]


def test_a_local_zone_needs_no_mount_target(region: Region):
    """EFS makes none there: its nodes use that of the head's zone."""
    efs, ec2 = region.cloud.client("efs"), region.cloud.client("ec2")
    file_system = efs.create_file_system(CreationToken="beside")["FileSystemId"]
    (zone, subnet), *_ = region.names.subnets.items()
    efs.create_mount_target(FileSystemId=file_system, SubnetId=subnet)
    group = ec2.create_security_group(
        GroupName="beside", Description="a", VpcId=region.names.vpc_id
    )["GroupId"]
    subnets = {zone: subnet, "us-east-1-dfw-2a": "subnet-0a1b2c3d"}
    network = {"vpc": region.names.vpc_id, "subnets": subnets}
    existing = {"file_system": file_system, "file_security_group": group}

    told = region.told(
        {"network": network, "existing": existing, "pools.t4.zones": [zone, "us-east-1-dfw-2a"]}
    )

    assert not [each for each in told if "mount target" in each]


def test_an_existing_head_that_is_not_there(region: Region):
    head = {
        "instance": "i-0123456789abcdef0",
        "host": "head.example",
        "role": "head",
        "security_group": "sg-0123456789abcdef0",
    }
    existing = {
        "head": head,
        "file_system": "fs-0123456789abcdef0",
        "file_security_group": "sg-0123456789abcdef1",
        "munge_secret": "arn:aws:secretsmanager:us-east-1:123456789012:secret:none-AbCdEf",
    }

    told = region.told(in_network(region.names, existing=existing))

    assert [line.split()[0] for line in told] == [
        "existing.head.instance",
        "existing.head.security_group",
        "existing.file_security_group",
        "existing.file_system",
        "existing.munge_secret",
    ]


def test_policies_that_no_role_here_can_have(region: Region):
    """IAM API reference, AttachRolePolicy: NoSuchEntity, after which the whole stack goes back."""
    iam = region.cloud.client("iam")
    allowed = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    ours = iam.create_policy(PolicyName="hooks", PolicyDocument=document)["Policy"]["Arn"]
    gone, theirs = f"{ours}-gone", ours.replace(ours.split(":")[4], "210987654321")

    told = region.told(
        {
            "head": {"policies": [ours, gone]},
            "node_policies": [theirs],
            "permissions_boundary": gone,
        }
    )

    assert told == [
        f"head.policies[1] {gone} is not there",
        f"node_policies[0] {theirs} is of account 210987654321: a role takes AWS's policies and"
        f" those of {ours.split(':')[4]}",
        f"permissions_boundary {gone} is not there",
    ]


def test_policies_of_aws_are_every_accounts():
    """Those that moto does not have."""
    asked: list[str] = []
    account = cast(
        "Account", SimpleNamespace(number=lambda: "123456789012", has_policy=asked.append)
    )
    of_aws = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"
    file = parse_cluster(json.dumps({**good(), "node_policies": [of_aws]}), "a file")

    (told,) = policy_problems(file, account)

    assert asked == [of_aws]
    assert told.text == f"{of_aws} is not there"


def test_buckets_that_lustre_cannot_be_linked_to(region: Region):
    s3 = region.cloud.client("s3")
    s3.create_bucket(Bucket="near-sets")
    far = {"LocationConstraint": "eu-west-1"}
    s3.create_bucket(Bucket="far-sets", CreateBucketConfiguration=far)
    links = [
        {"path": "/near", "s3": "near-sets/imagenet", "auto_import": ["NEW"]},
        {"path": "/far", "s3": "far-sets", "auto_import": ["NEW"]},
        {"path": "/out", "s3": "far-sets-out", "auto_export": ["NEW"]},
    ]

    told = region.told({"lustre": {"storage_gib": 1200, "data_repositories": links}})

    assert [each for each in told if "warning" not in each] == [
        "lustre.data_repositories[1].auto_import the bucket far-sets is in eu-west-1: FSx imports"
        " from us-east-1 alone",
        "lustre.data_repositories[2].s3 there is no bucket far-sets-out",
    ]


def test_an_alarm_that_is_not_there_is_told_and_one_that_is_in_alarm_as_well(region: Region):
    """A roll-out would wait for both, and nobody would know before."""
    _, put = moto(region.cloud)
    put("errors", AlarmState.ALARM)

    told = region.told({"rollout": {"alarms": ["errors", "eror"]}})

    region.cloud.client("cloudwatch").delete_alarms(AlarmNames=["errors"])
    assert (
        "rollout.alarms[1] there is no alarm eror, so a roll-out would wait for it; a composite "
        "one is shown to who may use cloudwatch:DescribeAlarms on *"
    ) in told
    assert "rollout.alarms[0]: errors is in ALARM: a roll-out waits until it is over" in told
