"""Who may do what. This page is the whole list: a right that is not in it must not be there."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cdk.made import Properties, Stack, dev_file, joined, synthesized

LEDGER = {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"}
FUNCTION = {"logs:CreateLogStream", "logs:PutLogEvents", "s3:GetObject", "sqs:SendMessage"}
FED = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
MOUNT = {"elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"}
HOURS = {
    *(LEDGER | FUNCTION),
    *("ec2:DescribeInstances", "ec2:StartInstances", "ec2:StopInstances"),
}

SHELL = {
    "ssm:UpdateInstanceInformation",
    *(f"ssmmessages:{each}Channel" for each in ("CreateControl", "CreateData")),
    *(f"ssmmessages:{each}Channel" for each in ("OpenControl", "OpenData")),
}

ACTIONS = {
    "FunctionsPlannerRole": {
        *(LEDGER | FUNCTION | FED),
        *("dynamodb:BatchGetItem", "s3:ListBucket", "s3:PutObject"),
        *("ec2:DescribeInstances", "ec2:CreateFleet"),
        *("ec2:RunInstances", "ec2:CreateTags", "ec2:TerminateInstances", "iam:PassRole"),
        "iam:CreateServiceLinkedRole",
    },
    "FunctionsInterruptionRole": {
        *(FUNCTION | FED),
        *("dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "s3:ListBucket"),
    },
    "FunctionsScheduleRole": HOURS,
    "FunctionsReconcileRole": HOURS,
    "HoursRole": {"lambda:InvokeFunction", "sqs:SendMessage"},
    "HeadRole": {
        *(MOUNT | SHELL),
        *("elasticfilesystem:ClientRootAccess", "events:PutEvents", "s3:PutObject"),
        *("secretsmanager:GetSecretValue", "sqs:DeleteMessage", "sqs:ReceiveMessage"),
        *("s3:GetObject", "s3:ListBucket", "ssm:GetParameter"),
    },
    "NodesRole": {
        *(MOUNT | SHELL),
        *("events:PutEvents", "s3:GetObject", "secretsmanager:GetSecretValue"),
    },
}
SERVICES = {"Functions": "lambda", "Hours": "scheduler", "Head": "ec2", "Nodes": "ec2"}


def statements(stack: Stack, role: str) -> Iterator[Properties]:
    for policy in stack.named(role, "AWS::IAM::Role")["Policies"]:
        yield from policy["PolicyDocument"]["Statement"]


def statement(stack: Stack, role: str, sid: str) -> Properties:
    (found,) = [each for each in statements(stack, role) if each["Sid"] == sid]
    return found


def listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def resources(found: Properties) -> list[str]:
    return [joined(each) for each in listed(found["Resource"])]


def conditions(found: Properties) -> Properties:
    return dict(found.get("Condition", {}))


def test_there_are_these_roles_and_rights_are_given_nowhere_else(dev: Stack):
    assert len(dev.all("AWS::IAM::Role")) == len(ACTIONS)
    assert dev.all("AWS::IAM::Policy") == []
    assert dev.all("AWS::IAM::ManagedPolicy") == []
    assert dev.all("AWS::Lambda::Permission") == []


@pytest.mark.parametrize("role", ACTIONS)
def test_role_has_exactly_these_rights(dev: Stack, role):
    granted = {action for found in statements(dev, role) for action in listed(found["Action"])}

    assert granted == ACTIONS[role]


@pytest.mark.parametrize("role", ACTIONS)
def test_nothing_is_granted_on_everything_but_what_has_no_resources(dev: Stack, role):
    on_all = {
        action
        for found in statements(dev, role)
        if "*" in resources(found)
        for action in listed(found["Action"])
    }

    assert on_all <= {"ec2:DescribeInstances"} | SHELL


@pytest.mark.parametrize("role", ACTIONS)
def test_role_is_for_one_service(dev: Stack, role):
    (trust,) = dev.named(role, "AWS::IAM::Role")["AssumeRolePolicyDocument"]["Statement"]
    part = next(each for each in SERVICES if role.startswith(each))

    assert trust["Principal"] == {"Service": f"{SERVICES[part]}.amazonaws.com"}


def test_scheduler_starts_only_this_account_s_schedules(dev: Stack):
    (trust,) = dev.named("HoursRole", "AWS::IAM::Role")["AssumeRolePolicyDocument"]["Statement"]

    assert conditions(trust) == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_machines_and_only_they_can_be_reached_by_session_manager(dev: Stack):
    reached = {
        role
        for role in ACTIONS
        if SHELL.issubset(one for found in statements(dev, role) for one in listed(found["Action"]))
    }

    assert reached == {"HeadRole", "NodesRole"}


def test_no_role_has_rights_that_aws_decides(dev: Stack):
    """AWS's policy for Session Manager reads every parameter of the account."""
    assert not [each for each in dev.all("AWS::IAM::Role") if each.get("ManagedPolicyArns")]


