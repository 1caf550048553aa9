"""A site's own IAM policies, on the roles of head, login nodes and nodes, and on no other."""

import pytest

from tests.cdk.made import Stack, dev_file, synthesized

POLICY = "arn:aws:iam::123456789012:policy/{}"
OF_AWS = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    file = dev_file(
        head={"policies": [POLICY.format("head"), OF_AWS]},
        login={"policies": [POLICY.format("login")]},
        node_policies=[POLICY.format("nodes")],
    )
    return synthesized(tmp_path_factory.mktemp("policies"), file)["tidegate-dev"]


def test_each_machine_s_role_has_its_own(stack: Stack) -> None:
    found = {
        role: stack.named(role, "AWS::IAM::Role")["ManagedPolicyArns"]
        for role in ("HeadRole", "LoginRole", "NodesRole")
    }

    assert found == {
        "HeadRole": [POLICY.format("head"), OF_AWS],
        "LoginRole": [POLICY.format("login")],
        "NodesRole": [POLICY.format("nodes")],
    }


def test_no_function_has_one(stack: Stack) -> None:
    have = [each for each in stack.all("AWS::IAM::Role") if each.get("ManagedPolicyArns")]

    assert len(have) == 3
