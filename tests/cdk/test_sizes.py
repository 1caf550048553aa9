"""What AWS takes of each kind of cluster, in bytes, once CloudFormation has put names in."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.cdk.made import Properties, Stack, dev_file, joined, synthesized
from tests.cdk.variants import JOB_ROLE, VARIANTS, stacks_of
from tidegate.core.model.errors import BadConfig

# Source: IAM user guide, "IAM and AWS STS quotas": over all inline policies of a role, without
# white space.
ROLE_CHARACTERS = 10_240
# Source: Lambda guide, "Lambda quotas".
ENVIRONMENT_BYTES = 4096
# Source: SQS developer guide, "Amazon SQS policy quotas".
QUEUE_POLICY = {"bytes": 8192, "conditions": 10, "statements": 20}
# Source: CloudFormation user guide, "Understand CloudFormation quotas"; of a template in S3.
TEMPLATE = {"bytes": 1_000_000, "Resources": 500, "Outputs": 200, "Parameters": 200}

# As long as AWS makes them; of a name that CloudFormation draws, the longest that the kind has.
ACCOUNT, REGION, DOMAIN = "123456789012", "ap-southeast-2", "amazonaws.com.cn"
DRAWN = {"AWS::IAM::Role": 64, "AWS::Lambda::Function": 64, "AWS::S3::Bucket": 63}
QUEUE_CHARACTERS, NAME_CHARACTERS = 80, 100
PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Region": REGION,
    "AWS::Partition": "aws-us-gov",
    "AWS::URLSuffix": DOMAIN,
}


@pytest.fixture(scope="module", params=sorted(VARIANTS))
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Stack]:
    return stacks_of(tmp_path_factory, request.param)


def test_policies_of_each_role_fit_into_it(made: Mapping[str, Stack]):
    sizes = {
        logical_id: sum(
            len(_json(_put_in(made, each["PolicyDocument"])))
            for each in resource["Properties"].get("Policies", ())
        )
        for logical_id, resource in _all(made, "AWS::IAM::Role")
    }

    assert {name: size for name, size in sizes.items() if size > ROLE_CHARACTERS} == {}


def test_environment_of_each_function_fits_as_lambda_measures_it(made: Mapping[str, Stack]):
    """As JSON, whose quotes within quotes count twice: "String measured" in the refusal that
    github-aws-runners/terraform-aws-github-runner#3594 shows.
    """
    sizes = {
        logical_id: len(_json(_put_in(made, resource["Properties"]["Environment"]["Variables"])))
        for logical_id, resource in _all(made, "AWS::Lambda::Function")
    }

    assert {name: size for name, size in sizes.items() if size > ENVIRONMENT_BYTES} == {}


def test_policies_of_each_queue_fit_into_it(made: Mapping[str, Stack]):
    """Each rule that delivers to a queue, or leaves its dead letters there, is a statement."""
    for logical_id, resource in _all(made, "AWS::SQS::QueuePolicy"):
        document = resource["Properties"]["PolicyDocument"]
        statements = document["Statement"]
        sizes = {
            "bytes": len(_json(_put_in(made, document))),
            "conditions": sum(
                len(keys) for each in statements for keys in each.get("Condition", {}).values()
            ),
            "statements": len(statements),
        }

        assert {k: v for k, v in sizes.items() if v > QUEUE_POLICY[k]} == {}, logical_id


def test_each_template_is_one_that_cloudformation_takes(made: Mapping[str, Stack]):
    for name, stack in made.items():
        sizes = {part: len(stack.template.get(part, ())) for part in TEMPLATE if part != "bytes"}
        sizes["bytes"] = len(json.dumps(stack.template, indent=1).encode())

        assert {k: v for k, v in sizes.items() if v > TEMPLATE[k]} == {}, name


def test_more_than_an_environment_holds_is_told_before_the_deployment(tmp_path):
    """With placement groups, whose names CloudFormation draws, far fewer pools are too many."""
    pool = dev_file()["pools"]["t4"] | {"placement_group": "true"}
    pools = {f"pool{number:02d}": pool for number in range(18)}
    file = dev_file(pools=pools, partitions={"gpu": {"pools": list(pools)}})

    with pytest.raises(BadConfig, match=r"18 launch templates .* Lambda takes 4096"):
        synthesized(tmp_path, file)


def test_more_rights_than_a_role_holds_are_told_before_the_deployment(tmp_path):
    roles = {f"account{number}": f"{JOB_ROLE}-of-account-{number}" for number in range(200)}
    settings = {"accounting": True, "settings": {"AccountingStorageEnforce": "associations"}}
    file = dev_file(job_role=JOB_ROLE, job_role_by_account=roles, slurm=settings)

    with pytest.raises(BadConfig, match=r"0\.yaml: the policies of .*IAM takes 10240"):
        synthesized(tmp_path, file)


def _all(made: Mapping[str, Stack], kind: str) -> Iterator[tuple[str, Properties]]:
    for stack in made.values():
        yield from stack.resources(kind)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _put_in(made: Mapping[str, Stack], value: Any) -> Any:
    """The value as AWS gets it."""
    match value:
        case {"Ref": str(name)}:
            return PSEUDO.get(name) or _named(made, name, "")
        case {"Fn::GetAtt": [name, attribute]}:
            return _named(made, name, attribute)
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(_put_in(made, each) for each in parts)
        case {"Fn::Sub": str(text)}:
            return re.sub(r"\$\{(.+?)\}", lambda found: PSEUDO[found[1]], text)
        case {"Fn::ImportValue": _}:
            name, _, attribute = joined(value).strip("<>").partition(".")
            return _named(made, name, attribute)
        case dict():
            return {key: _put_in(made, each) for key, each in value.items()}
        case list():
            return [_put_in(made, each) for each in value]
        case _:
            return value


def _named(made: Mapping[str, Stack], name: str, attribute: str) -> str:
    kind = next(
        (
            str(each.template["Resources"][name]["Type"])
            for each in made.values()
            if name in each.template["Resources"]
        ),
        "",
    )
    service = kind.split("::")[1].lower() if kind else ""
    if kind == "AWS::SQS::Queue" and not attribute:
        return f"https://sqs.{REGION}.{DOMAIN}/{ACCOUNT}/{'n' * QUEUE_CHARACTERS}"
    if service == "ec2":
        return "12345" if attribute.endswith("Number") else "lt-0123456789abcdef0"
    drawn = "n" * DRAWN.get(kind, QUEUE_CHARACTERS if service == "sqs" else NAME_CHARACTERS)
    if attribute.lower().endswith("arn") or service in ("sns", "secretsmanager"):
        return f"arn:aws-us-gov:{service}:{REGION}:{ACCOUNT}:{drawn}"
    return drawn
