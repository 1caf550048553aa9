"""`tidegate probe` before a deployment: each fact of an account, and each fault by its name."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from moto.cloudformation.models import cloudformation_backends
from typer.testing import CliRunner, Result

from local.cloud_resources import CloudNames
from local.deploy import BOOTSTRAP_PARAMETER, PLACE
from tests.cli.region import TRUST, Region, names, region
from tests.contracts.conftest import cloud
from tests.wire.cluster_files import good
from tidegate.cli.main import app
from tidegate.cli.probe.facts import (
    Fact,
    Report,
    Stage,
    Standing,
    as_markdown,
    redaction,
    stage_lines,
)
from tidegate.cli.probe.rights import ROLES_DO
from tidegate.core.model.ec2 import CLUSTER_TAG, SPOT_ROLE

__all__ = ["cloud", "names", "region"]

ACCOUNT = "123456789012"
BOOTSTRAP_ROLES = ("deploy", "file-publishing", "cfn-exec")
CALLER = "ada"
EVERYTHING = {"Effect": "Allow", "Action": "*", "Resource": "*"}


@dataclass
class Account:
    """An account in which nothing is missing, and who asks it."""

    region: Region
    changes: dict[str, Any] = field(default_factory=dict)
    instead: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        if service == "sts":
            return self
        asked = self.region.client(service)
        return self.instead[service](asked) if service in self.instead else asked

    def get_caller_identity(self) -> dict[str, str]:
        arn = f"arn:aws:sts::{ACCOUNT}:assumed-role/{CALLER}/ada@example.com"
        return {"Account": ACCOUNT, "Arn": arn}

    def ask(self, *words: str) -> Result:
        self.region.file.write_text(yaml.safe_dump(good(self.changes)))
        return CliRunner().invoke(
            app, ["probe", "--cluster", str(self.region.file), *words], obj=self.client
        )

    def facts(self) -> dict[str, dict[str, Any]]:
        return {
            each["code"]: each for each in json.loads(self.ask("--output", "json").output)["facts"]
        }

    def policy(self, name: str, statement: dict[str, Any]) -> str:
        """A managed policy of this one statement; its ARN."""
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam = self.region.cloud.client("iam")
        made = iam.create_policy(PolicyName=name, PolicyDocument=document)
        return str(made["Policy"]["Arn"])

    def forget(self, policy: str) -> None:
        self.region.cloud.client("iam").delete_policy(PolicyArn=policy)


def role_name(kind: str) -> str:
    return f"cdk-hnb659fds-{kind}-role-{ACCOUNT}-us-east-1"


@pytest.fixture(scope="module")
def ready(cloud: Any, names: CloudNames) -> CloudNames:
    """The bootstrap stack's roles and version, and a role of who asks."""
    iam = cloud.client("iam")
    document = json.dumps({"Version": "2012-10-17", "Statement": [EVERYTHING]})
    for name in (CALLER, *map(role_name, BOOTSTRAP_ROLES)):
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)
        iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=document)
    cloud.client("ssm").put_parameter(Name=BOOTSTRAP_PARAMETER, Value="30", Type="String")
    return names


@pytest.fixture
def account(ready: CloudNames, region: Region) -> Account:
    del ready
    return Account(region)


def test_an_account_that_lacks_nothing_confirms_each_fact(account: Account):
    result = account.ask()

    assert result.exit_code == 0, result.output
    assert "refuted" not in result.output.splitlines()[-1].replace("0 refuted", "")
    assert result.output.count("confirmed  ") > 10


def test_nothing_is_launched_or_changed(account: Account):
    changing = ("Create", "Put", "Delete", "Terminate", "Update", "Modify", "Attach", "Set")
    before = account.region.cloud.aws_calls()

    account.ask()

    calls = account.region.cloud.aws_calls() - before
    assert calls["ec2:RunInstances"] == 1  # a dry run
    assert [each for each in calls if each.split(":")[1].startswith(changing)] == []
    described = account.region.cloud.client("ec2").describe_instances()
    assert described["Reservations"] == []


@contextmanager
def without_spot_role(account: Account) -> Iterator[None]:
    iam = account.region.cloud.client("iam")
    iam.delete_role(RoleName=SPOT_ROLE)
    yield
    iam.create_role(RoleName=SPOT_ROLE, AssumeRolePolicyDocument=TRUST)


@contextmanager
def quota_of_nothing(account: Account) -> Iterator[None]:
    account.region.quotas["All G and VT Spot Instance Requests"] = 0.0
    yield


@contextmanager
def large_snapshot(account: Account) -> Iterator[None]:
    account.region.root_gib = 120
    yield


@contextmanager
def image_that_is_gone(account: Account) -> Iterator[None]:
    account.changes["image"] = "ami-0123456789abcdef0"
    yield


@contextmanager
def type_not_in_zone(account: Account) -> Iterator[None]:
    account.changes |= {
        "pools.t4.instance_types": ["p5en.48xlarge"],
        "pools.t4.zones": ["us-east-1a", "us-east-1e"],
        "prices_usd_per_hour": {"p5en.48xlarge": {"on-demand": 60, "spot": 30}},
    }
    yield


