"""Whom a KMS key's policy lets use the key for volumes, as far as its text tells.

Sources: KMS developer guide, "Key policies", "kms:CallerAccount", "kms:ViaService"; IAM user guide,
"Policy evaluation logic" (a Deny goes before any Allow).
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from fnmatch import fnmatchcase
from typing import Any

from tidegate.core.model.frozen import frozen

# Source: EBS user guide, "Requirements for Amazon EBS encryption", permissions for users.
NEEDED = (
    *("kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey"),
    *("kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptFrom", "kms:ReEncryptTo"),
)

type Policy = Mapping[str, Any]


class Fit(IntEnum):
    """Whether something is so."""

    NO = 0
    MAYBE = 1  # the text does not tell
    YES = 2


@frozen
class Caller:
    """Who asks for volumes: of this account, by EC2 of this region.

    `is_named`: whether a principal that a policy names by its ARN is the caller.
    """

    account: str
    region: str
    is_named: Callable[[str], Fit]


def lets(policy: Policy, caller: Caller) -> Fit:
    """Whether the caller may do all that volumes need, whatever its own policies say."""
    return min(_may(policy, action, caller) for action in NEEDED)


def _may(policy: Policy, action: str, caller: Caller) -> Fit:
    allowed, denied = Fit.NO, Fit.NO
    for each in _several(policy.get("Statement")):
        fit = min(_is_about(each, action), _is_for(each, caller), _holds(each, action, caller))
        if each.get("Effect") == "Deny":
            denied = max(denied, fit)
        else:
            allowed = max(allowed, fit)
    return min(allowed, Fit(Fit.YES - denied))


def _is_about(statement: Policy, action: str) -> Fit:
    names = statement.get("Action", statement.get("NotAction"))
    is_among = any(fnmatchcase(action.lower(), str(each).lower()) for each in _several(names))
    return Fit.YES if is_among is ("Action" in statement) else Fit.NO


def _is_for(statement: Policy, caller: Caller) -> Fit:
    if "NotPrincipal" in statement:
        return Fit.MAYBE
    principal = statement.get("Principal")
    named = [principal] if isinstance(principal, str) else _several((principal or {}).get("AWS"))
    return max((_names(str(each), statement, caller) for each in named), default=Fit.NO)


def _names(principal: str, statement: Policy, caller: Caller) -> Fit:
    """An account as a whole is denied by its name, and allowed only what its own policies allow."""
    if principal == "*":
        return Fit.YES
    if principal == caller.account or principal.endswith(f"::{caller.account}:root"):
        return Fit.YES if statement.get("Effect") == "Deny" else Fit.NO
    return caller.is_named(principal)


def _holds(statement: Policy, action: str, caller: Caller) -> Fit:
    """What is not understood may hold or not."""
    fits = (
        _compared(operator, key, _several(wanted), action, caller)
        for operator, asked in statement.get("Condition", {}).items()
        for key, wanted in asked.items()
    )
    return min(fits, default=Fit.YES)


def _compared(operator: str, key: str, wanted: list[Any], action: str, caller: Caller) -> Fit:
    known = {
        "kms:calleraccount": caller.account,
        "aws:principalaccount": caller.account,
        "kms:viaservice": f"ec2.{caller.region}.amazonaws.com",
    }
    if key.lower() == "kms:grantisforawsresource" and operator == "Bool":
        # Only CreateGrant has it, and EC2 asks for nothing else.
        is_so = action == "kms:CreateGrant" and "true" in (str(each).lower() for each in wanted)
        return Fit.YES if is_so else Fit.NO
    value = known.get(key.lower())
    if value is None or operator not in ("StringEquals", "StringLike"):
        return Fit.MAYBE
    matches = (
        fnmatchcase(value, str(each)) if operator == "StringLike" else value == str(each)
        for each in wanted
    )
    return Fit.YES if any(matches) else Fit.NO


def _several(value: Any) -> list[Any]:
    """A policy writes a list of one as that one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
