"""FSx for Lustre: made by the stack or there already, and mounted by head and nodes."""

import json
import re
from itertools import permutations
from typing import Any

import pytest

from tests.cdk.made import Stack, dev_file, joined, synthesized
from tidegate.core.model.errors import BadConfig

EXISTING = {
    "directory": "/scratch2",
    "lustre": "fs-0a1b2c3d",
    "mount_name": "3a4bcdef",
    "security_group": "sg-0a1b2c3d",
}
NETWORK = {
    "vpc": "vpc-0a1b2c3d",
    "subnets": {"us-east-1a": "subnet-0a1b2c3d", "us-east-1b": "subnet-0a1b2c3e"},
}


def cluster(folder: Any, **changes: Any) -> Stack:
    return synthesized(folder, dev_file(**changes))["tidegate-dev"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    return cluster(tmp_path_factory.mktemp("lustre"), lustre={"storage_gib": "2400"})


def told_to_mount(stack: Stack) -> set[str]:
    """What the user data of head and nodes mounts."""
    texts = [joined(stack.one("AWS::EC2::Instance")["UserData"])]
    texts += [
        joined(each["LaunchTemplateData"]["UserData"])
        for each in stack.all("AWS::EC2::LaunchTemplate")
        if "UserData" in each["LaunchTemplateData"]
    ]
    texts += [joined(each["Value"]) for each in stack.all("AWS::SSM::Parameter")]
    tables = [found for text in texts for found in re.findall(r"LUSTRE='([^']*)'", text)]
    return {line.split("\t")[0] for table in tables for line in table.splitlines()}


def test_one_is_made_in_the_heads_zone_and_kept(made: Stack):
    ((logical_id, resource),) = made.resources("AWS::FSx::FileSystem")
    properties = resource["Properties"]

    assert properties["StorageCapacity"] == 2400
    assert properties["LustreConfiguration"]["DeploymentType"] == "SCRATCH_2"
    (subnet,) = properties["SubnetIds"]
    assert "useast1a" in subnet["Ref"]
    assert is_kept(resource)
    assert resource["UpdateReplacePolicy"] == "Retain"
    assert properties["FileSystemTypeVersion"] == "2.15"
    assert properties["LustreConfiguration"]["DataCompressionType"] == "LZ4"
    host, name = f"<{logical_id}.DNSName>", f"<{logical_id}.LustreMountName>"
    assert told_to_mount(made) == {f"{host}@tcp:/{name}"}


def test_lustres_ports_are_open_between_clients_and_servers_and_to_nobody_else(made: Stack):
    opened = [
        each
        for each in made.all("AWS::EC2::SecurityGroupIngress")
        if each.get("Description") == "Lustre"
    ]

    assert {(each["FromPort"], each["ToPort"]) for each in opened} == {(988, 988), (1018, 1023)}
    assert len(opened) == 10
    assert all("SourceSecurityGroupId" in each for each in opened)
    (group,) = made.one("AWS::FSx::FileSystem")["SecurityGroupIds"]
    assert {joined(each["GroupId"]) for each in opened if joined(group) in between(each)} == {
        joined(each["GroupId"]) for each in opened
    }


def test_fsx_is_asked_for_it_when_its_ports_are_open(made: Stack):
    """It looks at the rules of the group, and refuses one that lets no Lustre through."""
    ((_, resource),) = made.resources("AWS::FSx::FileSystem")

    assert set(resource.get("DependsOn", ())) >= rules(made)


def test_what_it_lives_in_is_kept_with_it(made: Stack, tmp_path):
    """EC2 deletes no group, subnet or VPC that has an interface of FSx: DependencyViolation, and
    the stack's deletion would fail (aws/aws-cdk#31521).
    """
    assert gone_below_what_stays(made) == set()

    there = cluster(tmp_path, lustre={"storage_gib": "1200"}, network=NETWORK)
    assert gone_below_what_stays(there) == set()
    kinds = [each["Type"] for each in there.template["Resources"].values() if is_kept(each)]
    # Its servers reach each other by the two rules, whoever mounts it next.
    rules_kept = ["AWS::EC2::SecurityGroupIngress"] * 2
    assert sorted(kinds) == ["AWS::EC2::SecurityGroup", *rules_kept, "AWS::FSx::FileSystem"]


def gone_below_what_stays(stack: Stack) -> set[str]:
    resources = stack.template["Resources"]
    seen: set[str] = set()
    look = [name for name, each in resources.items() if is_kept(each)]
    assert look
    while look:
        seen.add(name := look.pop())
        text = json.dumps(resources[name]["Properties"])
        found = re.findall(r'"(?:Ref|Fn::GetAtt)": \[?"(\w+)"', text)
        look += [each for each in found if each in resources and each not in seen]
    return {name for name in seen if not is_kept(resources[name])}


def is_kept(resource: dict[str, Any]) -> bool:
    """What is Retain would also stay behind a first deployment that fails, and cost."""
    return resource.get("DeletionPolicy") == "RetainExceptOnCreate"


def test_the_head_boots_when_one_that_is_there_lets_it_in(tmp_path):
    there = cluster(tmp_path, file_systems=[EXISTING], network=NETWORK)

    ((_, head),) = there.resources("AWS::EC2::Instance")

    assert set(head["DependsOn"]) >= rules(there)


def rules(stack: Stack) -> set[str]:
    return {
        name
        for name, each in stack.resources("AWS::EC2::SecurityGroupIngress")
        if each["Properties"].get("Description") == "Lustre"
    }


def between(rule: dict[str, Any]) -> tuple[str, str]:
    return joined(rule["GroupId"]), joined(rule["SourceSecurityGroupId"])


def test_a_persistent_one_has_throughput_and_the_clusters_key(tmp_path):
    key = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-1111-2222-3333-444455556666"
    lustre = {"storage_gib": "1200", "kind": "persistent"}

    properties = cluster(tmp_path, lustre=lustre, kms_key=key).one("AWS::FSx::FileSystem")

    assert properties["LustreConfiguration"]["DeploymentType"] == "PERSISTENT_2"
    assert properties["LustreConfiguration"]["PerUnitStorageThroughput"] == 125
    assert properties["KmsKeyId"] == key


def test_one_that_is_there_is_mounted_by_its_id(tmp_path):
    made = cluster(tmp_path, file_systems=[EXISTING], network=NETWORK)

    assert not made.all("AWS::FSx::FileSystem")
    assert told_to_mount(made) == {"fs-0a1b2c3d.fsx.us-east-1.amazonaws.com@tcp:/3a4bcdef"}
    opened = [
        between(each)
        for each in made.all("AWS::EC2::SecurityGroupIngress")
        if each.get("Description") == "Lustre"
    ]
    assert len(opened) == 8
    assert all(EXISTING["security_group"] in each for each in opened)
    # Theirs, without which FSx makes none: to EC2 ours would be the same, and go with the stack.
    assert not any(of == source for of, source in opened)


@pytest.mark.parametrize(
    ("where", "domain"), [("cn-north-1", "amazonaws.com.cn"), ("eusc-de-east-1", "amazonaws.eu")]
)
def test_one_in_another_partition_has_the_name_of_that(tmp_path, where, domain):
    pool = {
        "instance_types": ["g4dn.xlarge"],
        "zones": [f"{where}a"],
        "capacity_types": ["on-demand"],
    }
    price = {"g4dn.xlarge": {"on-demand": "0.7"}}
    region = {"region": where, "prices_usd_per_hour": price, "pools": {"t4": pool}}
    network = {"vpc": "vpc-0a1b2c3d", "subnets": {f"{where}a": "subnet-0a1b2c3d"}}
    changes = {"partitions": {"gpu": {"pools": ["t4"], "default": "true"}}}

    made = cluster(tmp_path, file_systems=[EXISTING], network=network, **region, **changes)

    assert told_to_mount(made) == {f"fs-0a1b2c3d.fsx.{where}.{domain}@tcp:/3a4bcdef"}


def test_several_are_mounted_beside_the_one_that_is_made(tmp_path):
    other = EXISTING | {"lustre": "fs-0a1b2c3e", "directory": "/old", "read_only": "true"}
    more = [EXISTING, other | {"security_group": "sg-0a1b2c3e"}]
    there = cluster(tmp_path, lustre={"storage_gib": "1200"}, file_systems=more, network=NETWORK)

    domain = "fsx.us-east-1.amazonaws.com@tcp:/3a4bcdef"
    assert {f"fs-0a1b2c3d.{domain}", f"fs-0a1b2c3e.{domain}"} < told_to_mount(there)
    assert len(told_to_mount(there)) == 3
    assert len(rules(there)) == 34
    ((_, head),) = there.resources("AWS::EC2::Instance")
    assert set(head["DependsOn"]) >= {each for each in rules(there) if "Within" not in each}


def test_rules_of_lustre_existing_keep_their_logical_ids(tmp_path):
    """CloudFormation takes new ones of the same for made, then deletes the old: all ports shut."""
    there = cluster(tmp_path, file_systems=[EXISTING], network=NETWORK)

    assert {each.removeprefix("Lustre") for each in rules(there)} == {
        "FromHead9880689449E",
        "FromHead1018992EB47A",
        "ToHead9882947DC0E",
        "ToHead1018B0C33538",
        "FromNodes988596E4924",
        "FromNodes1018B2CC65F0",
        "ToNodes988BFAE8D6C",
        "ToNodes1018991C0FBF",
    }


def test_no_rule_is_made_anew_and_deleted_when_another_entry_comes_first(tmp_path):
    other = EXISTING | {"lustre": "fs-0a1b2c3e", "directory": "/old"}
    other["security_group"] = "sg-0a1b2c3e"
    orders = [EXISTING, other], [other, EXISTING], [other]
    stacks = [cluster(tmp_path, file_systems=each, network=NETWORK) for each in orders]
    stacks.append(
        cluster(tmp_path, file_systems=[EXISTING], network=NETWORK, lustre={"storage_gib": "1200"})
    )

    for before, after in permutations(map(contents, stacks), 2):
        gone, made = before.items() - after.items(), after.items() - before.items()
        assert not {rule for _, rule in gone} & {rule for _, rule in made}


def contents(stack: Stack) -> dict[str, tuple[Any, ...]]:
    """By logical id, what makes a rule another one to EC2."""
    found = {name: stack.template["Resources"][name]["Properties"] for name in rules(stack)}
    return {
        name: (*between(each), each["FromPort"], each["ToPort"]) for name, each in found.items()
    }


def test_another_kind_is_another_file_system(made: Stack, tmp_path):
    lustre = {"storage_gib": "2400", "kind": "persistent"}
    other = cluster(tmp_path, lustre=lustre)

    ((scratch, _),) = made.resources("AWS::FSx::FileSystem")
    ((persistent, _),) = other.resources("AWS::FSx::FileSystem")
    assert scratch != persistent


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"lustre": {}}, "lustre.storage_gib"),
        ({"file_systems": [EXISTING | {"efs": "fs-0a1b2c3e"}]}, "one of the five"),
        ({"lustre": {"storage_gib": "2000"}}, "must be 1200 or a multiple of 2400"),
        ({"file_systems": [EXISTING]}, r"needs network\.vpc"),
        ({"lustre": {"storage_gib": "1200", "directory": "/shared"}}, "is shared_dir as well"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, changes: dict[str, Any], says: str):
    with pytest.raises(BadConfig, match=says):
        cluster(tmp_path, **changes)


def test_without_one_nothing_is_mounted(dev: Stack):
    assert told_to_mount(dev) == set()
    assert not dev.all("AWS::FSx::FileSystem")
