"""Networks: public, behind one NAT gateway, without a way out, existing; proxies; partitions."""

import json
import re
import subprocess
from typing import Any

import pytest

from cdk.proxy import with_proxy
from tests.cdk.made import Stack, dev_file, joined, synthesized
from tidegate.wire.deployment import NEEDED_ENDPOINTS, ProxyModel

NETWORK = {
    "vpc": "vpc-0a1b2c3d",
    "subnets": {"us-east-1a": "subnet-0a1b2c3d", "us-east-1b": "subnet-0a1b2c3e"},
}


def cluster(folder: Any, **changes: Any) -> Stack:
    return synthesized(folder, dev_file(**changes))["tidegate-dev"]


def blocks(stack: Stack) -> dict[str, str]:
    """Zone -> addresses, of the subnets for instances."""
    return {
        subnet["AvailabilityZone"]: subnet["CidrBlock"]
        for logical_id, resource in stack.resources("AWS::EC2::Subnet")
        if "Gateway" not in logical_id
        for subnet in [resource["Properties"]]
    }


def interface_endpoints(stack: Stack) -> dict[str, dict[str, Any]]:
    return {
        joined(each["ServiceName"]): each
        for each in stack.all("AWS::EC2::VPCEndpoint")
        if each["VpcEndpointType"] == "Interface"
    }


def test_addresses_of_a_zone_do_not_move_when_another_zone_comes(tmp_path, dev: Stack):
    """CloudFormation cannot move the addresses of a subnet that has instances in it."""
    pools = dev_file()["pools"]
    later = {**pools, "t4": {**pools["t4"], "zones": ["us-east-1b"]}}
    later["a10g"] = {**pools["a10g"], "zones": ["us-east-1b", "us-east-1f"]}

    other = cluster(tmp_path, pools=later)

    assert blocks(dev) == {"us-east-1a": "10.0.0.0/20", "us-east-1b": "10.0.16.0/20"}
    assert blocks(other) == {"us-east-1b": "10.0.16.0/20", "us-east-1f": "10.0.80.0/20"}
    (same,) = [each for each, _ in dev.resources("AWS::EC2::Subnet") if "useast1b" in each]
    assert same in {each for each, _ in other.resources("AWS::EC2::Subnet")}


def test_own_addresses_can_be_chosen(tmp_path):
    made = cluster(tmp_path, network={"cidr": "10.7.0.0/20"})

    assert made.one("AWS::EC2::VPC")["CidrBlock"] == "10.7.0.0/20"
    assert blocks(made) == {"us-east-1a": "10.7.0.0/24", "us-east-1b": "10.7.1.0/24"}


def test_instances_behind_nat_have_no_public_address_and_one_way_out(tmp_path):
    made = cluster(tmp_path, network={"nat": "one"})

    assert all(not subnet.get("MapPublicIpOnLaunch") for subnet in made.all("AWS::EC2::Subnet"))
    assert len(made.all("AWS::EC2::NatGateway")) == 1
    out = made.named("NetworkOwnOut", "AWS::EC2::Route")
    assert out["RouteTableId"] == {
        "Ref": made.logical_id("NetworkOwnRoutes", "AWS::EC2::RouteTable")
    }
    ((_, head),) = made.resources("AWS::EC2::Instance")
    assert made.logical_id("NetworkOwnOut", "AWS::EC2::Route") in head["DependsOn"]
    assert interface_endpoints(made) == {}


def test_network_without_a_way_out_has_the_endpoints_that_a_boot_needs(tmp_path):
    made = cluster(tmp_path, network={"endpoints": list(NEEDED_ENDPOINTS)})

    kinds = {resource["Type"] for resource in made.template["Resources"].values()}
    assert not {"AWS::EC2::NatGateway", "AWS::EC2::InternetGateway", "AWS::EC2::Route"} & kinds
    assert interface_endpoints(made).keys() == {
        f"com.amazonaws.us-east-1.{service}" for service in NEEDED_ENDPOINTS
    }
    head_subnet = joined(made.one("AWS::EC2::Instance")["SubnetId"])
    for each in interface_endpoints(made).values():
        assert each["PrivateDnsEnabled"] is True
        assert [joined(one) for one in each["SubnetIds"]] == [head_subnet]
    ((_, head),) = made.resources("AWS::EC2::Instance")
    # Those of S3 and DynamoDB among them.
    assert {name for name, _ in made.resources("AWS::EC2::VPCEndpoint")} <= set(head["DependsOn"])


