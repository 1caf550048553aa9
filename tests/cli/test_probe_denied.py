"""`tidegate probe` before a deployment: who denies what, and for whom that counts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.cli.region import names, region
from tests.cli.test_probe import Account, account, ready
from tests.contracts.conftest import cloud

__all__ = ["account", "cloud", "names", "ready", "region"]


@dataclass
class Launching:
    """EC2, which answers launches with this error."""

    ec2: Any
    code: str
    says: str

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ec2, name)

    def run_instances(self, **_: Any) -> Any:
        error = {"Code": self.code, "Message": self.says}
        raise ClientError({"Error": error}, "RunInstances")  # type: ignore[typeddict-item]


NO_VPC = "No default VPC for this user."
BY_POLICY = "You are not authorized to perform this operation. {} with an explicit deny in a {}"
BY_SCP = BY_POLICY.format("User: ada", "service control policy")
BY_IDENTITY = BY_POLICY.format("User: ada", "identity-based policy")


@pytest.mark.parametrize(
    ("code", "says", "standing"),
    [
        # Nodes are launched into the network of the stack, which is not there yet.
        ("VPCIdNotSpecified", NO_VPC, "not asked"),
        # The planner has another role than who asks; an organization's policy is everybody's.
        ("UnauthorizedOperation", BY_IDENTITY, "not asked"),
        ("UnauthorizedOperation", BY_SCP, "refuted"),
    ],
)
def test_what_ec2_says_of_a_launch_counts_if_it_holds_for_nodes(
    account: Account, code: str, says: str, standing: str
):
    account.instead["ec2"] = lambda ec2: Launching(ec2, code, says)

    found = next(each for each in account.facts().values() if "RunInstances" in each["claim"])

    assert found["standing"] == standing
    assert all(f"{code}: {says}" in each for each in found["details"])


@dataclass
class Organized:
    """IAM, whose simulator knows of an organization that denies an action."""

    iam: Any
    denies: str

    def __getattr__(self, name: str) -> Any:
        return getattr(self.iam, name)

    def get_paginator(self, operation: str) -> Any:
        return (
            self if operation == "simulate_principal_policy" else self.iam.get_paginator(operation)
        )

    def paginate(self, **asked: Any) -> Iterator[dict[str, Any]]:
        for each in asked["ActionNames"]:
            result: dict[str, Any] = {"EvalActionName": each, "EvalDecision": "allowed"}
            if each == self.denies:
                by = {"AllowedByOrganizations": False}
                result |= {"EvalDecision": "implicitDeny", "OrganizationsDecisionDetail": by}
            yield {"EvaluationResults": [result]}


def test_what_the_organization_denies_is_told_as_its_word(account: Account):
    account.instead["iam"] = lambda iam: Organized(iam, "lambda:CreateFunction")

    found = account.facts()["rights-of-cloudformation"]

    assert found["standing"] == "refuted"
    assert "lambda:CreateFunction" in found["details"][0]
    assert "a policy of the organization (SCP) does not allow it" in found["details"][0]
