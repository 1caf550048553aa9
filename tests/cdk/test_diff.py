"""`tidegate diff`: what a changed cluster file would replace."""

import copy
import json
import re
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from tests.cdk.made import Stack, anew, dev_file, synthesized
from tests.cdk.test_lint import FILES
from tests.cdk.variants import SLACK, VARIANTS, stacks_of
from tidegate.cli.diff import HOLDS_DATA, REPLACED_BY, Change, Effect, changes
from tidegate.cli.main import app
from tidegate.core.model.errors import UnknownCaller

POOLS: dict[str, Any] = dev_file()["pools"]
T4 = POOLS["t4"]
# What goes from the file and is kept, without a machine that mounts it.
KEPT = HOLDS_DATA - {"AWS::FSx::FileSystem"}
RUNNING = ("AWS::EC2::Instance", "AWS::Route53::RecordSet")


def found(folder: Any, both: dict[str, Stack], **file: Any) -> list[Change]:
    """What a deployment of the changed file would do, over both stacks."""
    after = synthesized(folder, dev_file(**file)) if file else anew(folder, dev_file())
    return [
        change
        for name, stack in both.items()
        for change in changes(stack.template, after[name].template)
    ]


def of(effect: Effect, those: list[Change]) -> list[str]:
    return [each.kind for each in those if each.effect is effect]


def template(kind: str = "", **properties: Any) -> dict[str, Any]:
    """Of one resource; of none without a kind."""
    return {"Resources": {"It": {"Type": kind, "Properties": properties}} if kind else {}}


@pytest.mark.parametrize(
    ("kind", "name", "effect", "meaning"),
    [
        ("AWS::EC2::Volume", "Encrypted", Effect.REPLACED, "the old one is kept, what is in it"),
        ("AWS::EC2::Volume", "KmsKeyId", Effect.REPLACED, "the old one is kept, what is in it"),
        ("AWS::EC2::Volume", "Size", Effect.CHANGED, ""),
        ("AWS::S3::Bucket", "BucketName", Effect.REPLACED, "the old one is kept"),
        ("AWS::DynamoDB::Table", "KeySchema", Effect.REPLACED, "the old one is kept"),
        ("AWS::DynamoDB::Table", "LocalSecondaryIndexes", Effect.REPLACED, "the old one is kept"),
        ("AWS::FSx::FileSystem", "StorageCapacity", Effect.REPLACED, "the old one is kept"),
        ("AWS::EC2::Instance", "UserData", Effect.RESTARTED, "the head is away for minutes"),
        ("AWS::EC2::Instance", "SubnetId", Effect.REPLACED, "a new head boots"),
        ("AWS::EC2::LaunchTemplate", "LaunchTemplateData", Effect.CHANGED, "from then on"),
        ("AWS::EC2::LaunchTemplate", "TagSpecifications", Effect.CHANGED, "leaves the tags of"),
    ],
)
def test_what_a_change_of_a_property_does(kind, name, effect, meaning):
    (change,) = changes(template(kind, **{name: 1}), template(kind, **{name: 2}))

    assert (change.effect, change.properties) == (effect, (name,))
    assert change.sentence.startswith(f"It ({kind}) is {effect} by {name}")
    assert meaning in change.sentence
    assert change.is_grave is (effect is Effect.REPLACED)


@pytest.mark.parametrize(
    ("kind", "meaning"),
    [
        *((kind, ": it is kept, and paid for until you delete it") for kind in sorted(KEPT)),
        ("AWS::EC2::LaunchTemplate", ": no more nodes of this pool"),
        ("AWS::Logs::LogGroup", ": what was logged there goes with it"),
        ("AWS::SNS::Topic", ""),
    ],
)
def test_what_goes_is_removed_or_kept(kind, meaning):
    (change,) = changes(template(kind), template())

    assert change.sentence == f"It ({kind}) is removed{meaning}"
    assert not change.is_grave


def test_another_type_under_the_same_name_is_another_resource():
    (change,) = changes(template("AWS::SQS::Queue"), template("AWS::SNS::Topic"))

    assert change.effect is Effect.REPLACED


