"""What is left of a security group's rules when CloudFormation has added its own."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import Stack
from tests.local.stack import att, ref

ALL_OUT = ("-1", "0.0.0.0/0")


def with_group(stack: Stack) -> None:
    stack.add("Vpc", {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.9.0.0/16"}})
    group = {"VpcId": ref("Vpc"), "GroupDescription": "nodes"}
    stack.add("Group", {"Type": "AWS::EC2::SecurityGroup", "Properties": group})


def egress(stack: Stack, name: str, *, after: str | None = None, **to: Any) -> None:
    rule = {"GroupId": att("Group", "GroupId"), "IpProtocol": "-1", **to}
    waits = {"DependsOn": [after]} if after else {}
    stack.add(name, {"Type": "AWS::EC2::SecurityGroupEgress", "Properties": rule, **waits})


def let_out(stack: Stack) -> set[tuple[str, str]]:
    """Protocol, and range of addresses or "group"."""
    (group_id,) = stack.deploy().physical_ids("AWS::EC2::SecurityGroup")
    described = stack.cloud.client("ec2").describe_security_groups(GroupIds=[group_id])
    return {
        (rule["IpProtocol"], peer)
        for rule in described["SecurityGroups"][0]["IpPermissionsEgress"]
        for peer in (
            *(each["CidrIp"] for each in rule["IpRanges"]),
            *("group" for _ in rule["UserIdGroupPairs"]),
        )
    }


def test_a_group_lets_everything_out_while_no_rule_is_added_to_it(stack: Stack):
    with_group(stack)

    assert let_out(stack) == {ALL_OUT}


def test_a_separate_rule_takes_away_the_one_that_nobody_wrote(stack: Stack):
    with_group(stack)
    egress(stack, "Within", DestinationSecurityGroupId=att("Group", "GroupId"))

    assert let_out(stack) == {("-1", "group")}


def test_a_rule_for_all_stays_when_it_is_added_last(stack: Stack):
    with_group(stack)
    egress(stack, "All", after="Within", CidrIp="0.0.0.0/0")
    egress(stack, "Within", DestinationSecurityGroupId=att("Group", "GroupId"))

    assert let_out(stack) == {ALL_OUT, ("-1", "group")}


def test_a_rule_for_all_goes_when_another_is_added_after_it(stack: Stack):
    with_group(stack)
    egress(stack, "All", CidrIp="0.0.0.0/0")
    egress(stack, "Within", after="All", DestinationSecurityGroupId=att("Group", "GroupId"))

    assert let_out(stack) == {("-1", "group")}


def test_without_its_last_rule_a_group_lets_nothing_out(stack: Stack):
    with_group(stack)
    egress(stack, "Within", DestinationSecurityGroupId=att("Group", "GroupId"))
    stack.deploy()
    del stack.template["Resources"]["Within"]

    assert let_out(stack) == set()


def test_a_rule_whose_description_ec2_does_not_take_fails_the_deployment(stack: Stack):
    """moto takes any words; EC2 no apostrophe (aws-cloudformation/cfn-lint#173)."""
    with_group(stack)
    rule = {"GroupId": att("Group", "GroupId"), "IpProtocol": "tcp", "CidrIp": "203.0.113.0/24"}
    said = {"FromPort": 22, "ToPort": 22, "Description": "people's SSH"}
    stack.add("In", {"Type": "AWS::EC2::SecurityGroupIngress", "Properties": {**rule, **said}})

    with pytest.raises(ClientError, match="Invalid rule description"):
        stack.deploy()


@pytest.mark.parametrize("said", ["nodes -> files", "n" * 256, "Knoten für Übungen"])
def test_neither_does_a_group_s(stack: Stack, said: str):
    with_group(stack)
    stack.properties("Group")["GroupDescription"] = said

    with pytest.raises(ClientError, match="Invalid security group description"):
        stack.deploy()