def test_endpoints_are_open_to_head_and_nodes_on_https_only(tmp_path):
    made = cluster(tmp_path, network={**NETWORK, "endpoints": ["sqs"]})

    group = f"<{made.logical_id('NetworkEndpointGroup', 'AWS::EC2::SecurityGroup')}.GroupId>"
    rules = [
        rule
        for rule in made.all("AWS::EC2::SecurityGroupIngress")
        if joined(rule["GroupId"]) == group
    ]
    assert [(rule["FromPort"], rule["ToPort"]) for rule in rules] == [(443, 443)] * 2
    (endpoint,) = interface_endpoints(made).values()
    assert endpoint["VpcId"] == "vpc-0a1b2c3d"
    assert endpoint["SubnetIds"] == ["subnet-0a1b2c3d"]


def test_head_and_login_nodes_in_a_public_subnet_and_nodes_in_private_ones_of_its_zone(tmp_path):
    public = {"zone": "us-east-1a", "subnet": "subnet-0a1b2c40"}
    pools = dev_file()["pools"]
    more = {"us-east-1a": ["subnet-0a1b2c41", "subnet-0a1b2c42"]}
    pools["t4"] = {**pools["t4"], "zones": ["us-east-1a", "us-east-1b"], "subnets": more}
    pools["a10g"] = {**pools["a10g"], "zones": ["us-east-1b"]}
    made = cluster(tmp_path, network=NETWORK, head=public, login=public, pools=pools)

    machines = made.all("AWS::EC2::Instance")
    assert [each["SubnetId"] for each in machines] == ["subnet-0a1b2c40"] * 2
    # EFS takes one mount target of a file system in each zone.
    targets = made.all("AWS::EFS::MountTarget")
    assert {each["SubnetId"] for each in targets} == {"subnet-0a1b2c3d", "subnet-0a1b2c3e"}
    planner = made.named("FunctionsPlanner", "AWS::Lambda::Function")
    told = planner["Environment"]["Variables"]["TIDEGATE_SUBNETS"]
    assert json.loads(told) == NETWORK["subnets"]
    policies = made.named("FunctionsPlannerRole", "AWS::IAM::Role")["Policies"]
    statements = policies[0]["PolicyDocument"]["Statement"]
    (asked,) = [each["Resource"] for each in statements if each["Sid"] == "FleetOf"]
    launched_into = re.findall(r"subnet/(\S+)", " ".join(map(joined, asked)))
    assert sorted(launched_into) == ["subnet-0a1b2c3e", "subnet-0a1b2c41", "subnet-0a1b2c42"]


def test_head_and_nodes_are_told_the_proxy(tmp_path):
    proxy = {"url": "http://proxy.example:3128", "no_proxy": ["files.example"]}
    made = cluster(tmp_path, network={**NETWORK, "proxy": proxy})

    machines = [
        made.one("AWS::EC2::Instance"),
        made.named("NodesPoolt4", "AWS::EC2::LaunchTemplate")["LaunchTemplateData"],
    ]
    for machine in machines:
        text = joined(machine["UserData"])
        assert text.startswith("#!")
        assert "export https_proxy=http://proxy.example:3128\n" in text
        assert "169.254.169.254" in text
        assert "files.example" in text


def test_proxy_leaves_a_script_that_shells_can_read():
    proxy = ProxyModel(url="http://p:1", no_proxy=("a.example",))
    script = with_proxy("#!/bin/bash\necho booted\n", proxy)

    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert script.endswith("echo booted\n")
    assert with_proxy("#!/bin/bash\n", None) == "#!/bin/bash\n"


