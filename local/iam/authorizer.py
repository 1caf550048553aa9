"""IAM's answers about the roles that are deployed in the local cloud.

authorizer.allows(role_arn, "lambda:InvokeFunction", function_arn)
authorizer.trusts(role_arn, "lambda.amazonaws.com")
authorizer.resource_policy_allows(policy, "events.amazonaws.com", "sqs:SendMessage", queue_arn,
                                  {"aws:SourceArn": rule_arn})
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from local.iam import reference
from local.iam.conditions import as_strings
from local.iam.evaluate import Decision, Policy, Statement, decide, evaluate
from local.iam.patterns import Context, NotModelledError, matches_action
from local.iam.record import Checked, DecisionLog
from local.iam.roles import role_policies, role_tags, trust_policy

NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Grant:
    """An action that a statement of a role allows, as the policy writes it."""

    role_arn: str
    statement: str
    action: str


@dataclass(slots=True)
class Authorizer:
    """Reads policies from moto at each question, so that a changed role counts at once.

    `lock`: held while moto's state is read; the front's own, where there is one. What a policy
    holds and the evaluator does not know raises `NotModelledError`.
    """

    log: DecisionLog = field(default_factory=DecisionLog)
    lock: AbstractContextManager[Any] = field(default_factory=RLock)

    def allows(self, role_arn: str, action: str, resource: str, context: Context = NOTHING) -> bool:
        """Whether the policies of a role allow it; a role that does not exist may nothing."""
        return self.decide(role_arn, action, resource, context).is_allowed

    def decide(self, role_arn: str, action: str, resource: str, context: Context) -> Decision:
        """The answer with its reason; it is recorded.

        The request carries of `context` what AWS's reference lists for action and resource.
        """
        with self.lock:
            full = {**_of_principal(role_arn), **_carried(action, resource, context)}
            decision = evaluate(role_policies(role_arn), action, resource, full)
        self.log.add(Checked(role_arn, action, resource, decision))
        return decision

    def trusts(self, role_arn: str, service: str, context: Context = NOTHING) -> bool:
        """Whether the role lets a service such as `lambda.amazonaws.com` assume it."""
        with self.lock:
            policy = trust_policy(role_arn)
        if policy is None:
            return False
        # A trust policy has no Resource: it is about the role that it belongs to.
        bodies = policy["Statement"]
        listed = bodies if isinstance(bodies, list) else [bodies]
        document = {**policy, "Statement": [{"Resource": "*", **body} for body in listed]}
        return self.resource_policy_allows(document, service, "sts:AssumeRole", role_arn, context)

    def resource_policy_allows(
        self,
        policy: Mapping[str, Any],
        principal_service: str,
        action: str,
        resource: str,
        context: Context = NOTHING,
    ) -> bool:
        """Whether the policy of a queue or a function lets a service do it."""
        statements = [
            one
            for one in Policy("resource policy", policy, principals=True).statements()
            if _names(one, principal_service)
        ]
        full = {"aws:SecureTransport": "true", **context}
        decision = decide(statements, action, resource, full)
        self.log.add(Checked(principal_service, action, resource, decision))
        return decision.is_allowed

    def grants(self, role_arn: str) -> Sequence[Grant]:
        """Every action that a role's policies allow."""
        with self.lock:
            policies = role_policies(role_arn)
        return [
            Grant(role_arn, statement.name, action)
            for policy in policies
            for statement in policy.statements()
            if statement.is_allow
            for action in statement.actions
        ]

    def unused_grants(self, role_arn: str) -> Sequence[Grant]:
        """The grants of a role that no request has needed since the log began."""
        used = [one for one in self.log.used if one.principal == role_arn]
        return [
            grant
            for grant in self.grants(role_arn)
            if not any(
                grant.statement in one.decision.statements
                and matches_action(grant.action, one.action)
                for one in used
            )
        ]


def _carried(action: str, resource: str, context: Context) -> dict[str, str | Sequence[str]]:
    """Errors: NotModelledError, for an action that is never asked for such a resource."""
    listed = reference.action(action)
    if not reference.is_asked(action, resource):
        raise NotModelledError(f"{action} is not asked for {resource}")
    return {key: value for key, value in context.items() if listed.has_key(key, resource)}


def _of_principal(role_arn: str) -> dict[str, str]:
    """The context that every request of a role carries.

    The local endpoint speaks plain HTTP in the place of AWS's TLS one.
    """
    context = {
        "aws:PrincipalArn": role_arn,
        "aws:PrincipalAccount": role_arn.split(":")[4],
        "aws:SecureTransport": "true",
    }
    return context | {
        f"aws:PrincipalTag/{key}": value for key, value in role_tags(role_arn).items()
    }


def _names(statement: Statement, service: str) -> bool:
    """Whether a statement of a resource policy is about a service."""
    principal = statement.body.get("Principal")
    if principal is None:
        raise NotModelledError(f"{statement.name} names no Principal")
    if principal == "*":
        return True
    if unknown := set(principal) - {"Service", "AWS", "Federated"}:
        raise NotModelledError(f"Principal {sorted(unknown)}")
    return service in as_strings(principal.get("Service", ())) or "*" in as_strings(
        principal.get("AWS", ())
    )
