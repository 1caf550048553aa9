"""What IAM says to a request: policies, an action, a resource and a context -> a decision.

Source: IAM user guide, "Policy evaluation logic": all statements that apply are gathered, one
Deny among them wins, then one Allow, and without any the answer is no.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from local.iam.conditions import as_strings, holds
from local.iam.patterns import (
    Context,
    NotModelledError,
    UnsetVariableError,
    context_of,
    matches_action,
    matches_arn,
)

ELEMENTS = frozenset(
    {"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition"}
)
LANGUAGE = "2012-10-17"


class Verdict(StrEnum):
    ALLOWED = "allowed"
    NOT_ALLOWED = "no identity-based policy allows it"
    DENIED = "an explicit deny"


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, and the statements ("policy/Sid") that made it so."""

    verdict: Verdict
    statements: tuple[str, ...] = ()

    @property
    def is_allowed(self) -> bool:
        return self.verdict is Verdict.ALLOWED


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement. `name`: its policy's name and its Sid, or its number from 0."""

    name: str
    body: Mapping[str, Any]

    @property
    def is_allow(self) -> bool:
        if self.body["Effect"] not in ("Allow", "Deny"):
            raise NotModelledError(f"Effect {self.body['Effect']!r} in {self.name}")
        return bool(self.body["Effect"] == "Allow")

    @property
    def actions(self) -> tuple[str, ...]:
        return as_strings(self.body.get("Action", ()))

    def is_about(self, action: str) -> bool:
        if "NotAction" in self.body:
            excluded = as_strings(self.body["NotAction"])
            return not any(matches_action(one, action) for one in excluded)
        return any(matches_action(one, action) for one in self.actions)

    def applies(self, action: str, resource: str, values: Mapping[str, tuple[str, ...]]) -> bool:
        """Whether action, resource and conditions are those of the request."""
        if not self.is_about(action):
            return False
        try:
            return self._covers(resource, values) and holds(self.body.get("Condition", {}), values)
        except UnsetVariableError:
            return False

    def _covers(self, resource: str, values: Mapping[str, tuple[str, ...]]) -> bool:
        if "NotResource" in self.body:
            excluded = as_strings(self.body["NotResource"])
            return not any(matches_arn(one, resource, values) for one in excluded)
        return any(matches_arn(one, resource, values) for one in as_strings(self.body["Resource"]))


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy document and its name. `principals`: a resource policy, which names them."""

    name: str
    document: Mapping[str, Any]
    principals: bool = False

    def statements(self) -> Iterator[Statement]:
        if self.document.get("Version") != LANGUAGE:
            raise NotModelledError(f"policy {self.name} of version {self.document.get('Version')}")
        bodies = self.document["Statement"]
        for number, body in enumerate(bodies if isinstance(bodies, list) else [bodies]):
            unknown = set(body) - ELEMENTS - ({"Principal"} if self.principals else set())
            if unknown:
                raise NotModelledError(f"{', '.join(sorted(unknown))} in policy {self.name}")
            yield Statement(f"{self.name}/{body.get('Sid') or number}", body)


def evaluate(policies: Sequence[Policy], action: str, resource: str, context: Context) -> Decision:
    """What the policies say together.

    Raises `NotModelledError` where a statement that could apply holds what is not known here.
    """
    statements = [one for policy in policies for one in policy.statements()]
    return decide(statements, action, resource, context)


def decide(
    statements: Sequence[Statement], action: str, resource: str, context: Context
) -> Decision:
    values = context_of(context)
    applying = [one for one in statements if one.applies(action, resource, values)]
    denying = tuple(one.name for one in applying if not one.is_allow)
    if denying:
        return Decision(Verdict.DENIED, denying)
    if applying:
        return Decision(Verdict.ALLOWED, tuple(one.name for one in applying))
    return Decision(Verdict.NOT_ALLOWED)
