"""What an account has and allows, asked of the local cloud."""

import json
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from local.cloud import IMAGE_ID, LocalCloud
from local.cloud_resources import CloudNames
from tidegate.adapters.account import EBS_AWS_KEY, Account, Image
from tidegate.core.model.errors import NotAuthorized


def real_client(service: str) -> Any:
    """A client of AWS itself, whose answers a stub gives in AWS's own shape."""
    make: Any = boto3.client
    return make(service, "us-east-1", aws_access_key_id="none", aws_secret_access_key="none")


@pytest.fixture
def account(cloud: LocalCloud) -> Account:
    return Account(cloud.client)


def test_offerings_are_zones_by_type_and_unknown_types_have_none(account: Account):
    offered = account.offerings(["g5.xlarge", "zz9.large", *(f"q{n}.large" for n in range(250))])

    assert set(offered) == {"g5.xlarge"}
    assert "us-east-1a" in offered["g5.xlarge"]


def test_quotas_are_the_defaults_and_over_them_the_accounts_own():
    client = real_client("service-quotas")
    defaults = {"Running On-Demand P instances": 0.0, "All G and VT Spot Instance Requests": 0.0}
    own = {"All G and VT Spot Instance Requests": 64.0}
    with Stubber(client) as stub:
        for operation, values in (
            ("list_aws_default_service_quotas", defaults),
            ("list_service_quotas", own),
        ):
            quotas = [{"QuotaName": name, "Value": value} for name, value in values.items()]
            stub.add_response(operation, {"Quotas": quotas}, {"ServiceCode": "ec2"})

        assert Account(lambda _: client).quotas() == defaults | own


def test_who_may_not_ask_is_told_so():
    client = real_client("service-quotas")
    with Stubber(client) as stub:
        stub.add_client_error("list_aws_default_service_quotas", "AccessDeniedException", "no")

        with pytest.raises(NotAuthorized):
            Account(lambda _: client).quotas()


def test_a_role_is_there_or_not(cloud: LocalCloud, account: Account):
    trust = json.dumps({"Version": "2012-10-17", "Statement": []})
    cloud.client("iam").create_role(RoleName="there", AssumeRolePolicyDocument=trust)

    assert account.has_role("there")
    assert not account.has_role("not-there")


def test_an_image_tells_its_processors_and_the_keys_of_its_snapshots():
    client = real_client("ec2")
    image = {
        "Architecture": "arm64",
        "State": "available",
        "BlockDeviceMappings": [{"Ebs": {"SnapshotId": "snap-1"}}, {"VirtualName": "ephemeral0"}],
    }
    with Stubber(client) as stub:
        stub.add_response("describe_images", {"Images": [image]}, {"ImageIds": ["ami-1"]})
        snapshots = {"Snapshots": [{"SnapshotId": "snap-1", "KmsKeyId": "key-1"}]}
        stub.add_response("describe_snapshots", snapshots, {"SnapshotIds": ["snap-1"]})

        assert Account(lambda _: client).image("ami-1") == Image("arm64", "available", ("key-1",))


def test_an_image_that_is_not_there(account: Account):
    assert account.image("ami-0123456789abcdef0") is None


def test_networks_and_what_is_in_them(cloud: LocalCloud, account: Account, names: CloudNames):
    ec2 = cloud.client("ec2")
    zone, subnet_id = next(iter(names.subnets.items()))
    group = ec2.create_security_group(GroupName=names.cluster, Description="a", VpcId=names.vpc_id)[
        "GroupId"
    ]
    (node,) = ec2.run_instances(
        ImageId=IMAGE_ID, MinCount=1, MaxCount=1, SubnetId=subnet_id, InstanceType="m6i.large"
    )["Instances"]

    assert account.vpcs()[names.vpc_id].cidrs == ("172.31.0.0/16",)
    assert account.has_dns(names.vpc_id)
    subnet = account.subnet(subnet_id)
    assert subnet is not None
    assert (subnet.vpc_id, subnet.zone) == (names.vpc_id, zone)
    assert account.subnet("subnet-0123456789abcdef0") is None
    assert account.vpc_of_security_group(group) == names.vpc_id
    assert account.vpc_of_security_group("sg-0123456789abcdef0") is None
    assert account.vpc_of_instance(node["InstanceId"]) == names.vpc_id
    assert account.vpc_of_instance("i-0123456789abcdef0") is None
    ec2.terminate_instances(InstanceIds=[node["InstanceId"]])
    assert account.vpc_of_instance(node["InstanceId"]) is None


