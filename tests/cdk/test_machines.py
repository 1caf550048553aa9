"""Head, nodes and network. moto drops most of what is asked for here."""

import gzip
import hashlib
import json
import re

import pytest

from tests.cdk.made import Properties, Stack, dev_file, joined, synthesized
from tidegate.core.model.ec2 import CLUSTER_TAG
from userdata.render import MAX_USER_DATA_BYTES, node_bundle

IMDS = {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1}
RESOURCE_NAME = {"HostnameType": "resource-name", "EnableResourceNameDnsARecord": True}
NETWORK = {
    "vpc": "vpc-0a1b2c3d",
    "subnets": {
        "us-east-1a": "subnet-0a1b2c3d",
        "us-east-1b": "subnet-0a1b2c3e",
        "us-east-1c": "subnet-0a1b2c3f",
    },
}


def template_data(stack: Stack, pool: str) -> Properties:
    template = stack.named(f"NodesPool{pool}", "AWS::EC2::LaunchTemplate")
    return dict(template["LaunchTemplateData"])


def tags(properties: Properties) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in properties["Tags"]}


@pytest.mark.parametrize("pool", ["t4", "a10g"])
class TestLaunchTemplate:
    def test_there_is_one_for_each_pool_that_leaves_type_and_subnet_open(self, dev: Stack, pool):
        data = template_data(dev, pool)

        assert "InstanceType" not in data
        assert "SubnetId" not in data
        assert "NetworkInterfaces" not in data

    def test_metadata_needs_a_token_ends_at_the_host_and_shows_tags(self, dev: Stack, pool):
        assert template_data(dev, pool)["MetadataOptions"] == {
            **IMDS,
            "InstanceMetadataTags": "enabled",
        }

    def test_root_is_an_encrypted_gp3_volume_that_goes_with_the_node(self, dev: Stack, pool):
        (mapping,) = template_data(dev, pool)["BlockDeviceMappings"]

        assert mapping == {
            "DeviceName": "/dev/sda1",
            "Ebs": {
                "VolumeType": "gp3",
                "VolumeSize": 100,
                "Encrypted": True,
                "DeleteOnTermination": True,
            },
        }

    def test_node_that_powers_off_is_terminated(self, dev: Stack, pool):
        assert template_data(dev, pool)["InstanceInitiatedShutdownBehavior"] == "terminate"

    def test_node_is_found_by_its_instance_id(self, dev: Stack, pool):
        assert template_data(dev, pool)["PrivateDnsNameOptions"] == RESOURCE_NAME

    def test_node_and_volume_carry_the_cluster_s_tag(self, dev: Stack, pool):
        specifications = template_data(dev, pool)["TagSpecifications"]

        assert [each["ResourceType"] for each in specifications] == ["instance", "volume"]
        for each in specifications:
            assert tags(each) == {CLUSTER_TAG: "dev", "Name": f"tidegate-dev-{pool}"}

    def test_node_has_its_own_group_and_role(self, dev: Stack, pool):
        data = template_data(dev, pool)
        profile = dev.logical_id("NodesProfile", "AWS::IAM::InstanceProfile")
        group = dev.logical_id("NetworkNodeGroup", "AWS::EC2::SecurityGroup")

        assert joined(data["IamInstanceProfile"]["Arn"]) == f"<{profile}.Arn>"
        assert [joined(each) for each in data["SecurityGroupIds"]] == [f"<{group}.GroupId>"]

    def test_user_data_names_secret_and_files_and_fits(self, dev: Stack, pool):
        text = joined(template_data(dev, pool)["UserData"])

        assert "MUNGE_SECRET='<StorageMungeKey" in text
        assert "FILE_SYSTEM='<StorageFiles" in text
        assert len(text.encode()) < MAX_USER_DATA_BYTES

    def test_user_data_knows_its_bundle_by_its_hash(self, dev: Stack, pool):
        text = joined(template_data(dev, pool)["UserData"])

        bundle = bundle_of(dev, text)
        assert f"\nSHA256={hashlib.sha256(gzip.decompress(bundle)).hexdigest()}\n" in text
        assert "\nHEAD=head.tidegate-dev.internal:6817\n" in text