@pytest.mark.parametrize(
    ("region", "partition"), [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_every_arn_is_one_of_the_region_s_partition(tmp_path, region, partition):
    """Rights on arn:aws would be none at all there."""
    pools = {
        "t4": {
            "instance_types": ["g4dn.xlarge"],
            "zones": [f"{region}a"],
            "capacity_types": ["spot"],
        }
    }
    stacks = synthesized(
        tmp_path,
        dev_file(
            region=region,
            partitions={"gpu": {"pools": ["t4"]}},
            pools=pools,
            prices_usd_per_hour={"g4dn.xlarge": {"spot": "0.2"}},
            network={"endpoints": list(NEEDED_ENDPOINTS)},
        ),
    )

    for stack in stacks.values():
        text = json.dumps(stack.template["Resources"])
        assert set(re.findall(r"arn:([a-z-]+):", text)) <= {partition}
    passed = joined_condition(stacks["tidegate-dev"])
    assert ("ec2.amazonaws.com.cn" in passed) is (partition == "aws-cn")


def joined_condition(stack: Stack) -> list[str]:
    """The services to which the planner may pass the nodes' role."""
    policies = stack.named("FunctionsPlannerRole", "AWS::IAM::Role")["Policies"]
    (found,) = [
        statement["Condition"]["StringEquals"]["iam:PassedToService"]
        for policy in policies
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Sid"] == "NodesGetTheirRole"
    ]
    return list(found)


def test_logs_are_kept_for_as_long_as_the_file_says(tmp_path, dev: Stack):
    longer = cluster(tmp_path, logs={"retention_days": "365"})

    assert {group["RetentionInDays"] for group in dev.all("AWS::Logs::LogGroup")} == {30}
    assert {group["RetentionInDays"] for group in longer.all("AWS::Logs::LogGroup")} == {365}


@pytest.mark.parametrize(("chosen", "traffic"), [("rejected", "REJECT"), ("all", "ALL")])
def test_flow_logs_go_to_a_log_of_their_own(tmp_path, chosen: str, traffic: str):
    made = cluster(tmp_path, network={"flow_logs": chosen}, logs={"retention_days": "90"})

    flows = made.one("AWS::EC2::FlowLog")
    (group,) = [
        each
        for each in made.all("AWS::Logs::LogGroup")
        if each["LogGroupName"] == "/tidegate/dev/flows"
    ]
    assert (flows["TrafficType"], flows["ResourceType"]) == (traffic, "VPC")
    assert flows["LogGroupName"] == "/tidegate/dev/flows"
    assert group["RetentionInDays"] == 90
    ((vpc, _),) = made.resources("AWS::EC2::VPC")
    assert flows["ResourceId"] == {"Ref": vpc}
    ((role_id, role),) = [(id_, each) for id_, each in roles(made) if "FlowRole" in id_]
    assert flows["DeliverLogsPermissionArn"] == {"Fn::GetAtt": [role_id, "Arn"]}
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "vpc-flow-logs.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_flow_logs_wait_for_the_log_that_they_are_named_after(tmp_path):
    """Their role may write into the group, and may not make one."""
    made = cluster(tmp_path, network={"flow_logs": "all"})

    ((_, flows),) = made.resources("AWS::EC2::FlowLog")
    (group,) = [
        logical_id
        for logical_id, each in made.resources("AWS::Logs::LogGroup")
        if each["Properties"]["LogGroupName"] == "/tidegate/dev/flows"
    ]
    assert group in flows["DependsOn"]


def roles(stack: Stack) -> list[tuple[str, dict[str, Any]]]:
    found = stack.resources("AWS::IAM::Role")
    return [(logical_id, resource["Properties"]) for logical_id, resource in found]


def test_an_instance_connect_endpoint_is_in_the_head_s_zone_and_hides_whence_people_come(tmp_path):
    """Groups let the endpoint's group in, which a preserved address would not be."""
    made = cluster(tmp_path, network={**NETWORK, "instance_connect": "true"})

    endpoint = made.one("AWS::EC2::InstanceConnectEndpoint")
    group = made.logical_id("NetworkConnectGroup", "AWS::EC2::SecurityGroup")
    assert endpoint["SubnetId"] == "subnet-0a1b2c3d"
    assert endpoint["PreserveClientIp"] is False
    assert endpoint["SecurityGroupIds"] == [{"Fn::GetAtt": [group, "GroupId"]}]
    told = made.template["Outputs"]["InstanceConnectEndpointId"]["Value"]
    assert told == {"Ref": made.logical_id("NetworkConnect", "AWS::EC2::InstanceConnectEndpoint")}


def test_there_is_no_instance_connect_endpoint_unless_asked_for(dev: Stack):
    assert not dev.all("AWS::EC2::InstanceConnectEndpoint")
    assert "InstanceConnectEndpointId" not in dev.template["Outputs"]


def test_there_are_no_flow_logs_unless_asked_for(dev: Stack):
    assert not dev.all("AWS::EC2::FlowLog")


def test_a_local_zone_has_no_mount_target_and_its_nodes_are_told_which_to_use(tmp_path):
    """EFS makes none there: the deployment would be rolled back."""
    zone = "us-east-1-dfw-2a"
    pools = dev_file()["pools"]
    for pool in pools.values():
        pool["zones"] = ["us-east-1a"]
    pools["t4"]["zones"] = [zone, "us-east-1a"]
    subnets = {"us-east-1a": "subnet-0a1b2c3d", zone: "subnet-0a1b2c40"}

    made = cluster(tmp_path, network={**NETWORK, "subnets": subnets}, pools=pools)

    (target,) = made.all("AWS::EFS::MountTarget")
    assert target["SubnetId"] == "subnet-0a1b2c3d"
    (head,) = made.all("AWS::EC2::Instance")
    assert head["SubnetId"] == "subnet-0a1b2c3d"
    data = made.named("NodesPoolt4", "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
    assert "\nEFS_OPTIONS=,az=us-east-1a\n" in json.dumps(data).replace("\\n", "\n")
    other = made.named("NodesPoola10g", "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
    assert "EFS_OPTIONS" not in json.dumps(other)