def test_what_refers_to_the_replaced_is_told_with_it_the_gravest_first():
    def both(name: str) -> dict[str, Any]:
        made = template("AWS::SNS::Topic", TopicName=name)
        asked = {"A": {"Fn::GetAtt": ["It", "Arn"]}, "B": ["x", {"Ref": "It"}], "C": {"Ref": "No"}}
        more = {
            "Named": {"Type": "AWS::Scheduler::Schedule", "Properties": {"Name": {"Ref": "It"}}},
            "Arn": {"Type": "T", "Properties": asked},
            "Last": {"Type": "T", "Properties": {"Of": {"Ref": "Named"}}},
        }
        return {"Resources": {**made["Resources"], **more}}

    found = changes(both("old"), both("new"))

    assert [(each.logical_id, each.effect.name, each.properties) for each in found] == [
        ("It", "REPLACED", ("TopicName",)),
        ("Named", "REPLACED", ("Name",)),
        ("Arn", "CHANGED", ("A", "B")),
        ("Last", "CHANGED", ("Of",)),
    ]


def test_what_cloudformation_replaces_is_called_replaced(tmp_path, tmp_path_factory, both):
    """By CloudFormation's own schemas, for every property that our templates have."""
    more = ("capacity block and group", "everything told", "own network", "images")
    made = [
        *both.values(),
        *synthesized(tmp_path, dev_file(**FILES["NAT"])).values(),
        *(each for name in more for each in stacks_of(tmp_path_factory, name).values()),
    ]
    missing = {
        f"{kind} {name}"
        for stack in made
        for resource in stack.template["Resources"].values()
        for kind in [resource["Type"]]
        for name in resource.get("Properties", {}).keys() & create_only(kind)
        if name not in REPLACED_BY.get(kind, ())
    }

    assert missing == set()


# By FSx for Lustre, which stays when the stack goes.
LIVED_IN = frozenset(
    f"AWS::EC2::{each}" for each in ("SecurityGroup", "SecurityGroupIngress", "Subnet", "VPC")
)


def test_what_the_templates_keep_holds_data(tmp_path):
    made = synthesized(tmp_path, dev_file(**FILES["NAT"])).values()
    kept = {
        resource["Type"]
        for stack in made
        for resource in stack.template["Resources"].values()
        if resource.get("DeletionPolicy", "").startswith("Retain")
        and resource["UpdateReplacePolicy"] == "Retain"
    }

    assert kept - LIVED_IN == HOLDS_DATA


def create_only(kind: str) -> set[str]:
    # Here: each process of a test run would import it for half a second, to collect this file.
    from cfnlint.schema.manager import (  # type: ignore[import-untyped]
        PROVIDER_SCHEMA_MANAGER,
    )

    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    paths = [each.split("/")[2:] for each in schema.get("createOnlyProperties", [])]
    return {path[0] for path in paths if len(path) == 1}


def test_the_same_file_changes_nothing(tmp_path, both):
    assert found(tmp_path, both) == []