@pytest.mark.parametrize(
    ("instance_type", "interfaces"),
    [
        ("g4dn.8xlarge", [(0, 0, "efa")]),
        (
            "p4d.24xlarge",
            [(0, 0, "interface"), (0, 1, "efa-only"), *((n, 0, "efa-only") for n in range(1, 4))],
        ),
        (
            "trn1.32xlarge",
            [(0, 0, "interface"), (0, 1, "efa-only"), *((n, 0, "efa-only") for n in range(1, 8))],
        ),
        ("p6-b300.48xlarge", [(0, 0, "interface"), *((n, 0, "efa-only") for n in range(1, 17))]),
        (
            "p6e-gb200.36xlarge",
            [(0, 0, "interface"), *((n, 0, "efa-only") for n in (1, 5, 9, 13))],
        ),
    ],
)
def test_nodes_with_efa_have_it_on_each_card_and_one_address(tmp_path, instance_type, interfaces):
    pools = dev_file()["pools"]
    pools["t4"] |= {"instance_types": [instance_type], "efa": "true"}
    pools["t4"]["limits"] = {"gpus": "64"}
    apart = {}
    if instance_type.startswith("p6e"):  # an UltraServer's alone, and of arm64
        pools["t4"]["capacity_types"] = ["capacity-block"]
        names = [name for name in pools if name != "t4"]
        apart = {
            "partitions": {"t4": {"pools": ["t4"]}, "gpu": {"pools": names, "default": "true"}}
        }
    file = dev_file(
        pools=pools, network={"nat": "one"}, prices_usd_per_hour=None, limits=None, **apart
    )

    stack = synthesized(tmp_path, file)["tidegate-dev"]

    data = template_data(stack, "t4")
    assert "SecurityGroupIds" not in data
    found = data["NetworkInterfaces"]
    assert [
        (each["NetworkCardIndex"], each["DeviceIndex"], each["InterfaceType"]) for each in found
    ] == interfaces
    group = template_data(stack, "a10g")["SecurityGroupIds"]
    assert all(each["Groups"] == group for each in found)
    count = sum(kind != "interface" for _, _, kind in interfaces)
    told = joined(data["UserData"])
    assert f" {count} " in told.split(instance_type)[1].splitlines()[0]


def bundle_of(stack: Stack, text: str) -> bytes:
    """The file that the assembly uploads to where `text` fetches its bundle."""
    (key,) = re.findall(r"BUNDLE=\S+/(\w+)\.tgz", text)
    manifest = json.loads((stack.folder / "tidegate-dev.assets.json").read_text())
    source = manifest["files"][key]["source"]
    assert source["packaging"] == "file"
    found: bytes = (stack.folder / source["path"]).read_bytes()
    return found


def test_each_pool_s_nodes_know_their_own_instance_types(dev: Stack):
    t4, a10g = (joined(template_data(dev, pool)["UserData"]) for pool in ("t4", "a10g"))

    assert "g4dn.xlarge" in t4
    assert "g4dn.xlarge" not in a10g
    assert bundle_of(dev, t4) == bundle_of(dev, a10g) == node_bundle().archive


def test_another_pool_changes_no_launch_template_and_not_the_head_s_user_data(dev: Stack, tmp_path):
    pools = dev_file()["pools"]
    more = {**pools, "more": {**pools["a10g"], "weight": "1"}}
    partitions = {"gpu": {"pools": list(more), "default": "true"}}

    made = synthesized(tmp_path, dev_file(pools=more, partitions=partitions))["tidegate-dev"]

    for pool in ("t4", "a10g"):
        assert template_data(made, pool) == template_data(dev, pool)
    assert made.one("AWS::EC2::Instance") == dev.one("AWS::EC2::Instance")
    assert made.one("AWS::SSM::Parameter") != dev.one("AWS::SSM::Parameter")