def test_planner_launches_only_what_carries_the_cluster_s_tag_from_our_templates(dev: Stack):
    launched = statement(dev, "FunctionsPlannerRole", "LaunchInstances")
    fleet = statement(dev, "FunctionsPlannerRole", "LaunchFleet")
    templates = statement(dev, "FunctionsPlannerRole", "LaunchFrom")
    arn = "arn:aws:ec2:us-east-1:<AWS::AccountId>:launch-template/*"

    ours = {"StringEquals": {"aws:RequestTag/tidegate:cluster": "dev"}}
    assert conditions(fleet) == ours
    assert conditions(launched)["StringEquals"] == ours["StringEquals"]
    assert joined(conditions(launched)["ArnLike"]["ec2:LaunchTemplate"]) == arn
    assert resources(templates) == [arn]
    assert conditions(templates) == {"StringEquals": {"aws:ResourceTag/tidegate:cluster": "dev"}}
    assert resources(launched) == ["arn:aws:ec2:us-east-1:<AWS::AccountId>:instance/*"]


def test_every_template_that_launches_nodes_carries_the_tag_by_which_it_is_allowed(dev: Stack):
    specifications = [
        resource["Properties"]["TagSpecifications"]
        for logical_id, resource in dev.resources("AWS::EC2::LaunchTemplate")
        if logical_id.startswith("Nodes")
    ]

    assert specifications
    for each in specifications:
        (tags,) = [one["Tags"] for one in each if one["ResourceType"] == "launch-template"]
        assert {"Key": "tidegate:cluster", "Value": "dev"} in tags


def test_planner_launches_only_into_our_subnets_and_group(dev: Stack):
    used = [
        arn.split(":")[-1]
        for arn in resources(statement(dev, "FunctionsPlannerRole", "LaunchWith"))
    ]
    group = dev.logical_id("NetworkNodeGroup", "AWS::EC2::SecurityGroup")

    assert "subnet/*" not in used
    assert len([each for each in used if each.startswith("subnet/")]) == 2
    assert not [each for each in used if each.startswith("launch-template/")]
    assert [each for each in used if each.startswith("security-")] == [
        f"security-group/<{group}.GroupId>"
    ]
    assert "instance/*" not in used


def test_planner_tags_only_while_it_launches(dev: Stack):
    found = statement(dev, "FunctionsPlannerRole", "TagWhatIsLaunched")

    assert conditions(found)["StringEquals"] == {
        "aws:RequestTag/tidegate:cluster": "dev",
        "ec2:CreateAction": ["CreateFleet", "RunInstances"],
    }