@pytest.mark.parametrize(
    "change",
    [
        {"limits": {"gpus": "8", "nodes": "9", "usd_per_hour": "40"}},
        {"pools": {**POOLS, "t4": {**T4, "weight": "7", "limits": {"gpus": "2"}}}},
        {"pools": {**POOLS, "t4": {**T4, "idle_s": "900"}}},
        {"pools": {**POOLS, "t4": {**T4, "instance_types": ["g4dn.xlarge"]}}},
        {"pools": {**POOLS, "t4": {**T4, "capacity_types": ["spot"]}}},
        {"schedules": {"time_zone": "Asia/Tokyo", "stop": "0 22 * * *", "start": "0 6 * * *"}},
        {"alarm_email": "ops@example.org"},
        {"logs": {"retention_days": "7"}},
        {"backup_days": "30"},
        {"bill_alert": {"usd_per_month": "100", "email": "a@example.org"}},
        {"metrics": "full"},
        {"notifications": {"slack": SLACK}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_everyday_changes_replace_and_restart_nothing(tmp_path, both, change):
    those = found(tmp_path, both, **change)

    assert those
    assert of(Effect.REPLACED, those) == []
    assert of(Effect.RESTARTED, those) == []
    assert of(Effect.REMOVED, those) == []
    assert [each for each in those if each.kind in RUNNING] == []


def test_pool_that_comes_or_goes_touches_no_other_pool_and_not_the_head(tmp_path, both):
    one = {"pools": {"t4": T4}, "partitions": {"gpu": {"pools": ["t4"]}}}
    those = found(tmp_path, both, **one)

    templates = [each for each in those if each.kind == "AWS::EC2::LaunchTemplate"]
    assert [each.effect for each in templates] == [Effect.REMOVED]
    assert "no more nodes of this pool" in templates[0].sentence
    assert [each for each in those if each.kind in RUNNING] == []


def test_new_image_reaches_new_nodes_and_the_head_is_told_to_be_replaced(tmp_path, both):
    those = found(tmp_path, both, image="ami-0123456789abcdef0")

    (head,) = [each for each in those if each.kind == "AWS::EC2::Instance"]
    assert (head.effect, set(head.properties)) == (Effect.REPLACED, {"ImageId", "LaunchTemplate"})
    assert "a new head boots" in head.sentence
    nodes = [each for each in those if each.logical_id.startswith("NodesPool")]
    assert {each.effect for each in nodes} == {Effect.CHANGED}
    # What names the head follows it.
    assert "AWS::Route53::RecordSet" in of(Effect.CHANGED, those)


def test_one_image_for_another_replaces_the_head_alone(tmp_path):
    images = ("ami-0123456789abcdef0", "ami-0fedcba9876543210")
    old, new = (
        synthesized(tmp_path / image, dev_file(head={"image": image}))["tidegate-dev"].template
        for image in images
    )

    (head,) = [each for each in changes(old, new) if each.kind == "AWS::EC2::Instance"]
    assert (head.effect, head.properties) == (Effect.REPLACED, ("ImageId",))
    assert not [each for each in changes(old, new) if each.logical_id.startswith("Nodes")]


def test_larger_head_is_stopped_and_started(tmp_path, both):
    those = found(tmp_path, both, head={"instance_type": "m6i.2xlarge"})

    assert of(Effect.RESTARTED, those) == ["AWS::EC2::Instance"]
    assert of(Effect.REPLACED, those) == []


def test_a_zone_that_no_pool_names_any_more_is_told_to_cost_its_nodes_their_files(tmp_path, both):
    pools = {name: {**each, "zones": ["us-east-1a"]} for name, each in POOLS.items()}
    grave = [each for each in found(tmp_path, both, pools=pools) if each.is_grave]

    assert [(each.effect, each.kind) for each in grave] == [
        (Effect.REMOVED, "AWS::EFS::MountTarget")
    ]
    assert "nodes that still run in its zone lose the shared files" in grave[0].sentence


def test_a_network_that_becomes_public_is_told_to_cut_off_what_runs(tmp_path, both):
    nat = synthesized(tmp_path / "nat", dev_file(network={"nat": "one"}))
    there, back = (
        [each for each in changes(*ways) if each.is_grave]
        for before, after in [(nat["tidegate-dev"].template, both["tidegate-dev"].template)]
        for ways in ((after, before), (before, after))
    )

    assert there == []
    assert {each.kind for each in back} == {"AWS::EC2::Subnet"}
    assert all("have no way out then" in each.sentence for each in back)


def test_login_nodes_are_not_called_a_head(tmp_path):
    one, other = (
        synthesized(tmp_path / gib, dev_file(login={"root_gib": gib}))["tidegate-dev"].template
        for gib in ("50", "60")
    )

    (login,) = [each for each in changes(one, other) if each.kind == "AWS::EC2::Instance"]
    assert login.effect is Effect.REPLACED
    assert login.sentence.endswith("who is logged in there is cut off, jobs that run go on")


def test_another_zone_for_the_head_says_that_its_data_does_not_move(tmp_path, both):
    those = found(tmp_path, both, head={"zone": "us-east-1b"})

    (volume,) = [each for each in those if each.kind == "AWS::EC2::Volume"]
    assert volume.effect is Effect.REPLACED
    assert volume.sentence.endswith("the old one is kept, what is in it does not move")


@pytest.mark.parametrize(
    ("lustre", "effect"),
    [
        ({"storage_gib": "2400"}, Effect.REPLACED),
        ({"storage_gib": "1200", "kind": "persistent"}, Effect.REMOVED),
    ],
)
def test_lustre_that_would_begin_empty_is_told(tmp_path, lustre: dict[str, str], effect: Effect):
    before = synthesized(tmp_path / "before", dev_file(lustre={"storage_gib": "1200"}))

    (files,) = [
        each
        for each in found(tmp_path / "after", before, lustre=lustre)
        if each.kind == "AWS::FSx::FileSystem" and each.effect is not Effect.ADDED
    ]
    assert (files.effect, files.is_grave) == (effect, True)
    assert "is kept" in files.sentence


def test_lustre_that_is_taken_out_is_told_to_be_paid_for_and_gone_from_what_runs(tmp_path):
    before = synthesized(tmp_path / "before", dev_file(lustre={"storage_gib": "1200"}))

    (files,) = [each for each in found(tmp_path / "after", before) if each.is_grave]
    assert "is kept, and paid for until you delete it; machines that run" in files.sentence


def test_reference_to_what_is_replaced_is_a_change(both):
    before = both["tidegate-dev"].template
    after = copy.deepcopy(dict(before))
    name = both["tidegate-dev"].logical_id("NetworkOwnVpc", "AWS::EC2::VPC")
    after["Resources"][name]["Properties"]["CidrBlock"] = "10.9.0.0/16"

    those = changes(before, after)

    replaced = set(of(Effect.REPLACED, those))
    assert {"AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::SecurityGroup"} <= replaced
    assert "AWS::EC2::Instance" in replaced


def test_command_compares_two_assemblies_and_warns_by_its_exit_code(tmp_path, both):
    file = tmp_path / "dev.yaml"
    file.write_text(yaml.safe_dump(dev_file()))
    before = both["tidegate-dev"].folder
    fine = synthesized(tmp_path / "a", dev_file(limits={"nodes": "3"}))["tidegate-dev"].folder
    grave = synthesized(tmp_path / "b", dev_file(head={"zone": "us-east-1b"}))
    run = CliRunner()

    def said(folder: Any, *more: str) -> Any:
        given = ["diff", "--cluster", str(file), "--assembly", str(folder), "--before", str(before)]
        return run.invoke(app, [*given, *more])

    assert said(fine).exit_code == 0
    assert "tidegate-dev-data: no change" in said(fine).output
    shown = " ".join(said(grave["tidegate-dev"].folder).output.split())
    assert "does not move" in shown
    assert "HeadInstanceId), then deploy" in shown
    assert "npx cdk destroy tidegate-dev, npx cdk deploy tidegate-dev;" in shown
    assert said(tmp_path).exit_code == 1
    untouched = "Nodes that run are touched by no deployment"
    assert untouched in said(fine).output
    one_zone = {name: {**each, "zones": ["us-east-1a"]} for name, each in POOLS.items()}
    less = synthesized(tmp_path / "c", dev_file(pools=one_zone))["tidegate-dev"].folder
    assert said(less).exit_code == 3
    assert untouched not in said(less).output

    told = said(grave["tidegate-dev"].folder, "--output", "json")
    assert told.exit_code == 1
    every = json.loads(told.output)
    codes = [each["code"] for each in every if each["effect"] == "refused"]
    assert set(codes) == {"ExportInUse", "VolumeInUse"}
    found = {each["kind"]: each for each in every if each["is_grave"] and not each["code"]}
    assert "does not move" in found["AWS::EC2::Volume"]["sentence"]
    assert found["AWS::EC2::Instance"]["stack"] == "tidegate-dev"
    assert found["AWS::EC2::Instance"]["effect"] == "replaced"


def test_command_warns_of_lustre_that_would_begin_empty_by_its_exit_code(tmp_path):
    file = tmp_path / "dev.yaml"
    file.write_text(yaml.safe_dump(dev_file()))
    before, after = (
        synthesized(tmp_path / gib, dev_file(lustre={"storage_gib": gib}))["tidegate-dev"].folder
        for gib in ("1200", "2400")
    )

    given = ["diff", "--cluster", str(file), "--assembly", str(after), "--before", str(before)]
    assert CliRunner().invoke(app, given).exit_code == 3


def test_command_without_credentials_says_what_to_do(tmp_path, both):
    file = tmp_path / "dev.yaml"
    file.write_text(yaml.safe_dump(dev_file()))

    def nobody(service: str) -> Any:
        raise UnknownCaller("Unable to locate credentials")

    given = ["diff", "--cluster", str(file), "--assembly", str(both["tidegate-dev"].folder)]
    told = CliRunner().invoke(app, given, obj=nobody)

    assert told.exit_code == 1
    assert "AWS does not know who asks: Unable to locate credentials; log in" in told.stderr


def test_command_tells_of_images_that_are_new_in_the_file(tmp_path, both, tmp_path_factory):
    """It compares with a folder, or an account, that has no such stack."""
    file = tmp_path / "dev.yaml"
    file.write_text(yaml.safe_dump(VARIANTS["images"]))
    before = both["tidegate-dev"].folder
    after = stacks_of(tmp_path_factory, "images")["tidegate-dev"].folder

    given = ["diff", "--cluster", str(file), "--assembly", str(after), "--before", str(before)]
    shown = CliRunner().invoke(app, given).output

    assert re.search(r"^tidegate-dev-images: \d+ changes$", shown, re.MULTILINE)
    assert "AWS::ImageBuilder::ImagePipeline" in shown
