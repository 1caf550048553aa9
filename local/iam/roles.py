"""The roles and sessions in moto's state, as the evaluator needs them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.iam.models import ManagedPolicy, Role, iam_backends
from moto.sts.models import AssumedRole, sts_backends

from local.iam.evaluate import Policy
from local.iam.patterns import NotModelledError

# The CDK ends logical ids with this much of a hash.
HASH_CHARS = 8


@dataclass(frozen=True, slots=True)
class Session:
    """An assumed role: who is behind an access key that STS gave out."""

    role_arn: str
    session_arn: str
    token: str


def session_of(access_key: str, account: str) -> Session | None:
    """The session that an access key belongs to; None: STS gave out no such key."""
    for partition in sts_backends[account].values():
        assumed = partition.get_assumed_role_from_access_key(access_key)
        if assumed is not None:
            return _session(assumed)
    return None


def _session(assumed: AssumedRole) -> Session:
    if assumed.policy:
        raise NotModelledError(f"the session policy of {assumed.arn}")
    return Session(assumed.role_arn, assumed.arn, assumed.session_token)


def role_arns(resources: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """The roles of a deployed stack: logical id without the CDK's hash -> ARN.

    `resources`: logical id -> (type, physical id).
    """
    return {
        logical_id[:-HASH_CHARS]: f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:role/{name}"
        for logical_id, (kind, name) in resources.items()
        if kind == "AWS::IAM::Role"
    }


def role_policies(role_arn: str) -> list[Policy]:
    """The inline and attached policies of a role; empty when there is no such role."""
    role = _role(role_arn)
    if role and role.permissions_boundary_arn:
        raise NotModelledError(f"the permissions boundary of {role_arn}")
    return identity_policies(role_arn) or []


def identity_policies(role_arn: str) -> list[Policy] | None:
    """The same, whatever bounds them; None when there is no such role."""
    role = _role(role_arn)
    if role is None:
        return None
    inline = [Policy(name, _document(text)) for name, text in role.policies.items()]
    attached = [
        Policy(policy.name, _document(_default_version(policy)))
        for policy in role.managed_policies.values()
    ]
    return inline + attached


def boundary_of(role_arn: str) -> list[Policy] | None:
    """The policy that bounds what a role may do; None when there is none."""
    role = _role(role_arn)
    arn = role.permissions_boundary_arn if role else None
    if not arn:
        return None
    _, partition, _, _, account, _ = role_arn.split(":", 5)
    policy = iam_backends[account][partition].managed_policies[arn]
    return [Policy(policy.name, _document(_default_version(policy)))]


def trust_policy(role_arn: str) -> Mapping[str, Any] | None:
    """Who may assume a role; None when there is no such role."""
    role = _role(role_arn)
    return _document(role.assume_role_policy_document) if role else None


def role_tags(role_arn: str) -> dict[str, str]:
    role = _role(role_arn)
    listed = (role.tags or []) if role else []
    return {tag["Key"]: tag["Value"] for tag in listed}


def _role(role_arn: str) -> Role | None:
    _, partition, _, _, account, _ = role_arn.split(":", 5)
    return next(
        (role for role in iam_backends[account][partition].get_roles() if role.arn == role_arn),
        None,
    )


def _default_version(policy: ManagedPolicy) -> str:
    return next(
        version.document
        for version in policy.versions
        if version.version_id == policy.default_version_id
    )


def _document(document: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """A policy document; moto keeps text, and what CloudFormation brought in as it came."""
    return _parsed(document) if isinstance(document, str) else document


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(text)
    return document
