"""IAM's own simulator, which moto does not have: what a principal's policies say to a call.

Source: IAM API reference, SimulatePrincipalPolicy and SimulateCustomPolicy. Of conditions it says
what keys a caller would have to tell; the organization's policies are none here.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from moto.core.responses import ActionResult
from moto.iam.exceptions import NotFoundException
from moto.iam.responses import IamResponse

from local.iam.conditions import as_strings
from local.iam.evaluate import Policy, Verdict, evaluate
from local.iam.roles import boundary_of, identity_policies

SAID = {
    Verdict.ALLOWED: "allowed",
    Verdict.NOT_ALLOWED: "implicitDeny",
    Verdict.DENIED: "explicitDeny",
}


def install_simulator() -> None:
    """For every server and mock of this process."""
    responder: Any = IamResponse
    responder.simulate_principal_policy = _of_principal
    responder.simulate_custom_policy = _of_policies


def _of_principal(self: Any) -> ActionResult:
    arn = self._get_param("PolicySourceArn")
    policies = identity_policies(arn)
    if policies is None:
        raise NotFoundException(f"The role with name {arn.rsplit('/', 1)[-1]} cannot be found.")
    return _answer(self, policies, boundary_of(arn))


def _of_policies(self: Any) -> ActionResult:
    given = [Policy("given", json.loads(one)) for one in self._get_param("PolicyInputList", [])]
    name = "PermissionsBoundaryPolicyInputList"
    boundary = [Policy("boundary", json.loads(one)) for one in self._get_param(name, [])]
    return _answer(self, given, boundary or None)


def _answer(
    responder: Any, policies: Sequence[Policy], boundary: Sequence[Policy] | None
) -> ActionResult:
    results = [
        _result(policies, boundary, action, resource)
        for action in responder._get_param("ActionNames", [])
        for resource in responder._get_param("ResourceArns", None) or ["*"]
    ]
    return ActionResult({"EvaluationResults": results, "IsTruncated": False})


def _result(
    policies: Sequence[Policy], boundary: Sequence[Policy] | None, action: str, resource: str
) -> dict[str, Any]:
    decision = evaluate(policies, action, resource, {})
    bound = evaluate(boundary, action, resource, {}) if boundary is not None else None
    said = SAID[decision.verdict]
    if bound and not bound.is_allowed and decision.is_allowed:
        said = SAID[bound.verdict]
    return {
        "EvalActionName": action,
        "EvalResourceName": resource,
        "EvalDecision": said,
        "MissingContextValues": sorted(_missing(policies, action)),
        **({"PermissionsBoundaryDecisionDetail": _detail(bound.is_allowed)} if bound else {}),
    }


def _detail(is_allowed: bool) -> dict[str, bool]:
    return {"AllowedByPermissionsBoundary": is_allowed}


def _missing(policies: Sequence[Policy], action: str) -> Iterator[str]:
    """The condition keys of what is said about an action; a simulation is told none of them."""
    seen: set[str] = set()
    for policy in policies:
        for statement in policy.statements():
            if statement.is_about(action):
                for keys in statement.body.get("Condition", {}).values():
                    seen.update(as_strings(list(keys)))
    yield from seen
