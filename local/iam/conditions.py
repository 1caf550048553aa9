"""The condition operators of IAM policies.

Source: IAM user guide, "IAM JSON policy elements: Condition operators" and "Set operators for
multi-valued context keys". An operator or a key that is not known here raises
`NotModelledError`: a condition that nobody checks must not pass.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from local.iam.patterns import NotModelledError, equals, matches, matches_arn
from local.iam.reference import has_many_values

type Values = Mapping[str, tuple[str, ...]]
type Test = Callable[[str, str, Values], bool]

# The keys that the requests of this cloud carry where AWS's do. A request without one is a
# request without it; a key that is not listed would always look absent.
KNOWN_KEYS = frozenset(
    {
        *("aws:principalaccount", "aws:principalarn", "aws:principaltag", "aws:requestedregion"),
        *("aws:requesttag", "aws:resourcetag", "aws:securetransport", "aws:sourceaccount"),
        *("aws:sourcearn", "aws:tagkeys"),
        *("ec2:createaction", "ec2:instancemarkettype", "ec2:instanceprofile"),
        *("ec2:instancetype", "ec2:islaunchtemplateresource", "ec2:launchtemplate"),
        *("ec2:region", "ec2:resourcetag"),
        *("events:detail-type", "events:source"),
        *("iam:passedtoservice", "s3:delimiter", "s3:max-keys", "s3:prefix"),
    }
)


def _any_case(wanted: str, value: str, values: Values) -> bool:
    return equals(wanted.lower(), value.lower(), values)


def _number(compare: Callable[[float, float], bool]) -> Test:
    return lambda wanted, value, _: compare(float(value), float(wanted))


POSITIVE: dict[str, Test] = {
    "StringEquals": equals,
    "StringEqualsIgnoreCase": _any_case,
    "StringLike": matches,
    "ArnEquals": matches_arn,
    "ArnLike": matches_arn,
    "Bool": _any_case,
    "NumericEquals": _number(lambda value, wanted: value == wanted),
    "NumericLessThan": _number(lambda value, wanted: value < wanted),
    "NumericLessThanEquals": _number(lambda value, wanted: value <= wanted),
    "NumericGreaterThan": _number(lambda value, wanted: value > wanted),
    "NumericGreaterThanEquals": _number(lambda value, wanted: value >= wanted),
}
NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
    "NumericNotEquals": "NumericEquals",
}
FOR_ALL, FOR_ANY = "ForAllValues", "ForAnyValue"


def holds(conditions: Mapping[str, Mapping[str, Any]], values: Values) -> bool:
    """Whether every condition of a statement is met."""
    return all(
        _key_holds(operator, key, as_strings(wanted), values)
        for operator, by_key in conditions.items()
        for key, wanted in by_key.items()
    )


def as_strings(value: Any) -> tuple[str, ...]:
    """One value or a list of them, as policies write both; JSON's true is IAM's "true"."""
    listed: Iterable[Any] = value if isinstance(value, list | tuple) else [value]
    return tuple(str(one).lower() if isinstance(one, bool) else str(one) for one in listed)


def _key_holds(operator: str, key: str, wanted: tuple[str, ...], values: Values) -> bool:
    given = _given(key.lower(), values)
    if operator == "Null":
        return (given is None) == (wanted == ("true",))
    set_operator, _, name = operator.rpartition(":")
    is_optional = name.endswith("IfExists")
    name = name.removesuffix("IfExists")
    test = _test(name)
    if not set_operator and has_many_values(key):
        # IAM's own guide warns against it, and does not say what comes out.
        raise NotModelledError(f"{operator} on {key}, which may have several values")
    if is_optional and given is None:
        return True
    verdicts = [test(wanted, value, values) for value in given or ()]
    if set_operator == FOR_ALL:
        return all(verdicts)
    if set_operator == FOR_ANY:
        return any(verdicts)
    if set_operator:
        raise NotModelledError(f"condition operator {operator}")
    assert len(verdicts) <= 1, f"{key} has one value: {given}"
    return verdicts[0] if verdicts else name in NEGATED


def _given(key: str, values: Values) -> tuple[str, ...] | None:
    """The request's values for a key in lower case; None: it carries no such key."""
    if key not in values and key.split("/")[0] not in KNOWN_KEYS:
        raise NotModelledError(f"condition key {key}")
    return values.get(key)


def _test(name: str) -> Callable[[tuple[str, ...], str, Values], bool]:
    """Does one value of the request meet the policy's values: one of them, or none if negated."""
    if name in POSITIVE:
        test = POSITIVE[name]
        return lambda wanted, value, values: any(test(one, value, values) for one in wanted)
    if name in NEGATED:
        test = POSITIVE[NEGATED[name]]
        return lambda wanted, value, values: not any(test(one, value, values) for one in wanted)
    raise NotModelledError(f"condition operator {name}")