@contextmanager
def no_way_out(account: Account) -> Iterator[None]:
    ec2, zone = account.region.cloud.client("ec2"), "us-east-1a"
    vpc = ec2.create_vpc(CidrBlock="10.6.0.0/16")["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    made = ec2.create_subnet(VpcId=vpc, CidrBlock="10.6.0.0/24", AvailabilityZone=zone)["Subnet"]
    account.changes["network"] = {"vpc": vpc, "subnets": {zone: made["SubnetId"]}}
    yield


@contextmanager
def not_bootstrapped(account: Account) -> Iterator[None]:
    ssm = account.region.cloud.client("ssm")
    ssm.put_parameter(Name=BOOTSTRAP_PARAMETER, Value="5", Type="String", Overwrite=True)
    yield
    ssm.put_parameter(Name=BOOTSTRAP_PARAMETER, Value="30", Type="String", Overwrite=True)


@contextmanager
def may_not_deploy(account: Account) -> Iterator[None]:
    iam = account.region.cloud.client("iam")
    denied = {"Effect": "Deny", "Action": "sts:AssumeRole", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [denied]})
    iam.put_role_policy(RoleName=CALLER, PolicyName="not", PolicyDocument=document)
    yield
    iam.delete_role_policy(RoleName=CALLER, PolicyName="not")


@contextmanager
def bounded_cloudformation(account: Account) -> Iterator[None]:
    """`cdk bootstrap --custom-permissions-boundary`, with one that knows no Lambda."""
    iam = account.region.cloud.client("iam")
    bound = account.policy("bound", {**EVERYTHING, "Action": ["ec2:*", "iam:*", "s3:*"]})
    role = role_name("cfn-exec")
    iam.put_role_permissions_boundary(RoleName=role, PermissionsBoundary=bound)
    yield
    iam.delete_role_permissions_boundary(RoleName=role)
    account.forget(bound)


@contextmanager
def bucket_to_read_alone(account: Account) -> Iterator[None]:
    """FSx asks as CloudFormation's role whether it may write what it shall export."""
    iam = account.region.cloud.client("iam")
    denied = {"Effect": "Deny", "Action": "s3:Put*", "Resource": "arn:aws:s3:::our-results/runs/*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [denied]})
    iam.put_role_policy(RoleName=role_name("cfn-exec"), PolicyName="not", PolicyDocument=document)
    link = {"path": "/runs", "s3": "our-results/runs", "auto_export": ["NEW"]}
    account.changes["lustre"] = {"storage_gib": 1200, "data_repositories": [link]}
    yield
    iam.delete_role_policy(RoleName=role_name("cfn-exec"), PolicyName="not")


@contextmanager
def narrow_boundary(account: Account) -> Iterator[None]:
    """The file's own, which lets nobody pass a role or make a service-linked one."""
    allowed = [each for each in ROLES_DO if not each.startswith("iam:")]
    bound = account.policy("narrow", {**EVERYTHING, "Action": allowed})
    account.changes["permissions_boundary"] = bound
    yield
    account.forget(bound)


@contextmanager
def earlier_cluster(account: Account) -> Iterator[None]:
    """Its bucket was retained, and its function wrote a last line after its log group was gone."""
    s3, logs = account.region.cloud.client("s3"), account.region.cloud.client("logs")
    s3.create_bucket(Bucket="tidegate-demo-digests")
    tags = {"TagSet": [{"Key": CLUSTER_TAG, "Value": "demo"}]}
    s3.put_bucket_tagging(Bucket="tidegate-demo-digests", Tagging=tags)
    logs.create_log_group(logGroupName="/tidegate/demo/planner")
    yield
    logs.delete_log_group(logGroupName="/tidegate/demo/planner")
    s3.delete_bucket(Bucket="tidegate-demo-digests")


@contextmanager
def stuck_stack(account: Account) -> Iterator[None]:
    formation = account.region.cloud.client("cloudformation")
    topic = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}
    formation.create_stack(StackName="tidegate-demo-data", TemplateBody=json.dumps(topic))
    stack = cloudformation_backends[PLACE.account][PLACE.region].get_stack("tidegate-demo-data")
    stack.status = "ROLLBACK_FAILED"
    yield
    formation.delete_stack(StackName="tidegate-demo-data")


