"""The evaluator alone: the rules of the IAM user guide, one by one."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.iam.evaluate import Decision, Policy, Verdict, evaluate
from local.iam.patterns import Context, NotModelledError
from tests.local_iam.conftest import Statement, allow, deny

BUCKET = "arn:aws:s3:::bucket"


def policy(*statements: Statement, name: str = "p") -> Policy:
    return Policy(name, {"Version": "2012-10-17", "Statement": list(statements)})


def ask(
    statements: Sequence[Statement],
    action: str = "s3:GetObject",
    resource: str = f"{BUCKET}/key",
    context: Context | None = None,
) -> Decision:
    return evaluate([policy(*statements)], action, resource, context or {})


def holds(condition: Mapping[str, Any], context: Context) -> bool:
    return ask([allow("*", "*", Condition=condition)], context=context).is_allowed


@pytest.mark.parametrize(
    ("pattern", "is_meant"),
    [
        ("s3:GetObject", True),
        ("S3:getobject", True),
        ("s3:*", True),
        ("s3:Get*", True),
        ("s3:?etObject", True),
        ("*", True),
        ("s3:GetObjectAcl", False),
        ("s3:Get", False),
        ("ec2:*", False),
    ],
)
def test_actions_are_patterns_without_case(pattern: str, is_meant: bool) -> None:
    assert ask([allow(pattern, "*")]).is_allowed is is_meant


@pytest.mark.parametrize(
    ("pattern", "is_meant"),
    [
        ("*", True),
        (f"{BUCKET}/*", True),
        (f"{BUCKET}/k?y", True),
        ("arn:aws:s3:*:*:bucket/key", True),
        (f"{BUCKET}/KEY", False),
        (BUCKET, False),
        # A * stays between its colons.
        ("arn:aws:*:bucket/key:*:*:*", False),
        ("arn:aws-cn:s3:::bucket/*", False),
    ],
)
def test_resources_are_patterns_with_case(pattern: str, is_meant: bool) -> None:
    assert ask([allow("s3:GetObject", pattern)]).is_allowed is is_meant


def test_a_resource_with_too_few_parts_is_said() -> None:
    statements = [allow("sqs:*", "arn:aws:sqs:*:jobs")]

    with pytest.raises(NotModelledError, match="neither an ARN"):
        ask(statements, "sqs:SendMessage", "arn:aws:sqs:us-east-1:1:jobs")


def test_what_has_no_resource_needs_the_star() -> None:
    assert not ask([allow("*", "arn:aws:ec2:*:*:*")], "ec2:DescribeInstances", "*").is_allowed
    assert ask([allow("*", "*")], "ec2:DescribeInstances", "*").is_allowed


def test_not_action_and_not_resource_turn_it_round() -> None:
    but_delete = {"Effect": "Allow", "NotAction": "s3:Delete*", "Resource": "*"}
    but_key = {"Effect": "Allow", "Action": "*", "NotResource": f"{BUCKET}/key"}

    assert ask([but_delete], "s3:GetObject").is_allowed
    assert not ask([but_delete], "s3:DeleteObject").is_allowed
    assert ask([but_key], resource=f"{BUCKET}/other").is_allowed
    assert not ask([but_key]).is_allowed


def test_a_decision_names_its_statements() -> None:
    named, unnamed = allow("s3:*", "*", Sid="Reading"), allow("*", "*")

    assert ask([named, unnamed]) == Decision(Verdict.ALLOWED, ("p/Reading", "p/1"))
    assert ask([]) == Decision(Verdict.NOT_ALLOWED)
    assert ask([unnamed, deny("s3:*", "*", Sid="No")]) == Decision(Verdict.DENIED, ("p/No",))


CONDITIONS = [
    ({"StringEquals": {"aws:RequestTag/a": ["x", "y"]}}, {"aws:RequestTag/a": "y"}, True),
    ({"StringEquals": {"aws:RequestTag/a": "x"}}, {"AWS:requesttag/A": "x"}, True),
    ({"StringEquals": {"aws:RequestTag/a": "x*"}}, {"aws:RequestTag/a": "xx"}, False),
    ({"StringEquals": {"aws:RequestTag/a": "x"}}, {"aws:RequestTag/a": "X"}, False),
    ({"StringEquals": {"aws:RequestTag/a": "x"}}, {}, False),
    ({"StringEqualsIgnoreCase": {"aws:RequestTag/a": "x"}}, {"aws:RequestTag/a": "X"}, True),
    ({"StringEqualsIfExists": {"aws:RequestTag/a": "x"}}, {}, True),
    ({"StringEqualsIfExists": {"aws:RequestTag/a": "x"}}, {"aws:RequestTag/a": "y"}, False),
    ({"StringNotEquals": {"aws:RequestTag/a": ["x", "y"]}}, {"aws:RequestTag/a": "y"}, False),
    ({"StringNotEquals": {"aws:RequestTag/a": ["x", "y"]}}, {"aws:RequestTag/a": "z"}, True),
    ({"StringNotEquals": {"aws:RequestTag/a": "x"}}, {}, True),
    ({"StringLike": {"aws:RequestTag/a": "tide*"}}, {"aws:RequestTag/a": "tidegate"}, True),
    ({"StringNotLike": {"aws:RequestTag/a": "tide*"}}, {"aws:RequestTag/a": "tidegate"}, False),
    ({"Bool": {"aws:SecureTransport": False}}, {"aws:SecureTransport": "true"}, False),
    ({"Bool": {"aws:SecureTransport": "True"}}, {"aws:SecureTransport": "true"}, True),
    ({"Null": {"aws:RequestTag/a": "true"}}, {}, True),
    ({"Null": {"aws:RequestTag/a": "true"}}, {"aws:RequestTag/a": "x"}, False),
    ({"Null": {"aws:RequestTag/a": False}}, {"aws:RequestTag/a": "x"}, True),
    ({"NumericLessThanEquals": {"s3:max-keys": "10"}}, {"s3:max-keys": "9"}, True),
    ({"NumericLessThanEquals": {"s3:max-keys": 10}}, {"s3:max-keys": "11"}, False),
    ({"NumericNotEquals": {"s3:max-keys": 10}}, {"s3:max-keys": "10.0"}, False),
    ({"ArnLike": {"aws:SourceArn": "arn:aws:s3:::b*"}}, {"aws:SourceArn": BUCKET}, True),
    ({"ArnEquals": {"aws:SourceArn": "arn:aws:s3:*:*:c*"}}, {"aws:SourceArn": BUCKET}, False),
    ({"ArnNotLike": {"aws:SourceArn": "arn:aws:s3:::c*"}}, {"aws:SourceArn": BUCKET}, True),
    ({"ForAllValues:StringLike": {"aws:TagKeys": "t*"}}, {"aws:TagKeys": ["t1", "t2"]}, True),
    ({"ForAllValues:StringLike": {"aws:TagKeys": "t*"}}, {"aws:TagKeys": ["t1", "x"]}, False),
    ({"ForAllValues:StringLike": {"aws:TagKeys": "t*"}}, {}, True),
    ({"ForAnyValue:StringEquals": {"aws:TagKeys": "t"}}, {"aws:TagKeys": ["t", "x"]}, True),
    ({"ForAnyValue:StringEquals": {"aws:TagKeys": "t"}}, {"aws:TagKeys": ["x", "y"]}, False),
    ({"ForAnyValue:StringEquals": {"aws:TagKeys": "t"}}, {}, False),
    ({"ForAnyValue:StringNotEquals": {"aws:TagKeys": "t"}}, {"aws:TagKeys": ["t", "x"]}, True),
    ({"ForAllValues:StringNotEquals": {"aws:TagKeys": "t"}}, {"aws:TagKeys": ["t", "x"]}, False),
]


@pytest.mark.parametrize(("condition", "context", "expected"), CONDITIONS)
def test_conditions(condition: Mapping[str, Any], context: Context, expected: bool) -> None:
    assert holds(condition, context) is expected


def test_all_operators_and_all_keys_must_hold() -> None:
    condition = {
        "StringEquals": {"aws:RequestTag/a": "x", "aws:RequestTag/b": "y"},
        "Bool": {"aws:SecureTransport": "true"},
    }
    context = {"aws:RequestTag/a": "x", "aws:RequestTag/b": "y", "aws:SecureTransport": "true"}

    assert holds(condition, context)
    for key in context:
        assert not holds(condition, {**context, key: "other"})


def test_variables_stand_for_values_of_the_request() -> None:
    statements = [allow("*", f"{BUCKET}/${{aws:PrincipalAccount}}/*")]
    key = f"{BUCKET}/1/key"

    assert ask(statements, resource=key, context={"aws:PrincipalAccount": "1"}).is_allowed
    assert not ask(statements, resource=key, context={"aws:PrincipalAccount": "2"}).is_allowed
    assert not ask(statements, resource=key).is_allowed


def test_a_value_put_into_a_pattern_is_no_pattern() -> None:
    statements = [allow("*", f"{BUCKET}/${{aws:PrincipalTag/team}}")]

    assert not ask(statements, context={"aws:PrincipalTag/team": "*"}).is_allowed


def test_a_star_may_be_written_as_itself() -> None:
    statements = [allow("*", f"{BUCKET}/a${{*}}")]

    assert ask(statements, resource=f"{BUCKET}/a*").is_allowed
    assert not ask(statements, resource=f"{BUCKET}/ab").is_allowed


@pytest.mark.parametrize(
    "statement",
    [
        allow("*", "*", Condition={"IpAddress": {"aws:SecureTransport": "10.0.0.0/8"}}),
        allow("*", "*", Condition={"StringEquals": {"aws:SourceIp": "x"}}),
        allow("*", "*", Condition={"ForNoValue:StringEquals": {"aws:TagKeys": "x"}}),
        allow("*", "*", Condition={"StringEquals": {"aws:TagKeys": "x"}}),
        allow("*", "*", Principal="*"),
        allow("*", "bucket/key"),
        allow("*", "arn:aws:s3:::${aws:PrincipalTag/team, 'none'}"),
        {"Effect": "Maybe", "Action": "*", "Resource": "*"},
    ],
)
def test_what_is_not_known_is_said_and_never_allowed(statement: Statement) -> None:
    context = {"aws:TagKeys": ["x", "y"], "aws:SecureTransport": "true"}

    with pytest.raises(NotModelledError):
        ask([statement], context=context)


def test_an_older_language_is_not_guessed_at() -> None:
    old = Policy("old", {"Version": "2008-10-17", "Statement": [allow("*", "*")]})

    with pytest.raises(NotModelledError, match="2008"):
        evaluate([old], "s3:GetObject", BUCKET, {})


WORDS = st.text("abB*?", max_size=6)
STATEMENTS = st.builds(
    lambda effect, action, key: {
        "Effect": effect,
        "Action": f"s3:{action}",
        "Resource": f"{BUCKET}/{key}",
    },
    st.sampled_from(["Allow", "Deny"]),
    WORDS,
    WORDS,
)


@given(WORDS, st.text("abB", max_size=6))
def test_patterns_agree_with_the_shells(pattern: str, key: str) -> None:
    found = ask([allow("*", f"{BUCKET}/{pattern}")], resource=f"{BUCKET}/{key}")

    assert found.is_allowed is fnmatchcase(key, pattern)


@given(st.lists(STATEMENTS, max_size=4), st.permutations(range(4)), WORDS)
def test_the_order_of_statements_does_not_matter(
    statements: list[Statement], order: list[int], key: str
) -> None:
    shuffled = [statements[place] for place in order if place < len(statements)]
    resource = f"{BUCKET}/{key}"

    one, other = ask(statements, resource=resource), ask(shuffled, resource=resource)

    assert one.verdict is other.verdict


@given(st.lists(STATEMENTS, max_size=4), WORDS)
def test_another_deny_never_allows_more_and_another_allow_never_less(
    statements: list[Statement], key: str
) -> None:
    resource = f"{BUCKET}/{key}"
    before = ask(statements, resource=resource).is_allowed

    assert not ask([*statements, deny("*", "*")], resource=resource).is_allowed
    assert ask([*statements, allow("s3:Put*", "*")], resource=resource).is_allowed is before
    assert not before or ask([*statements, allow("*", "*")], resource=resource).is_allowed
