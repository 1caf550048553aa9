"""Login nodes in the template: how many, with which rights, and who may come to them."""

from pathlib import Path
from typing import Any

import pytest

from tests.cdk.made import Properties, Stack, dev_file, joined, synthesized

OFFICE, ONE = "203.0.113.0/24", "198.51.100.7"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    file = dev_file(
        login={"count": "2", "instance_type": "m6i.xlarge", "ssh_from": [OFFICE, ONE]},
        hooks={"on_login_configured": [{"source": "s3://bucket/login.sh"}]},
    )
    return synthesized(tmp_path_factory.mktemp("login"), file)["tidegate-dev"]


def machines(stack: Stack, role: str) -> list[Properties]:
    tag = {"Key": "tidegate:role", "Value": role}
    return [each for each in stack.all("AWS::EC2::Instance") if tag in each["Tags"]]


def statements(stack: Stack, logical_id: str) -> dict[str, Any]:
    (policy,) = stack.named(logical_id, "AWS::IAM::Role")["Policies"]
    return {each["Sid"]: each for each in policy["PolicyDocument"]["Statement"]}


def test_there_are_as_many_as_asked_beside_one_head(stack: Stack) -> None:
    found = machines(stack, "login")

    assert [each["InstanceType"] for each in found] == ["m6i.xlarge"] * 2
    assert len(machines(stack, "head")) == 1
    assert not any("Volumes" in each for each in found)


def test_a_cluster_has_none_where_the_file_names_none(dev: Stack) -> None:
    assert machines(dev, "login") == []
    assert not [each for each in dev.template["Resources"] if "Login" in each]


def test_one_name_leads_to_all_of_them(stack: Stack) -> None:
    record = stack.named("LoginRecord", "AWS::Route53::RecordSet")

    assert record["Name"] == "login.tidegate-dev.internal"
    assert len(record["ResourceRecords"]) == 2


def test_they_have_the_rights_that_a_node_has_and_read_what_they_run(stack: Stack) -> None:
    login, node = statements(stack, "LoginRole"), statements(stack, "NodesRole")

    assert login.keys() - node.keys() == {"Boot", "Hooks"}
    assert "elasticfilesystem:ClientRootAccess" not in str(login)


def test_where_a_directory_s_people_get_homes_at_a_login_root_makes_them(tmp_path: Path) -> None:
    stack = synthesized(tmp_path, dev_file(login={}, users="sssd", image="ami-0a1b2c3d"))[
        "tidegate-dev"
    ]

    assert "elasticfilesystem:ClientRootAccess" in str(statements(stack, "LoginRole"))


def test_ssh_is_open_to_the_networks_that_the_file_names_alone(stack: Stack) -> None:
    from_outside = [
        (each["CidrIp"], each["FromPort"], each["ToPort"], each["GroupId"])
        for each in stack.all("AWS::EC2::SecurityGroupIngress")
        if "CidrIp" in each
    ]
    group = stack.logical_id("NetworkLoginGroup", "AWS::EC2::SecurityGroup")

    to = (22, 22, {"Fn::GetAtt": [group, "GroupId"]})
    # EC2 API reference, IpRange: a single address has the prefix length /32.
    assert from_outside == [(OFFICE, *to), (f"{ONE}/32", *to)]


def test_they_are_started_and_stopped_with_the_head(stack: Stack) -> None:
    for role in ("FunctionsScheduleRole", "FunctionsReconcileRole"):
        condition = statements(stack, role)["Head"]["Condition"]["StringEquals"]

        assert condition["aws:ResourceTag/tidegate:role"] == ["head", "login"]


def test_what_they_run_is_told_by_a_parameter_and_another_deployment_replaces_none(
    stack: Stack, tmp_path: Path
) -> None:
    told = joined(stack.named("LoginBoot", "AWS::SSM::Parameter")["Value"])
    other = synthesized(tmp_path, dev_file(login={"count": "2"}, shared_dir="/work"))
    of_other = joined(other["tidegate-dev"].named("LoginBoot", "AWS::SSM::Parameter")["Value"])

    assert "ROLE=login" in told.splitlines()
    assert told != of_other
    assert {str(each["UserData"]) for each in machines(stack, "login")} == {
        str(each["UserData"]) for each in machines(other["tidegate-dev"], "login")
    }


def test_every_machine_reads_the_password_of_a_directory_and_no_template_has_it(
    tmp_path: Path,
) -> None:
    secret = "arn:aws:secretsmanager:us-east-1:123456789012:secret:ldap-AbCdEf"
    directory = {
        "uris": ["ldaps://ldap.example.com"],
        "search_base": "dc=example,dc=com",
        "bind_dn": "cn=reader,dc=example,dc=com",
        "bind_password_secret": secret,
    }
    stack = synthesized(tmp_path, dev_file(login={}, directory=directory))["tidegate-dev"]

    for role in ("HeadRole", "LoginRole", "NodesRole"):
        assert statements(stack, role)["Directory"]["Resource"] == secret
    told = joined(stack.named("LoginBoot", "AWS::SSM::Parameter")["Value"])
    assert f"DIRECTORY_SECRET={secret}" in told
    assert "libnss-sss" in told
