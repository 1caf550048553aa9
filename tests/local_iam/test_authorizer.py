"""Questions that the router asks about roles and resource policies."""

import json
from typing import Any

import boto3
import pytest

from local.clients import REGION
from local.cloud import LocalCloud
from local.iam.authorizer import Authorizer
from local.iam.patterns import NotModelledError
from tests.local_iam.conftest import ACCOUNT, As, allow, refused

FUNCTION = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:planner"
QUEUE = f"arn:aws:sqs:us-east-1:{ACCOUNT}:looks"
RULE = f"arn:aws:events:us-east-1:{ACCOUNT}:rule/tidegate/digest"
NOBODY = f"arn:aws:iam::{ACCOUNT}:role/nobody"


def queue_policy(**more: Any) -> dict[str, Any]:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": QUEUE,
        "Condition": {"ArnEquals": {"aws:SourceArn": RULE}},
        **more,
    }
    return {"Version": "2012-10-17", "Statement": [statement]}


def may_send(policy: dict[str, Any], *, service: str = "events", **context: str) -> bool:
    full = {"aws:SourceArn": RULE, "aws:SourceAccount": ACCOUNT, **context}
    return Authorizer().resource_policy_allows(
        policy, f"{service}.amazonaws.com", "sqs:SendMessage", QUEUE, full
    )


def test_a_role_may_what_its_policies_allow(role: As, authorizer: Authorizer) -> None:
    role.may(allow("lambda:InvokeFunction", FUNCTION))

    assert authorizer.allows(role.role_arn, "lambda:InvokeFunction", FUNCTION)
    assert not authorizer.allows(role.role_arn, "lambda:InvokeFunction", f"{FUNCTION}2")
    assert not authorizer.allows(NOBODY, "lambda:InvokeFunction", FUNCTION)
    assert authorizer.unused_grants(role.role_arn) == []


def test_the_tags_of_a_role_are_those_of_its_requests(
    role: As, cloud: LocalCloud, authorizer: Authorizer
) -> None:
    cloud.client("iam").tag_role(RoleName=role.name, Tags=[{"Key": "team", "Value": "a"}])
    role.may(allow("s3:GetObject", "arn:aws:s3:::bucket/${aws:PrincipalTag/team}/*"))

    assert authorizer.allows(role.role_arn, "s3:GetObject", "arn:aws:s3:::bucket/a/x")
    assert not authorizer.allows(role.role_arn, "s3:GetObject", "arn:aws:s3:::bucket/b/x")


def test_a_boundary_is_not_passed_over(role: As, cloud: LocalCloud, authorizer: Authorizer) -> None:
    role.may(allow("*", "*"))
    cloud.client("iam").put_role_permissions_boundary(
        RoleName=role.name, PermissionsBoundary=f"arn:aws:iam::{ACCOUNT}:policy/edge"
    )

    with pytest.raises(NotModelledError, match="boundary"):
        authorizer.allows(role.role_arn, "s3:GetObject", "arn:aws:s3:::bucket/a")


def test_a_session_policy_is_not_passed_over(role: As, cloud: LocalCloud) -> None:
    role.may(allow("*", "*"))
    narrow = cloud.client("sts").assume_role(
        RoleArn=role.role_arn, RoleSessionName="narrow", Policy=json.dumps(queue_policy())
    )["Credentials"]
    session = boto3.Session(
        narrow["AccessKeyId"], narrow["SecretAccessKey"], narrow["SessionToken"]
    )
    make: Any = session.client

    code, _, message = refused(
        make("ec2", region_name=REGION, endpoint_url=cloud.endpoint_url).describe_instances
    )

    assert code == "UnauthorizedOperation"
    assert "unknown to the evaluator: the session policy" in message


def test_a_role_is_assumed_by_the_services_it_trusts(role: As, authorizer: Authorizer) -> None:
    assert authorizer.trusts(role.role_arn, "lambda.amazonaws.com")
    assert not authorizer.trusts(role.role_arn, "scheduler.amazonaws.com")
    assert not authorizer.trusts(NOBODY, "lambda.amazonaws.com")


def test_a_queue_takes_the_events_of_its_rule_only() -> None:
    policy = queue_policy()

    assert may_send(policy)
    assert not may_send(policy, **{"aws:SourceArn": f"{RULE}-other"})
    assert not may_send(policy, service="scheduler")
    assert not may_send(queue_policy(Action="sqs:ReceiveMessage"))
    assert not may_send(queue_policy(Resource=f"{QUEUE}-other"))


def test_a_function_may_ask_for_the_account() -> None:
    policy = queue_policy(
        Principal={"Service": ["s3.amazonaws.com", "events.amazonaws.com"]},
        Condition={
            "ArnLike": {"aws:SourceArn": f"{RULE[:-6]}*"},
            "StringEquals": {"aws:SourceAccount": ACCOUNT},
        },
    )

    assert may_send(policy)
    assert not may_send(policy, **{"aws:SourceAccount": "210987654321"})


@pytest.mark.parametrize("principal", ["*", {"AWS": "*"}])
def test_everybody_includes_services(principal: object) -> None:
    assert may_send(queue_policy(Principal=principal))


def test_the_deny_of_plain_http_is_for_plain_http() -> None:
    policy = queue_policy()
    policy["Statement"].append(
        {
            "Effect": "Deny",
            "Principal": {"AWS": "*"},
            "Action": "sqs:*",
            "Resource": QUEUE,
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
    )

    assert may_send(policy)
    assert not may_send(policy, **{"aws:SecureTransport": "false"})


def test_another_accounts_principal_is_no_service() -> None:
    policy = queue_policy(Principal={"AWS": f"arn:aws:iam::{ACCOUNT}:root"})

    assert not may_send(policy)


def test_a_principal_of_another_kind_is_not_guessed_at() -> None:
    with pytest.raises(NotModelledError, match="CanonicalUser"):
        may_send(queue_policy(Principal={"CanonicalUser": "x"}))