def test_planner_passes_the_nodes_role_to_ec2_only(dev: Stack):
    found = statement(dev, "FunctionsPlannerRole", "NodesGetTheirRole")
    role = dev.logical_id("NodesRole", "AWS::IAM::Role")

    assert resources(found) == [f"<{role}.Arn>"]
    assert conditions(found) == {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com"]}}


def test_planner_may_let_ec2_make_the_role_of_spot_and_no_other(dev: Stack, tmp_path):
    found = statement(dev, "FunctionsPlannerRole", "SpotRoleOfAccount")

    (arn,) = resources(found)
    assert arn.endswith(":role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot")
    assert conditions(found) == {"StringEquals": {"iam:AWSServiceName": "spot.amazonaws.com"}}
    plain = dev_file()["pools"]
    for pool in plain.values():
        pool["capacity_types"] = ["on-demand"]
    without = synthesized(tmp_path, dev_file(pools=plain))["tidegate-dev"]
    sids = {each["Sid"] for each in statements(without, "FunctionsPlannerRole")}
    assert "SpotRoleOfAccount" not in sids


def test_planner_ends_the_cluster_s_nodes_and_neither_head_nor_login_node(dev: Stack):
    assert conditions(statement(dev, "FunctionsPlannerRole", "EndNodes")) == {
        "StringEquals": {"aws:ResourceTag/tidegate:cluster": "dev"},
        "StringNotEquals": {"aws:ResourceTag/tidegate:role": ["head", "login"]},
    }


def test_planner_stops_and_starts_the_cluster_s_nodes_only_where_a_pool_keeps_some(
    dev: Stack, tmp_path
):
    sids = {each["Sid"] for each in statements(dev, "FunctionsPlannerRole")}
    assert not sids & {"StopNodes", "TagWhatIsStarted"}
    pools = dev_file()["pools"]
    for pool in pools.values():
        pool |= {"capacity_types": ["on-demand"], "stopped_nodes": 1}
    keeping = synthesized(tmp_path, dev_file(pools=pools))["tidegate-dev"]
    stop, tag = (
        statement(keeping, "FunctionsPlannerRole", sid) for sid in ("StopNodes", "TagWhatIsStarted")
    )

    ours = conditions(statement(keeping, "FunctionsPlannerRole", "EndNodes"))
    assert stop["Action"] == ["ec2:StartInstances", "ec2:StopInstances"]
    assert conditions(stop) == ours
    # Whoever may change these tags of an instance could make any instance a node.
    keys = conditions(tag)["ForAllValues:StringEquals"]["aws:TagKeys"]
    assert not {"tidegate:cluster", "tidegate:role"} & set(keys)
    assert {name: conditions(tag)[name] for name in ours} == ours
    assert conditions(tag)["Null"] == {"aws:TagKeys": "false"}


@pytest.mark.parametrize("role", ["FunctionsScheduleRole", "FunctionsReconcileRole"])
def test_hours_are_kept_on_the_cluster_s_head_only(dev: Stack, role):
    assert conditions(statement(dev, role, "Head")) == {
        "StringEquals": {
            "aws:ResourceTag/tidegate:cluster": "dev",
            "aws:ResourceTag/tidegate:role": "head",
        }
    }


def test_digest_is_put_by_the_head_alone_and_under_its_own_name(dev: Stack):
    assert [arn.partition("/")[2] for arn in resources(statement(dev, "HeadRole", "Digest"))] == [
        "digest/dev.json.gz"
    ]
    assert [arn.partition("/")[2] for arn in resources(statement(dev, "HeadRole", "Verdicts"))] == [
        "decisions/dev/latest.json.gz"
    ]
    assert conditions(statement(dev, "HeadRole", "TellOfDigest")) == {
        "ForAllValues:StringEquals": {"events:source": "tidegate.agent"},
        "Null": {"events:source": "false"},
    }


def test_planner_writes_decisions_of_its_own_cluster_and_nothing_else_there(dev: Stack):
    (kept,) = resources(statement(dev, "FunctionsPlannerRole", "Decisions"))

    assert kept.partition("/")[2] == "decisions/dev/*"


@pytest.mark.parametrize("role", [each for each in ACTIONS if each.startswith("Functions")])
def test_function_reads_its_cluster_s_file_and_writes_its_own_log(dev: Stack, role):
    name = role.removeprefix("Functions").removesuffix("Role").lower()
    (file,) = resources(statement(dev, role, "ClusterFile"))
    (log,) = resources(statement(dev, role, "Logs"))

    assert file.endswith("/*.tidegate-dev")
    assert log.endswith(f":log-group:/tidegate/dev/{name}:*")


@pytest.mark.parametrize(
    ("role", "sid", "queues"),
    [
        ("FunctionsPlannerRole", "Send", ["DeadLooks", "Looks", "Routine", "Urgent"]),
        ("FunctionsPlannerRole", "Looks", ["Looks"]),
        ("FunctionsInterruptionRole", "Send", ["Looks", "Urgent"]),
        ("FunctionsInterruptionRole", "Notices", ["Interruptions"]),
        ("FunctionsScheduleRole", "Send", ["Dead", "Looks"]),
        ("FunctionsReconcileRole", "Send", ["Dead", "Looks"]),
        ("HoursRole", "Undelivered", ["Dead"]),
        ("HeadRole", "Orders", ["Routine", "Urgent"]),
    ],
)
def test_role_reaches_these_queues(dev: Stack, role, sid, queues):
    found = [arn.strip("<>").split(".")[0] for arn in resources(statement(dev, role, sid))]

    assert sorted(each.removeprefix("Queues")[:-8] for each in found) == queues


def test_arns_are_those_of_the_region_s_partition(tmp_path):
    """Rights on arn:aws would be none at all in China."""
    pools = {
        "t4": {
            "instance_types": ["g4dn.xlarge"],
            "zones": ["cn-north-1a"],
            "capacity_types": ["spot"],
        }
    }
    file = dev_file(
        region="cn-north-1",
        partitions={"gpu": {"pools": ["t4"]}},
        pools=pools,
        prices_usd_per_hour={"g4dn.xlarge": {"spot": "0.2"}},
    )
    made = synthesized(tmp_path, file)["tidegate-dev"]

    arns = [
        arn
        for role in ACTIONS
        for found in statements(made, role)
        for arn in resources(found)
        if arn.startswith("arn:")
    ]
    assert arns
    assert [arn for arn in arns if not arn.startswith("arn:aws-cn:")] == []


@pytest.mark.parametrize("role", ["HeadRole", "NodesRole"])
def test_machines_fetch_bundles_and_tell_of_their_boot_and_no_more(dev: Stack, role):
    (bundles,) = resources(statement(dev, role, "Bundles"))
    told = statement(dev, role, "TellOfBoot")

    assert bundles.startswith("arn:aws:s3:::cdk-")
    assert bundles.endswith("/*.tgz")
    assert conditions(told) == {
        "ForAllValues:StringEquals": {"events:source": "tidegate.node"},
        "Null": {"events:source": "false"},
    }
    assert [joined(arn) for arn in resources(told)] == [
        f"<{dev.logical_id('EventsBus', 'AWS::Events::EventBus')}.Arn>"
    ]


def test_who_installs_slurm_from_s3_may_list_and_read_that_folder_and_its_key(tmp_path):
    in_s3 = {"url": "s3://packages-1/slurm/al2023/", "key": "s3://packages-1/slurm.asc"}
    file = dev_file(image="install-al2023", slurm={"repositories": {"al2023": in_s3}})
    made = synthesized(tmp_path, file)["tidegate-dev"]

    read = statement(made, "NodesRole", "Packages")
    listing = statement(made, "NodesRole", "PackagesListed")

    assert (read["Action"], listing["Action"]) == ("s3:GetObject", "s3:ListBucket")
    bucket = "arn:aws:s3:::packages-1"
    assert set(resources(read)) == {f"{bucket}/slurm/al2023/*", f"{bucket}/slurm.asc"}
    assert resources(listing) == [bucket]
    assert conditions(listing) == {"StringEquals": {"s3:prefix": "slurm/al2023/"}}
    assert [each for each in statements(made, "HeadRole") if "Packages" in each["Sid"]] == []


@pytest.mark.parametrize(
    ("region", "asked"),
    [
        ("us-east-1", ["ec2:DescribeSpotPriceHistory", "pricing:GetProducts"]),
        ("us-gov-west-1", ["ec2:DescribeSpotPriceHistory"]),
    ],
)
def test_reconcile_alone_asks_for_prices_that_the_file_leaves_open(tmp_path, region, asked):
    pools = {
        name: {**pool, "zones": [f"{region}a", f"{region}b"]}
        for name, pool in dev_file()["pools"].items()
    }
    file = dev_file(region=region, pools=pools, prices_usd_per_hour=None)
    made = synthesized(tmp_path, file)["tidegate-dev"]

    prices = {
        role: listed(found["Action"])
        for role in ACTIONS
        for found in statements(made, role)
        if found["Sid"] == "Prices"
    }
    assert prices == {"FunctionsReconcileRole": asked}


def test_who_buys_spot_alone_reads_the_list_to_judge_it_by(tmp_path):
    pools = {n: {**pool, "capacity_types": ["spot"]} for n, pool in dev_file()["pools"].items()}
    file = dev_file(pools=pools, prices_usd_per_hour=None)
    made = synthesized(tmp_path, file)["tidegate-dev"]

    asked = listed(statement(made, "FunctionsReconcileRole", "Prices")["Action"])

    assert asked == ["ec2:DescribeSpotPriceHistory", "pricing:GetProducts"]


def test_machines_read_the_very_objects_of_their_hooks(tmp_path):
    of_cluster = {
        "on_node_start": [{"source": "s3://site-hooks/tools/start.sh"}],
        "on_head_configured": [{"source": "s3://site-hooks/head.sh"}, {"inline": "#!/bin/sh"}],
    }
    made = synthesized(tmp_path / "hooks", dev_file(hooks=of_cluster))["tidegate-dev"]

    assert resources(statement(made, "NodesRole", "Hooks")) == [
        "arn:aws:s3:::site-hooks/tools/start.sh"
    ]
    assert resources(statement(made, "HeadRole", "Hooks")) == ["arn:aws:s3:::site-hooks/head.sh"]