FAULTS = [
    (quota_of_nothing, "quotas", "`All G and VT Spot Instance Requests` is 0 vCPUs"),
    (large_snapshot, "images", "100 GiB, the root volume of ami-00000000000024041 has 120"),
    (image_that_is_gone, "images", "ami-0123456789abcdef0 is not there, or not shared with"),
    (type_not_in_zone, "offerings", "no instance type of the pool is offered in us-east-1e"),
    (no_way_out, "ways-out", "has no default route, and its VPC no interface endpoints"),
    (not_bootstrapped, "bootstrapped", "has version 5, 6 is needed: run `npx cdk bootstrap`"),
    (may_not_deploy, "rights-to-deploy", "who asks may not sts:AssumeRole role/cdk-"),
    (bounded_cloudformation, "rights-of-cloudformation", "lambda:CreateFunction"),
    (bucket_to_read_alone, "rights-of-cloudformation", "s3:PutObject arn:aws:s3:::our-results/r"),
    (narrow_boundary, "permissions-boundary", "iam:CreateServiceLinkedRole, iam:PassRole"),
    (earlier_cluster, "leftovers", "the log group /tidegate/demo/planner is there"),
    (earlier_cluster, "leftovers", "of an earlier cluster arn:aws:s3:::tidegate-demo-digests"),
    (stuck_stack, "stacks", "tidegate-demo-data is ROLLBACK_FAILED: no update is possible"),
    (
        *(stuck_stack, "stacks"),
        "update-termination-protection --no-enable-termination-protection --stack-name "
        "tidegate-demo-data && aws cloudformation delete-stack --stack-name tidegate-demo-data",
    ),
]


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    FAULTS,
    ids=[f"{each[0].__name__}-{each[2][:12]}" for each in FAULTS],
)
def test_a_planted_fault_is_named(account: Account, fault: Any, code: str, words: str):
    with fault(account):
        result = account.ask("--output", "json")

    facts = {each["code"]: each for each in json.loads(result.output)["facts"]}
    assert result.exit_code == 1
    assert facts[code]["standing"] == "refuted"
    assert words in " ".join(facts[code]["details"]).replace("(account)", ACCOUNT)


def test_a_spot_role_that_is_missing_is_named_with_what_makes_it(account: Account):
    with without_spot_role(account):
        found = account.facts()["spot-role"]

    assert found["standing"] == "confirmed"
    assert "no role AWSServiceRoleForEC2Spot yet" in found["details"][0]


def test_what_may_not_be_asked_is_neither_confirmed_nor_refuted(account: Account):
    account.region.may_ask_quotas = False

    result = account.ask("--output", "json")

    told = json.loads(result.output)
    facts = {each["code"]: each for each in told["facts"]}
    assert result.exit_code == told["exit_code"] == 3
    assert facts["quotas"]["standing"] == "not asked"
    assert facts["quotas"]["details"][0].startswith("NotAuthorized: ")


def test_a_launch_without_a_cluster_is_not_asked_and_the_rest_is_reported(account: Account):
    result = account.ask("--launch", "--yes", "--output", "json")

    facts = {each["code"]: each for each in json.loads(result.stdout)["facts"]}
    assert result.exit_code == 3
    assert facts["launch"]["standing"] == "not asked"
    assert "is the cluster deployed?" in facts["launch"]["details"][0]
    assert facts["planner-fleets"]["details"] == ["the cluster is not deployed"]
    assert facts["quotas"]["standing"] == "confirmed"


def test_what_is_no_question_for_the_file_does_not_count_as_unanswered(account: Account):
    found = account.facts()["existing-parts"]

    assert (found["standing"], found["is_needed"]) == ("not asked", False)


def test_a_report_shows_nobody_whose_account_it_is(account: Account):
    path = account.region.file.with_name("probe.md")
    account.changes["image"] = "ami-0123456789abcdef0"
    with may_not_deploy(account), no_way_out(account):
        result = account.ask("--report", str(path))

    for text in (path.read_text(), path.with_suffix(".json").read_text()):
        assert ACCOUNT not in text
        assert "ada@example.com" not in text
        assert account.changes["network"]["vpc"] not in text
        assert "ami-0123456789abcdef0" in text
        assert "ada" not in text
    assert result.exit_code == 1
    assert "| refuted | Machines in existing subnets reach what is outside them. |" in (
        path.read_text()
    )


def test_a_report_times_each_stage_against_its_budget():
    stages = (Stage("runs", 40.4, 65), Stage("packages", 181, 180), Stage("joins", None, 7))
    late = Fact("node-joined", "It | joins.", Standing.REFUTED, ("packages: 181 s, not 180",))
    made = Report("demo", "us-east-1", "0.2", "2026-01-06T00:00:00+00:00", (late,), stages)

    page = as_markdown(made)

    assert "| refuted | It \\| joins. | packages: 181 s, not 180 |" in page
    assert "| runs | 40 s | 65 s |\n| packages | 181 s | 180 s |\n| joins | - | 7 s |" in page
    assert [each.split()[0] for each in stage_lines(stages)] == ["in", "LATE", "LATE"]
    assert not Stage("nothing to install", 0.006, 0).is_late
    assert made.exit_code == 1


def test_the_same_id_has_the_same_number_in_all_of_a_report():
    hide = redaction()

    said = hide("vpc-0a1b2c3d subnet-0a1b2c3d4e5f60718 vpc-1a1b2c3d i-0a1b2c3d vpc-0a1b2c3d")

    assert said == "vpc-(1) subnet-(1) vpc-(2) i-(1) vpc-(1)"
    assert hide("3.120.4.5 but 10.0.0.1, by user/ada") == "(address) but 10.0.0.1, by user/(name)"