class TestHead:
    def test_is_reached_by_a_token_only_and_encrypted(self, dev: Stack):
        head = dev.one("AWS::EC2::Instance")

        assert head["MetadataOptions"] == IMDS
        assert head["PrivateDnsNameOptions"] == RESOURCE_NAME
        (root,) = head["BlockDeviceMappings"]
        assert root["Ebs"] == {"VolumeType": "gp3", "VolumeSize": 30, "Encrypted": True}

    def test_is_found_by_its_tags(self, dev: Stack):
        assert tags(dev.one("AWS::EC2::Instance")) == {
            "Name": "tidegate-dev-head",
            "tidegate:cluster": "dev",
            "tidegate:role": "head",
        }

    def test_has_its_own_group_and_no_key(self, dev: Stack):
        head = dev.one("AWS::EC2::Instance")
        group = dev.logical_id("NetworkHeadGroup", "AWS::EC2::SecurityGroup")

        assert [joined(each) for each in head["SecurityGroupIds"]] == [f"<{group}.GroupId>"]
        assert "KeyName" not in head

    def test_is_terminated_by_no_call_where_the_file_says_so(self, dev: Stack, tmp_path):
        file = dev_file(head={"termination_protection": True})
        protected = synthesized(tmp_path, file)["tidegate-dev"]

        assert protected.one("AWS::EC2::Instance")["DisableApiTermination"] is True
        assert dev.one("AWS::EC2::Instance")["DisableApiTermination"] is False

    def test_boots_when_files_and_the_way_out_are_there(self, dev: Stack):
        ((_, head),) = dev.resources("AWS::EC2::Instance")
        targets = {logical_id for logical_id, _ in dev.resources("AWS::EFS::MountTarget")}
        routes = {logical_id for logical_id, _ in dev.resources("AWS::EC2::Route")}
        tables = dev.resources("AWS::EC2::SubnetRouteTableAssociation")

        assert targets | routes | {name for name, _ in tables} <= set(head["DependsOn"])

    def test_has_an_encrypted_data_volume_of_the_size_in_the_file(self, tmp_path):
        file = dev_file(head={"volume_gib": "77", "instance_type": "m6i.xlarge"})

        stacks = synthesized(tmp_path, file)

        made = stacks["tidegate-dev"]
        volume = stacks["tidegate-dev-data"].one("AWS::EC2::Volume")
        assert (volume["VolumeType"], volume["Encrypted"], volume["Size"]) == ("gp3", True, 77)
        assert volume["AvailabilityZone"] == "us-east-1a"
        head = made.one("AWS::EC2::Instance")
        assert [each["Device"] for each in head["Volumes"]] == ["/dev/sdf"]
        assert head["InstanceType"] == "m6i.xlarge"

    def test_has_its_volume_as_a_property_so_that_it_unmounts_before_it_is_detached(self, dev):
        kinds = {each["Type"] for each in dev.template["Resources"].values()}

        assert "AWS::EC2::VolumeAttachment" not in kinds

    def test_root_volumes_are_of_the_size_and_come_at_the_rate_in_the_file(self, tmp_path):
        pools = dev_file()["pools"]
        pools["t4"] |= {"root_gib": "250", "root_initialization_mib_s": "300"}
        made = synthesized(tmp_path, dev_file(head={"root_gib": "80"}, pools=pools))["tidegate-dev"]

        (head,) = made.one("AWS::EC2::Instance")["BlockDeviceMappings"]
        of_pools = [
            template_data(made, pool)["BlockDeviceMappings"][0]["Ebs"] for pool in ("t4", "a10g")
        ]
        assert (head["Ebs"]["VolumeSize"], [each["VolumeSize"] for each in of_pools]) == (
            80,
            [250, 100],
        )
        assert [each.get("VolumeInitializationRate") for each in of_pools] == [300, None]

    def test_root_volumes_are_as_fast_as_the_file_says(self, tmp_path):
        pools = dev_file()["pools"]
        pools["t4"] |= {"root_iops": "6000", "root_throughput_mib_s": "500"}
        made = synthesized(tmp_path, dev_file(pools=pools))["tidegate-dev"]

        root = template_data(made, "t4")["BlockDeviceMappings"][0]["Ebs"]
        assert (root["VolumeType"], root["Iops"], root["Throughput"]) == ("gp3", 6000, 500)
        usual = template_data(made, "a10g")["BlockDeviceMappings"][0]["Ebs"]
        assert {"Iops", "Throughput"}.isdisjoint(usual)

    def test_has_a_name_that_follows_its_address(self, dev: Stack):
        zone = dev.one("AWS::Route53::HostedZone")
        record = dev.one("AWS::Route53::RecordSet")
        head = dev.logical_id("HeadInstance", "AWS::EC2::Instance")

        assert zone["Name"].rstrip(".") == "tidegate-dev.internal"
        assert record["Name"].rstrip(".") == "head.tidegate-dev.internal"
        assert (record["Type"], record["TTL"]) == ("A", "30")
        assert [joined(each) for each in record["ResourceRecords"]] == [f"<{head}.PrivateIp>"]

    def test_agent_is_told_where_everything_is(self, dev: Stack):
        text = joined(dev.one("AWS::SSM::Parameter")["Value"])

        assert 'TIDEGATE_BUCKET="<StorageDigests' in text
        assert 'TIDEGATE_BUS="<EventsBus' in text
        assert 'TIDEGATE_URGENT_QUEUE_URL="<QueuesUrgent' in text
        assert 'TIDEGATE_ROUTINE_QUEUE_URL="<QueuesRoutine' in text
        assert len(text.encode()) < MAX_USER_DATA_BYTES


