"""What IAM would say to somebody's calls, asked of IAM's own simulator.

Source: IAM API reference, SimulatePrincipalPolicy and SimulateCustomPolicy: policies, boundaries
and, as far as they have no conditions, the organization's policies; no resource policies.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidegate.adapters.aws_errors import aws_call
from tidegate.core.model.frozen import frozen

ALLOWED = "allowed"
EXPLICIT = "explicitDeny"


@frozen
class Simulated:
    """What the simulator said of some actions: those that are denied, each with what denies it.

    `unsure`: actions whose answer hangs on conditions of which the question held nothing.
    """

    denied: Mapping[str, str]
    unsure: tuple[str, ...] = ()


@frozen
class Caller:
    """Who asks. `principal`: what can be simulated, "" for an account's root user."""

    account: str
    partition: str
    principal: str

    def role(self, name: str) -> str:
        return f"arn:{self.partition}:iam::{self.account}:role/{name}"


@frozen
class Principals:
    """The identities of one account. Errors of every method: Throttled, NotAuthorized, Permanent.

    Permanent: IAM knows no such principal or policy.
    """

    clients: Callable[[str], Any]

    def caller(self) -> Caller:
        """A session of a role is simulated as its role, whose ARN has a path that STS leaves out.

        Source: IAM user guide, "IAM identifiers"; STS API reference, GetCallerIdentity.
        """
        with aws_call():
            arn = str(self.clients("sts").get_caller_identity()["Arn"])
        _, partition, service, _, account, name = arn.split(":", 5)
        if name == "root":
            return Caller(account, partition, "")
        if service == "sts":
            with aws_call():
                found = self.clients("iam").get_role(RoleName=name.split("/")[1])
            arn = str(found["Role"]["Arn"])
        return Caller(account, partition, arn)

    def of_principal(self, arn: str, actions: Sequence[str], resource: str = "*") -> Simulated:
        """What a user or role may not do."""
        return self._asked(
            "simulate_principal_policy",
            PolicySourceArn=arn,
            ActionNames=list(actions),
            ResourceArns=[resource],
        )

    def of_boundary(self, policy_arn: str, actions: Sequence[str]) -> Simulated:
        """What no role may do whose permissions boundary is this policy."""
        everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
        given = json.dumps({"Version": "2012-10-17", "Statement": [everything]})
        return self._asked(
            "simulate_custom_policy",
            PolicyInputList=[given],
            PermissionsBoundaryPolicyInputList=[self._document(policy_arn)],
            ActionNames=list(actions),
        )

    def _document(self, policy_arn: str) -> str:
        iam = self.clients("iam")
        with aws_call():
            version = iam.get_policy(PolicyArn=policy_arn)["Policy"]["DefaultVersionId"]
            found = iam.get_policy_version(PolicyArn=policy_arn, VersionId=version)
        document = found["PolicyVersion"]["Document"]  # botocore has decoded it
        return document if isinstance(document, str) else json.dumps(document)

    def _asked(self, operation: str, **request: Any) -> Simulated:
        denied: dict[str, str] = {}
        unsure: list[str] = []
        with aws_call():
            pages = self.clients("iam").get_paginator(operation).paginate(**request)
            results = [each for page in pages for each in page["EvaluationResults"]]
        for each in results:
            action, said = each["EvalActionName"], each["EvalDecision"]
            if said == ALLOWED:
                continue
            if said != EXPLICIT and each.get("MissingContextValues"):
                unsure.append(action)
            else:
                denied[action] = _why(each)
        return Simulated(denied, tuple(unsure))


def _why(result: Mapping[str, Any]) -> str:
    boundary = result.get("PermissionsBoundaryDecisionDetail", {})
    if not boundary.get("AllowedByPermissionsBoundary", True):
        return "its permissions boundary does not allow it"
    organization = result.get("OrganizationsDecisionDetail", {})
    if not organization.get("AllowedByOrganizations", True):
        return "a policy of the organization (SCP) does not allow it"
    if result["EvalDecision"] == EXPLICIT:
        return "a policy denies it"
    return "no policy allows it"