def test_names_of_instances_need_both_attributes_of_a_vpc(cloud: LocalCloud, account: Account):
    ec2 = cloud.client("ec2")
    vpc_id = ec2.create_vpc(CidrBlock="10.77.0.0/16")["Vpc"]["VpcId"]

    ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsSupport={"Value": True})
    ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})
    assert not account.has_dns(vpc_id)

    ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": True})
    assert account.has_dns(vpc_id)
    ec2.delete_vpc(VpcId=vpc_id)


def test_mount_targets_tell_zone_and_vpc(cloud: LocalCloud, account: Account, names: CloudNames):
    efs = cloud.client("efs")
    file_system = efs.create_file_system(CreationToken=names.cluster)["FileSystemId"]
    zone, subnet_id = next(iter(names.subnets.items()))
    efs.create_mount_target(FileSystemId=file_system, SubnetId=subnet_id)

    assert account.mount_targets(file_system) == {zone: names.vpc_id}
    assert account.mount_targets("fs-0123456789abcdef0") is None


def test_a_secret_is_there_or_not(account: Account, names: CloudNames):
    assert account.has_secret(names.munge_secret)
    assert not account.has_secret(f"{names.munge_secret}-none")


def test_a_key_tells_whose_it_is_and_who_may_use_it(cloud: LocalCloud, account: Account):
    kms = cloud.client("kms")
    key_id = kms.create_key()["KeyMetadata"]["KeyId"]
    role = "arn:aws:iam::123456789012:role/aws-service-role/spot.amazonaws.com/R"
    before = account.key(key_id)
    kms.create_grant(KeyId=key_id, GranteePrincipal=role, Operations=["Decrypt"])
    granted = account.key(key_id)
    kms.disable_key(KeyId=key_id)

    assert before is not None
    assert before.is_enabled
    assert before.is_customers
    assert before.grantees == ()
    assert [each["Effect"] for each in before.policy["Statement"]] == ["Allow"]
    assert granted is not None
    assert granted.grantees == (role,)
    disabled = account.key(key_id)
    assert disabled is not None
    assert not disabled.is_enabled
    assert account.key("11111111-2222-3333-4444-555555555555") is None


@pytest.mark.parametrize("key_id", [EBS_AWS_KEY, "arn:aws:kms:us-east-1:123456789012:key/a"])
def test_volumes_without_a_key_have_the_regions_default(key_id: str):
    client = real_client("ec2")
    with Stubber(client) as stub:
        stub.add_response("get_ebs_default_kms_key_id", {"KmsKeyId": key_id})

        assert Account(lambda _: client).default_ebs_key() == key_id


def test_what_a_block_of_the_internet_leaves_out():
    """Only what is in force, by its id."""
    client = real_client("ec2")
    arn = "arn:aws:ec2:us-east-1:123456789012"
    found = [
        {"ResourceArn": f"{arn}:vpc/vpc-0a1b2c3d", "State": "create-complete"},
        {"ResourceArn": f"{arn}:subnet/subnet-0a1b2c3d", "State": "update-complete"},
        {"ResourceArn": f"{arn}:vpc/vpc-0a1b2c3e", "State": "delete-in-progress"},
    ]
    mode = {"InternetGatewayBlockMode": "block-ingress"}
    with Stubber(client) as stub:
        stub.add_response(
            "describe_vpc_block_public_access_options", {"VpcBlockPublicAccessOptions": mode}
        )
        stub.add_response(
            "describe_vpc_block_public_access_exclusions",
            {"VpcBlockPublicAccessExclusions": found[:1], "NextToken": "more"},
        )
        stub.add_response(
            "describe_vpc_block_public_access_exclusions",
            {"VpcBlockPublicAccessExclusions": found[1:]},
            {"NextToken": "more"},
        )
        account = Account(lambda _: client)

        assert account.internet_block() == "block-ingress"
        assert account.let_out() == {"vpc-0a1b2c3d", "subnet-0a1b2c3d"}
