"""What AWS takes of a role's policies and of a function's environment, told before a deployment."""

import json
import re
from collections.abc import Mapping
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

# Source: IAM user guide, "IAM and AWS STS quotas": over all inline policies of a role, white space
# left out. Nobody can have it raised.
ROLE_CHARACTERS = 10_240
# Source: Lambda guide, "Lambda quotas". Its refusal shows what it measures: all variables as JSON,
# where a quote within a value counts twice (github-aws-runners/terraform-aws-github-runner#3594).
ENVIRONMENT_BYTES = 4096

# At their longest: an id of EC2, the version of a template, what CloudFormation draws behind the
# names of stack and resource, and what stands before such a name in an ARN or the URL of a queue.
_ID, _VERSION, _DRAWN, _BEFORE = "x" * 20, "9" * 5, "x" * 14, "x" * 60
_WITH_ID = re.compile(r"Nodes(Pool|Reserved)|Subnet")


def judge_policies(role: iam.Role, document: iam.PolicyDocument) -> None:
    """Errors: ValueError, when IAM would refuse the role."""
    size = len(_written(role, document))
    if size > ROLE_CHARACTERS:
        raise ValueError(
            f"the policies of {role.node.path} have {size} characters, IAM takes {ROLE_CHARACTERS}:"
            " name fewer roles, buckets, secrets or security groups (a folder or group for many)"
        )


def judge_environment(scope: Construct, variables: Mapping[str, str], *, templates: int) -> None:
    """Errors: ValueError, when Lambda would refuse the function."""
    size = len(_written(scope, dict(variables)))
    if size > ENVIRONMENT_BYTES:
        raise ValueError(
            f"{templates} launch templates (one for each pool, more for its reservations) and the"
            f" placement groups need {size} bytes in the functions' environment, Lambda takes"
            f" {ENVIRONMENT_BYTES}: use fewer pools"
        )


def _written(scope: Construct, value: Any) -> str:
    """As AWS gets it, with the longest that CloudFormation may put in."""
    stack = Stack.of(scope)
    put_in = _put_in(stack.resolve(value), stack.stack_name)
    return json.dumps(put_in, separators=(",", ":"))


def _put_in(value: Any, stack: str) -> Any:
    match value:
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(_put_in(each, stack) for each in parts)
        case {"Fn::Sub": text}:
            return text
        case {"Ref": "AWS::AccountId" | "AWS::Region" | "AWS::Partition" as pseudo}:
            return pseudo
        case {"Fn::GetAtt": [_, "LatestVersionNumber"]}:
            return _VERSION
        case {"Fn::GetAtt": [_, "GroupId"]}:
            return _ID
        case {"Fn::GetAtt": [name, "GroupName"]}:
            return f"{stack}-{name}-{_DRAWN}"
        case {"Ref": name} if _WITH_ID.search(name):
            return _ID
        case {"Ref": name} | {"Fn::GetAtt": [name, _]}:
            return f"{_BEFORE}{stack}-{name}-{_DRAWN}"
        case {"Fn::ImportValue": name}:
            return f"{_BEFORE}{name}"
        case dict():
            return {key: _put_in(each, stack) for key, each in value.items()}
        case list():
            return [_put_in(each, stack) for each in value]
        case _:
            return value
