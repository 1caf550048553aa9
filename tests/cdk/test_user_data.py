"""What is said of user data as it is rendered."""

import pytest
from aws_cdk import App, Stack

from cdk.user_data import LARGE_BYTES, MAX_BYTES, judge_user_data


@pytest.fixture
def stack() -> Stack:
    return Stack(App(), "Test")


def warnings(stack: Stack) -> int:
    return len([each for each in stack.node.metadata if each.type == "aws:cdk:warning"])


def test_user_data_near_the_limit_is_told(stack: Stack):
    judge_user_data(stack, "x" * LARGE_BYTES)
    assert warnings(stack) == 0

    judge_user_data(stack, "x" * (LARGE_BYTES + 1))
    assert warnings(stack) == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x" * (MAX_BYTES + 1), "EC2 takes 16384"),
        ("-----BEGIN RSA PRIVATE KEY-----", "a private key"),
        ("export https_proxy=http://me:hunter2@proxy:3128", "a password in an address"),
        ("PASSWORD=hunter2", "a password"),
        ("id AKIAIOSFODNN7EXAMPLE", "an AWS access key"),
    ],
)
def test_user_data_that_ec2_refuses_or_that_holds_a_secret_is_refused(stack: Stack, text, says):
    with pytest.raises(ValueError, match=says):
        judge_user_data(stack, text)


@pytest.mark.parametrize("text", ["token=$(curl x)", "MUNGE_SECRET=arn:aws:secretsmanager:x"])
def test_where_a_secret_is_is_no_secret(stack: Stack, text):
    judge_user_data(stack, text)
