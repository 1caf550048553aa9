"""How IAM compares a pattern of a policy with a value of a request.

Source: IAM user guide, "IAM JSON policy elements: Resource", "... Condition operators" and
"... Variables and tags".
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

type Context = Mapping[str, str | Sequence[str]]

ARN_PARTS = 6

# A variable such as ${aws:PrincipalAccount}; ${*}, ${?} and ${$} stand for the character.
TOKEN = re.compile(r"\$\{([^}]*)\}|([*?])|([^*?$]+|\$)")

# A colon outside of variables.
COLON = re.compile(r":(?![^${}]*\})")


class NotModelledError(AssertionError):
    """The evaluator does not know what IAM would say: a gap of ours, never a yes."""


class UnsetVariableError(Exception):
    """A policy variable that the request has no value for: the statement does not apply."""


def context_of(context: Context) -> dict[str, tuple[str, ...]]:
    """The context with keys in lower case, since IAM compares them without case."""
    return {
        key.lower(): (value,) if isinstance(value, str) else tuple(value)
        for key, value in context.items()
    }


def matches(pattern: str, value: str, context: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether the value is what the pattern, with * and ? and variables, stands for."""
    return re.fullmatch(_expression(pattern, context), value, re.DOTALL) is not None


def equals(text: str, value: str, context: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether the value is the text once its variables are put in; * is a plain character."""
    return re.fullmatch(_expression(text, context, wildcards=False), value, re.DOTALL) is not None


def matches_action(pattern: str, action: str) -> bool:
    """Whether an action such as `ec2:*` stands for the action; upper and lower case are one."""
    return matches(pattern.lower(), action.lower(), {})


def matches_arn(pattern: str, arn: str, context: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether an ARN is what the pattern stands for.

    Each of the six parts between colons is compared by itself, so that a * in one does not
    reach into the next. An action without resources of its own is asked for on "*", and only
    the pattern "*" gives that.
    """
    if pattern == "*":
        return True
    wanted = COLON.split(pattern, maxsplit=ARN_PARTS - 1)
    if len(wanted) != ARN_PARTS or wanted[0] != "arn":
        raise NotModelledError(f"a resource that is neither an ARN nor *: {pattern!r}")
    given = arn.split(":", ARN_PARTS - 1)
    return len(given) == ARN_PARTS and all(
        matches(part, value, context) for part, value in zip(wanted, given, strict=True)
    )


def _expression(
    pattern: str, context: Mapping[str, tuple[str, ...]], *, wildcards: bool = True
) -> str:
    if "${" not in pattern:
        return _plain_expression(pattern, wildcards)
    return "".join(_translated(pattern, context, wildcards))


@lru_cache(maxsize=4096)
def _plain_expression(pattern: str, wildcards: bool) -> str:
    return "".join(_translated(pattern, {}, wildcards))


def _translated(
    pattern: str, context: Mapping[str, tuple[str, ...]], wildcards: bool
) -> Iterator[str]:
    for variable, wildcard, text in TOKEN.findall(pattern):
        if variable:
            yield re.escape(_variable(variable, context))
        elif wildcard and wildcards:
            yield ".*" if wildcard == "*" else "."
        else:
            yield re.escape(wildcard or text)


def _variable(name: str, context: Mapping[str, tuple[str, ...]]) -> str:
    if name in ("*", "?", "$"):
        return name
    if "," in name:
        raise NotModelledError(f"a policy variable with a default: {name!r}")
    values = context.get(name.strip().lower(), ())
    if len(values) != 1:
        raise UnsetVariableError(name)
    return values[0]