def test_nodes_image_is_looked_up_at_each_deployment(dev: Stack):
    defaults = {name: each["Default"] for name, each in dev.template["Parameters"].items()}

    assert defaults.keys() == {"NodeImage", "BootstrapVersion"}
    assert "/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-" in defaults["NodeImage"]
    assert joined(template_data(dev, "t4")["ImageId"]) == "<NodeImage>"


def test_head_s_image_is_looked_up_at_its_launch_and_never_again(dev: Stack):
    """Nothing that a newer image changes may stand in the head's properties: it is replaced."""
    head = dev.one("AWS::EC2::Instance")
    name = dev.logical_id("ImagesHead", "AWS::EC2::LaunchTemplate")
    template = dev.named("ImagesHead", "AWS::EC2::LaunchTemplate")

    assert "ImageId" not in head
    assert head["LaunchTemplate"] == {"LaunchTemplateId": {"Ref": name}, "Version": "1"}
    assert template["LaunchTemplateData"].keys() == {"ImageId"}
    image = template["LaunchTemplateData"]["ImageId"]
    assert image.startswith("resolve:ssm:/aws/service/canonical/ubuntu/server/24.04/")


def test_file_s_image_is_taken_for_both_and_the_head_may_have_another(tmp_path):
    one = synthesized(tmp_path / "a", dev_file(image="ami-0123456789abcdef0"))["tidegate-dev"]
    file = dev_file(image="ami-0123456789abcdef0", head={"image": "ami-0fedcba9876543210"})
    two = synthesized(tmp_path / "b", file)["tidegate-dev"]

    assert one.one("AWS::EC2::Instance")["ImageId"] == "ami-0123456789abcdef0"
    assert template_data(one, "t4")["ImageId"] == "ami-0123456789abcdef0"
    assert set(one.template["Parameters"]) == {"BootstrapVersion"}
    assert two.one("AWS::EC2::Instance")["ImageId"] == "ami-0fedcba9876543210"
    assert template_data(two, "t4")["ImageId"] == "ami-0123456789abcdef0"


