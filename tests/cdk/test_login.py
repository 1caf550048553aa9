"""Login nodes in the template: how many, with which rights, and who may come to them."""

from pathlib import Path
from typing import Any

import pytest

from tests.cdk.made import Properties, Stack, dev_file, joined, synthesized
from tests.cdk.variants import OWN_NETWORK, PUBLIC
from tidegate.cli.diff import Effect, changes
from tidegate.wire.deployment import NEEDED_ENDPOINTS

OFFICE, HOME = "203.0.113.0/24", "198.51.100.7"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    file = dev_file(
        login={"count": "2", "instance_type": "m6i.xlarge", "ssh_from": [OFFICE, HOME]},
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
    assert from_outside == [(OFFICE, *to), (f"{HOME}/32", *to)]


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


# As they were when a cluster had one kind of them: another id is another machine, or another group
# beside the one that still holds the rule (`tidegate diff`).
IDS = """
LoginBoot2C3E240E LoginInstance1BE73870C LoginInstance205822ED3 LoginProfile6E86D5A0
LoginRecordC5F4D53E LoginRoleC2004742
LustreFromLogin10182F0F26B4 LustreFromLogin988ABC7D43D LustreToLogin10181835C544
LustreToLogin988B040B23B Lustresg0a1b2c45FromLogin1018 Lustresg0a1b2c45FromLogin1021
Lustresg0a1b2c45FromLogin988 Lustresg0a1b2c45ToLogin1018 Lustresg0a1b2c45ToLogin1021
Lustresg0a1b2c45ToLogin988
NetworkConnectToLogin5A78309B NetworkEndpointsFromLogin93E52190 NetworkFilesFromLoginDC624F19
NetworkHeadFromLogin610B215B NetworkLoginFromConnect5E006937 NetworkLoginFromHead1BE4914A
NetworkLoginFromNodesCC59A0AB NetworkLoginGroupCFFB58CA NetworkNodesFromLoginBE64ACB1
NetworkSshFrom1985110073205FC9D11 NetworkSshFrom2030113024C9C58A5E
Networksg0a1b2c44FromLoginE7E15B63
"""
ONE = {
    "count": "2",
    "zone": "us-east-1a",
    "subnet": PUBLIC,
    "image": "ami-0a1b2c3d",
    "security_groups": ["sg-0a1b2c3e"],
    "ssh_from": [OFFICE, HOME],
}
AROUND: Properties = {
    "network": {
        **OWN_NETWORK,
        "endpoints": list(NEEDED_ENDPOINTS),
        "instance_connect": "true",
    },
    "lustre": {"storage_gib": "2400"},
    "file_systems": [
        {"directory": "/more", "efs": "fs-0a1b2c3d", "security_group": "sg-0a1b2c44"},
        {
            "directory": "/fast",
            "lustre": "fs-0a1b2c3e",
            "mount_name": "3a4bcdef",
            "security_group": "sg-0a1b2c45",
        },
    ],
}
GPU: Properties = {
    "instance_type": "g4dn.xlarge",
    "zone": "us-east-1b",
    "root_gib": "100",
    "policies": ["arn:aws:iam::123456789012:policy/gpu"],
    "hooks": {"on_login_configured": [{"inline": "#!/bin/sh\n: gpu\n"}]},
}


@pytest.fixture(scope="module")
def one_kind(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    folder = tmp_path_factory.mktemp("one")
    return synthesized(folder, dev_file(login=ONE, **AROUND))["tidegate-dev"]


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    """The same beside others. Two names that are one without their hyphens' place."""
    made = {"login": ONE, "gpu": GPU, "big-1": {}}
    hooks = {"on_login_configured": [{"inline": "#!/bin/sh\n: all\n"}]}
    file = dev_file(login={"kinds": made}, hooks=hooks, **AROUND)
    return synthesized(tmp_path_factory.mktemp("kinds"), file)["tidegate-dev"]


def test_a_file_with_one_kind_keeps_the_names_of_what_is_deployed(one_kind: Stack) -> None:
    ids = {each for each in one_kind.template["Resources"] if "Login" in each or "SshFrom" in each}

    assert ids == set(IDS.split())
    assert {"LoginHost", "LoginInstanceIds"} <= one_kind.template["Outputs"].keys()


def test_further_kinds_come_beside_the_machines_that_are_there(
    one_kind: Stack, kinds: Stack
) -> None:
    """A kind called login is that of a file without kinds."""
    before, after = (each.template["Resources"] for each in (one_kind, kinds))

    assert before.keys() <= after.keys()
    for each in IDS.split():
        if each != "LoginBoot2C3E240E":  # the hooks
            assert before[each]["Properties"] == after[each]["Properties"], each


def test_each_kind_has_its_machines_its_address_and_its_group(kinds: Stack) -> None:
    found = machines(kinds, "login")
    names = [{tag["Key"]: tag["Value"] for tag in each["Tags"]} for each in found]
    gpu = kinds.named("LoginGpuInstance", "AWS::EC2::Instance")
    groups = {str(each["SecurityGroupIds"][0]) for each in found}

    assert {each["Name"]: each["tidegate:login"] for each in names} == {
        "tidegate-dev-login-1": "login",
        "tidegate-dev-login-2": "login",
        "tidegate-dev-login-gpu-1": "gpu",
        "tidegate-dev-login-big-1-1": "big-1",
    }
    assert len(groups) == 3
    assert (gpu["InstanceType"], gpu["SubnetId"]) == ("g4dn.xlarge", "subnet-0a1b2c3e")
    records = kinds.all("AWS::Route53::RecordSet")
    assert {each["Name"]: len(each["ResourceRecords"]) for each in records} == {
        "head.tidegate-dev.internal": 1,
        "login.tidegate-dev.internal": 2,
        "login-gpu.tidegate-dev.internal": 1,
        "login-big-1.tidegate-dev.internal": 1,
    }
    outputs = {k: v["Value"] for k, v in kinds.template["Outputs"].items()}
    assert outputs["LoginHostGpu"] == "login-gpu.tidegate-dev.internal"
    assert outputs["LoginHostBig1"] == "login-big-1.tidegate-dev.internal"
    assert "LoginInstanceIdsGpu" in outputs


def test_ssh_opens_the_kind_that_names_networks_and_no_other(kinds: Stack) -> None:
    open_to = {
        joined(each["GroupId"])
        for each in kinds.all("AWS::EC2::SecurityGroupIngress")
        if "CidrIp" in each
    }

    assert open_to == {
        f"<{kinds.logical_id('NetworkLoginGroup', 'AWS::EC2::SecurityGroup')}.GroupId>"
    }


def test_a_kind_runs_the_scripts_of_all_and_then_its_own(kinds: Stack) -> None:
    told = {
        each["Name"]: joined(each["Value"])
        for each in kinds.all("AWS::SSM::Parameter")
        if "/login" in each["Name"]
    }
    role = statements(kinds, "LoginGpuRole")
    (own,) = kinds.named("LoginGpuRole", "AWS::IAM::Role")["ManagedPolicyArns"]

    assert told.keys() == {
        f"/tidegate/dev/{each}" for each in ("login", "login-gpu", "login-big-1")
    }
    assert "ON_LOGIN_CONFIGURED_S=780" in told["/tidegate/dev/login-gpu"].splitlines()
    bundles = {name: text.splitlines()[0] for name, text in told.items()}
    assert bundles["/tidegate/dev/login"] == bundles["/tidegate/dev/login-big-1"]
    assert bundles["/tidegate/dev/login"] != bundles["/tidegate/dev/login-gpu"]
    assert joined(role["Boot"]["Resource"]).endswith("parameter/tidegate/dev/login-gpu")
    assert own == GPU["policies"][0]


def test_who_is_logged_in_is_told_of_when_a_kind_of_login_nodes_or_one_of_them_goes(
    tmp_path: Path,
) -> None:
    """The others stay as they are."""
    both = {"kinds": {"login": {}, "gpu": {"count": "2"}}}
    before, fewer, one = (
        synthesized(tmp_path / name, dev_file(login=login))["tidegate-dev"].template
        for name, login in (
            ("before", both),
            ("fewer", {"kinds": {"login": {}, "gpu": {"count": "1"}}}),
            ("one", {}),
        )
    )

    for after, count in ((fewer, 1), (one, 2)):
        gone = [each for each in changes(before, after) if each.kind == "AWS::EC2::Instance"]
        assert [(each.effect, each.is_grave) for each in gone] == [(Effect.REMOVED, True)] * count
        assert all("LoginGpuInstance" in each.logical_id for each in gone)
        assert all("who is logged in there is cut off" in each.sentence for each in gone)
    assert not [each for each in changes(one, before) if each.is_grave]
