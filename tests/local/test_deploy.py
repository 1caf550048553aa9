"""A synthesized assembly is deployed whole, updated where it changed, and goes without a trace."""

import json
import os
from base64 import b64encode
from typing import Any

import pytest

from local.deploy import NotDeployed, deploy, destroy, zip_folder
from tests.local.conftest import Stack
from tests.local.stack import ACCOUNT, att, permission, ref, role, schedule, statement

UBUNTU = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"


def b64(text: str) -> str:
    return b64encode(text.encode()).decode()


def planner(stack: Stack, physical: Any) -> dict[str, Any]:
    found = stack.cloud.client("lambda").get_function_configuration(FunctionName=physical)
    return dict(found)


def with_network(stack: Stack) -> None:
    """A VPC with one subnet and an instance in it that has everything the head has."""
    stack.template["Parameters"] = {
        "Image": {"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>", "Default": UBUNTU}
    }
    stack.add("Vpc", {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.9.0.0/16"}})
    subnet = {"VpcId": ref("Vpc"), "CidrBlock": "10.9.1.0/24", "AvailabilityZone": "us-east-1b"}
    stack.add("Subnet", {"Type": "AWS::EC2::Subnet", "Properties": subnet})
    group = {"VpcId": ref("Vpc"), "GroupDescription": "head"}
    stack.add("HeadGroup", {"Type": "AWS::EC2::SecurityGroup", "Properties": group})
    stack.add("Table", {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": ref("Vpc")}})
    routed = {"SubnetId": ref("Subnet"), "RouteTableId": ref("Table")}
    stack.add("Routed", {"Type": "AWS::EC2::SubnetRouteTableAssociation", "Properties": routed})
    stack.add("HeadRole", role("ec2", statement("sqs:SendMessage")))
    profile = {"Roles": [ref("HeadRole")]}
    stack.add("HeadProfile", {"Type": "AWS::IAM::InstanceProfile", "Properties": profile})
    stack.add(
        "HeadTemplate",
        {
            "Type": "AWS::EC2::LaunchTemplate",
            "Properties": {
                "LaunchTemplateData": {
                    "MetadataOptions": {"HttpTokens": "required"},
                    "UserData": b64("node"),
                }
            },
        },
    )
    stack.add(
        "Head",
        {
            "Type": "AWS::EC2::Instance",
            "Properties": {
                "ImageId": ref("Image"),
                "InstanceType": "m6i.large",
                "SubnetId": ref("Subnet"),
                "SecurityGroupIds": [att("HeadGroup", "GroupId")],
                "IamInstanceProfile": ref("HeadProfile"),
                "LaunchTemplate": {
                    "LaunchTemplateId": ref("HeadTemplate"),
                    "Version": att("HeadTemplate", "LatestVersionNumber"),
                },
                "UserData": b64("#!/bin/sh\necho head\n"),
                "Tags": [{"Key": "tidegate:cluster", "Value": "dev"}],
            },
        },
    )
    stack.template["Outputs"]["HeadIp"] = {"Value": att("Head", "PrivateIp")}


def head(stack: Stack, instance_id: str) -> dict[str, Any]:
    ec2 = stack.cloud.client("ec2")
    found = ec2.describe_instances(InstanceIds=[instance_id])
    return dict(found["Reservations"][0]["Instances"][0])


def test_everything_in_the_template_is_there(stack: Stack):
    deployed = stack.deploy()

    assert deployed.resources_deployed == deployed.resources_in_template
    assert set(deployed.resources) == set(stack.template["Resources"])
    assert deployed.outputs["LooksUrl"].endswith(".fifo")


def test_a_type_that_the_local_cloud_lacks_is_named(stack: Stack):
    stack.add("Cloud9", {"Type": "AWS::Cloud9::EnvironmentEC2", "Properties": {}})

    with (
        pytest.warns(UserWarning, match="Cloud9"),
        pytest.raises(NotDeployed, match=r"^Cloud9 \(AWS::Cloud9::EnvironmentEC2\)$"),
    ):
        stack.deploy()


def test_a_resource_whose_condition_is_false_is_not_missed(stack: Stack):
    stack.template["Conditions"] = {"Never": {"Fn::Equals": ["a", "b"]}}
    stack.add("Note", {"Type": "AWS::CDK::Metadata", "Condition": "Never"})

    deployed = stack.deploy()

    assert "Note" not in deployed.resources
    assert deployed.resources_in_template == len(stack.template["Resources"]) - 1


def test_an_instance_keeps_what_it_was_asked_for(stack: Stack):
    with_network(stack)

    deployed = stack.deploy()

    instance = head(stack, deployed.resources["Head"][1])
    ec2 = stack.cloud.client("ec2")
    user_data = ec2.describe_instance_attribute(
        InstanceId=instance["InstanceId"], Attribute="userData"
    )["UserData"]["Value"]
    assert user_data == b64("#!/bin/sh\necho head\n")
    assert instance["SubnetId"] == deployed.resources["Subnet"][1]
    assert instance["ImageId"] == "ami-00000000000024040"
    assert instance["InstanceType"] == "m6i.large"
    assert instance["MetadataOptions"]["HttpTokens"] == "required"
    assert {"Key": "tidegate:cluster", "Value": "dev"} in instance["Tags"]
    assert instance["IamInstanceProfile"]["Arn"].endswith(deployed.resources["HeadProfile"][1])
    assert [group["GroupId"] for group in instance["SecurityGroups"]] == [
        deployed.resources["HeadGroup"][1]
    ]
    assert instance["PrivateIpAddress"] == deployed.outputs["HeadIp"]
    assert deployed.outputs["HeadIp"].startswith("10.9.1.")


def test_new_user_data_reaches_the_instance_that_is_there(stack: Stack):
    with_network(stack)
    first = stack.deploy()
    stack.properties("Head")["UserData"] = b64("second")

    second = stack.deploy()

    assert second.resources["Head"] == first.resources["Head"]
    ec2 = stack.cloud.client("ec2")
    found = ec2.describe_instance_attribute(
        InstanceId=second.resources["Head"][1], Attribute="userData"
    )
    assert found["UserData"]["Value"] == b64("second")


def test_a_change_reaches_those_who_refer_to_what_changed(stack: Stack):
    stack.add(
        "Node",
        {
            "Type": "AWS::EC2::LaunchTemplate",
            "Properties": {"LaunchTemplateData": {"UserData": b64("one")}},
        },
    )
    stack.properties("Planner")["Environment"]["Variables"]["VERSION"] = att(
        "Node", "LatestVersionNumber"
    )
    first = stack.deploy()
    assert planner(stack, first.resources["Planner"][1])["Environment"]["Variables"] == {
        "NOTE": "planner",
        "VERSION": "1",
    }
    stack.properties("Node")["LaunchTemplateData"]["UserData"] = b64("two")

    second = stack.deploy()

    variables = planner(stack, second.resources["Planner"][1])["Environment"]["Variables"]
    assert variables["VERSION"] == "2"
    assert second.resources == first.resources


def test_an_update_reaches_functions_rules_queues_schedules_and_roles(stack: Stack):
    stack.add("Stop", schedule("cron(0 20 ? * MON-FRI *)", "Asia/Tokyo"))
    first = stack.deploy()
    stack.properties("Planner")["MemorySize"] = 1024
    stack.properties("Planner")["Environment"]["Variables"] = {"NOTE": "new"}
    stack.properties("Digest")["State"] = "DISABLED"
    stack.properties("Looks")["VisibilityTimeout"] = 77
    stack.properties("Stop")["ScheduleExpression"] = "cron(0 21 ? * MON-FRI *)"
    stack.properties("FunctionRole")["Policies"][0]["PolicyDocument"]["Statement"] = [
        statement("ec2:DescribeInstances")
    ]

    second = stack.deploy()

    client = stack.cloud.client
    function = planner(stack, second.resources["Planner"][1])
    assert (function["MemorySize"], function["Environment"]["Variables"]) == (1024, {"NOTE": "new"})
    rule = client("events").describe_rule(
        Name=second.resources["Digest"][1], EventBusName=stack.name
    )
    assert rule["State"] == "DISABLED"
    attributes = client("sqs").get_queue_attributes(
        QueueUrl=second.outputs["LooksUrl"], AttributeNames=["All"]
    )["Attributes"]
    assert attributes["VisibilityTimeout"] == "77"
    assert "Policy" in attributes
    schedules = client("scheduler")
    assert (
        schedules.get_schedule(GroupName=stack.name, Name=second.resources["Stop"][1])[
            "ScheduleExpression"
        ]
        == "cron(0 21 ? * MON-FRI *)"
    )
    inline = client("iam").get_role_policy(
        RoleName=second.resources["FunctionRole"][1], PolicyName="default"
    )
    assert inline["PolicyDocument"]["Statement"] == [statement("ec2:DescribeInstances")]
    assert second.resources == first.resources


def test_new_code_reaches_the_function(stack: Stack):
    first = stack.deploy()
    before = planner(stack, first.resources["Planner"][1])["CodeSha256"]
    stack.handlers += "\n# other code\n"
    stack.properties("Planner")["Code"]["S3Key"] = "code-2.zip"
    manifest = stack.assembly() / f"{stack.name}.assets.json"
    manifest.write_text(manifest.read_text().replace("code.zip", "code-2.zip"))

    deploy(stack.cloud, stack.folder, stack.name)

    assert planner(stack, first.resources["Planner"][1])["CodeSha256"] != before


def test_a_removed_resource_goes_and_a_new_one_comes(stack: Stack):
    first = stack.deploy()
    del stack.template["Resources"]["SpotMayInvoke"]
    stack.add("DigestMayInvoke", permission("Planner", "Digest"))

    second = stack.deploy()

    functions = stack.cloud.client("lambda")
    with pytest.raises(functions.exceptions.ResourceNotFoundException):
        functions.get_policy(FunctionName=first.resources["Async"][1])
    policy = json.loads(functions.get_policy(FunctionName=second.resources["Planner"][1])["Policy"])
    assert [each["Principal"] for each in policy["Statement"]] == [
        {"Service": "events.amazonaws.com"}
    ]


def test_a_table_keeps_its_items_through_updates(stack: Stack):
    key = {"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]}
    named = {"AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}]}
    table = {**key, **named, "BillingMode": "PAY_PER_REQUEST"}
    stack.add("Ledger", {"Type": "AWS::DynamoDB::Table", "Properties": table})
    name = stack.deploy().resources["Ledger"][1]
    dynamodb = stack.cloud.client("dynamodb")
    dynamodb.put_item(TableName=name, Item={"pk": {"S": "epoch"}})
    ttl = {"Enabled": True, "AttributeName": "expires_at"}
    stack.properties("Ledger")["TimeToLiveSpecification"] = ttl
    stack.properties("Ledger")["PointInTimeRecoverySpecification"] = {
        "PointInTimeRecoveryEnabled": True
    }

    assert stack.deploy().resources["Ledger"][1] == name

    assert dynamodb.get_item(TableName=name, Key={"pk": {"S": "epoch"}})["Item"]
    described = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    assert described == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at"}
    backups = dynamodb.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    recovery = backups["PointInTimeRecoveryDescription"]
    assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"


def test_new_tags_replace_nothing(stack: Stack):
    with_network(stack)
    first = stack.deploy()
    for name in ("Table", "Subnet", "Vpc"):
        stack.properties(name)["Tags"] = [{"Key": "owner", "Value": "ops"}]

    assert stack.deploy().resources == first.resources


def test_a_generated_secret_stays_the_same_through_updates(stack: Stack):
    generated = {"GenerateSecretString": {"PasswordLength": 64, "ExcludePunctuation": True}}
    stack.add("Munge", {"Type": "AWS::SecretsManager::Secret", "Properties": generated})
    secrets = stack.cloud.client("secretsmanager")
    arn = stack.deploy().resources["Munge"][1]
    before = secrets.get_secret_value(SecretId=arn)["SecretString"]
    stack.properties("Munge")["Description"] = "the Munge key"

    stack.deploy()

    assert secrets.get_secret_value(SecretId=arn)["SecretString"] == before
    assert len(before) == 64
    assert before.isalnum()


def test_a_private_zone_follows_the_address_of_the_head(stack: Stack):
    with_network(stack)
    vpc = {"VPCId": ref("Vpc"), "VPCRegion": "us-east-1"}
    zone = {"Name": f"{stack.name}.internal", "VPCs": [vpc]}
    stack.add("Zone", {"Type": "AWS::Route53::HostedZone", "Properties": zone})
    record = {
        "HostedZoneId": ref("Zone"),
        "Name": f"head.{stack.name}.internal.",
        "Type": "A",
        "TTL": "60",
        "ResourceRecords": [att("Head", "PrivateIp")],
    }
    stack.add("Record", {"Type": "AWS::Route53::RecordSet", "Properties": record})
    first = stack.deploy()
    stack.properties("Head")["ImageId"] = "ami-0000000000000000f"

    second = stack.deploy()

    route53 = stack.cloud.client("route53")
    zone_id = second.resources["Zone"][1]
    assert route53.get_hosted_zone(Id=zone_id)["HostedZone"]["Config"]["PrivateZone"] is True
    listed = route53.list_resource_record_sets(HostedZoneId=zone_id)["ResourceRecordSets"]
    addresses = [each["ResourceRecords"] for each in listed if each["Type"] == "A"]
    assert addresses == [[{"Value": second.outputs["HeadIp"]}]]
    assert second.resources["Head"] != first.resources["Head"]


def test_managed_policies_are_attached_and_detached(stack: Stack):
    arn = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
    stack.properties("FunctionRole")["ManagedPolicyArns"] = [arn]
    name = stack.deploy().resources["FunctionRole"][1]
    iam = stack.cloud.client("iam")
    attached = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
    stack.properties("FunctionRole")["ManagedPolicyArns"] = []

    stack.deploy()

    assert [policy["PolicyArn"] for policy in attached] == [arn]
    assert iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"] == []


def test_a_destroyed_stack_leaves_nothing_that_it_made(stack: Stack):
    with_network(stack)
    stack.add("Stop", schedule("rate(5 minutes)", "UTC"))
    deployed = stack.deploy()

    destroy(stack.cloud, stack.name)

    client = stack.cloud.client
    vpcs = {each["VpcId"] for each in client("ec2").describe_vpcs()["Vpcs"]}
    assert deployed.resources["Vpc"][1] not in vpcs
    urls = client("sqs").list_queues(QueueNamePrefix=stack.name).get("QueueUrls", [])
    names = [each["FunctionName"] for each in client("lambda").list_functions()["Functions"]]
    groups = [each["Name"] for each in client("scheduler").list_schedule_groups()["ScheduleGroups"]]
    roles = [each["RoleName"] for each in client("iam").list_roles()["Roles"]]
    left = [name for name in (*urls, *names, *groups, *roles) if f"{stack.name}-" in name]
    assert left == []
    assert stack.name not in groups


def test_the_same_files_make_the_same_zip(tmp_path):
    for name in ("one", "two"):
        folder = tmp_path / name / "deep"
        folder.mkdir(parents=True)
        (folder / "a.py").write_text("a")
        (folder / "b.sh").write_text("b")
        (folder / "b.sh").chmod(0o755)
        os.utime(folder / "a.py", (len(name), 10_000 if name == "one" else 20_000))

    assert zip_folder(tmp_path / "one") == zip_folder(tmp_path / "two")
    (tmp_path / "two" / "deep" / "b.sh").chmod(0o644)
    assert zip_folder(tmp_path / "one") != zip_folder(tmp_path / "two")


def test_assets_are_in_the_bucket_of_the_account(stack: Stack):
    stack.deploy()

    s3 = stack.cloud.client("s3")
    bucket = f"cdk-hnb659fds-assets-{ACCOUNT}-us-east-1"
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    assert "code.zip" in keys