def test_head_and_its_volume_stay_in_their_zone_when_a_pool_moves(tmp_path):
    """The zone of a volume cannot be changed: it would be a new and empty one."""
    stacks = synthesized(tmp_path, dev_file(head={"zone": "us-east-1c"}))

    made = stacks["tidegate-dev"]
    (subnet,) = [
        logical_id
        for logical_id, resource in made.resources("AWS::EC2::Subnet")
        if resource["Properties"]["AvailabilityZone"] == "us-east-1c"
    ]
    assert joined(made.one("AWS::EC2::Instance")["SubnetId"]) == f"<{subnet}>"
    assert stacks["tidegate-dev-data"].one("AWS::EC2::Volume")["AvailabilityZone"] == "us-east-1c"
    planner = made.named("FunctionsPlanner", "AWS::Lambda::Function")
    assert "us-east-1c" not in joined(planner["Environment"]["Variables"]["TIDEGATE_SUBNETS"])


def test_nobody_from_outside_is_let_in(dev: Stack):
    groups = {
        f"<{logical_id}.GroupId>" for logical_id, _ in dev.resources("AWS::EC2::SecurityGroup")
    }
    rules = dev.all("AWS::EC2::SecurityGroupIngress")

    assert len(rules) == 5
    assert all("SecurityGroupIngress" not in each for each in dev.all("AWS::EC2::SecurityGroup"))
    for rule in rules:
        assert joined(rule["SourceSecurityGroupId"]) in groups
        assert not {"CidrIp", "CidrIpv6", "SourcePrefixListId"} & rule.keys()


def test_shared_files_are_open_to_head_and_nodes_on_nfs_only(dev: Stack):
    files = f"<{dev.logical_id('NetworkFileGroup', 'AWS::EC2::SecurityGroup')}.GroupId>"
    rules = [
        rule
        for rule in dev.all("AWS::EC2::SecurityGroupIngress")
        if joined(rule["GroupId"]) == files
    ]

    assert [(rule["FromPort"], rule["ToPort"]) for rule in rules] == [(2049, 2049)] * 2


def test_new_network_has_the_file_s_zones_and_nothing_that_costs_while_idle(dev: Stack):
    subnets = dev.all("AWS::EC2::Subnet")

    assert [each["AvailabilityZone"] for each in subnets] == ["us-east-1a", "us-east-1b"]
    assert all(each["MapPublicIpOnLaunch"] for each in subnets)
    assert all(each["PrivateDnsNameOptionsOnLaunch"] == RESOURCE_NAME for each in subnets)
    assert dev.all("AWS::EC2::NatGateway") == []
    endpoints = dev.all("AWS::EC2::VPCEndpoint")
    assert {each["VpcEndpointType"] for each in endpoints} == {"Gateway"}
    assert {joined(each["ServiceName"]).split(".")[-1] for each in endpoints} == {"s3", "dynamodb"}


def test_existing_network_is_used_as_it_is(tmp_path):
    made = synthesized(tmp_path, dev_file(network=NETWORK))["tidegate-dev"]

    kinds = {resource["Type"] for resource in made.template["Resources"].values()}
    assert not {"AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::Route"} & kinds
    assert {group["VpcId"] for group in made.all("AWS::EC2::SecurityGroup")} == {"vpc-0a1b2c3d"}
    assert made.one("AWS::EC2::Instance")["SubnetId"] == "subnet-0a1b2c3d"
    assert made.one("AWS::Route53::HostedZone")["VPCs"] == [
        {"VPCId": "vpc-0a1b2c3d", "VPCRegion": "us-east-1"}
    ]
    # The third zone has a subnet, but no pool uses it.
    assert sorted(target["SubnetId"] for target in made.all("AWS::EFS::MountTarget")) == [
        "subnet-0a1b2c3d",
        "subnet-0a1b2c3e",
    ]


def test_user_data_holds_no_key_of_any_kind(dev: Stack):
    machines = [template_data(dev, "t4"), template_data(dev, "a10g"), dev.one("AWS::EC2::Instance")]
    told = [joined(machine["UserData"]) for machine in machines]
    for text in (*told, joined(dev.one("AWS::SSM::Parameter")["Value"])):
        assert "SecretString>" not in text
        assert "{{resolve:" not in text
