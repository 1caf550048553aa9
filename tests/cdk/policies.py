"""The statements of a synthesized cluster, with ARNs in place of what CloudFormation puts in."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.cdk.made import Properties, Stack, joined

# What Ref or GetAtt of a type gives, where that is an ARN; of any other it is an id.
ARNS = {
    ("AWS::DynamoDB::Table", "Arn"): "arn:aws:dynamodb:us-east-1:1:table/x",
    ("AWS::EFS::FileSystem", "Arn"): "arn:aws:elasticfilesystem:us-east-1:1:file-system/x",
    ("AWS::Events::EventBus", "Arn"): "arn:aws:events:us-east-1:1:event-bus/x",
    ("AWS::IAM::Role", "Arn"): "arn:aws:iam::1:role/x",
    ("AWS::Lambda::Function", "Arn"): "arn:aws:lambda:us-east-1:1:function:x",
    ("AWS::S3::Bucket", "Arn"): "arn:aws:s3:::x",
    ("AWS::SecretsManager::Secret", ""): "arn:aws:secretsmanager:us-east-1:1:secret:x",
    ("AWS::SNS::Topic", ""): "arn:aws:sns:us-east-1:1:x",
    ("AWS::SQS::Queue", "Arn"): "arn:aws:sqs:us-east-1:1:x",
}
# Where a type keeps a policy about itself.
RESOURCE_POLICIES = {
    "AWS::EFS::FileSystem": "FileSystemPolicy",
    "AWS::S3::BucketPolicy": "PolicyDocument",
    "AWS::SNS::TopicPolicy": "PolicyDocument",
    "AWS::SQS::QueuePolicy": "PolicyDocument",
}


@dataclass(frozen=True, slots=True)
class Granted:
    """One statement. `owner`: the logical id of the role, or of what the policy is about."""

    owner: str
    sid: str
    is_allow: bool
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: Mapping[str, Mapping[str, Any]]

    def __str__(self) -> str:
        return f"{self.owner}/{self.sid}"


def statements_of(stacks: Mapping[str, Stack]) -> Iterator[Granted]:
    """Of all roles and policies of a cluster's stacks, trust policies left out."""
    for stack in stacks.values():
        for logical_id, resource in stack.template["Resources"].items():
            for document in _documents(resource["Type"], resource.get("Properties", {})):
                for body in _listed(document["Statement"]):
                    yield _granted(stacks, logical_id, body)


def _documents(kind: str, properties: Properties) -> Iterator[Properties]:
    if kind == "AWS::IAM::Role":
        for policy in properties.get("Policies", ()):
            yield policy["PolicyDocument"]
    elif kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
        yield properties["PolicyDocument"]
    elif kind in RESOURCE_POLICIES and RESOURCE_POLICIES[kind] in properties:
        yield properties[RESOURCE_POLICIES[kind]]


def _granted(stacks: Mapping[str, Stack], owner: str, body: Properties) -> Granted:
    assert not {"NotAction", "NotResource"} & body.keys(), body
    return Granted(
        owner,
        body.get("Sid", ""),
        body["Effect"] == "Allow",
        tuple(_listed(body["Action"])),
        tuple(_arn(stacks, joined(each)) for each in _listed(body["Resource"])),
        body.get("Condition", {}),
    )


def _arn(stacks: Mapping[str, Stack], text: str) -> str:
    def put_in(found: re.Match[str]) -> str:
        logical_id, attribute = found[1], found[2] or ""
        return ARNS.get((_type(stacks, logical_id), attribute), "x")

    return re.sub(r"<([^<>.]+?)(?:\.([^<>]+))?>", put_in, text)


def _type(stacks: Mapping[str, Stack], logical_id: str) -> str:
    return next(
        (
            str(stack.template["Resources"][logical_id]["Type"])
            for stack in stacks.values()
            if logical_id in stack.template["Resources"]
        ),
        "",
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
