"""Roles that jobs act as: nodes may assume them, and no other; each pool's nodes know theirs."""

import pytest

from tests.cdk.made import Stack, joined
from tests.cdk.variants import JOB_ROLE, cluster_stack, stacks_of


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    return cluster_stack(stacks_of(tmp_path_factory, "job roles"))


def user_data(stack: Stack, pool: str) -> str:
    template = stack.named(f"NodesPool{pool}", "AWS::EC2::LaunchTemplate")
    return joined(template["LaunchTemplateData"]["UserData"])


def test_nodes_may_assume_the_roles_that_the_file_names_and_no_other(stack: Stack) -> None:
    statements = stack.named("NodesRole", "AWS::IAM::Role")["Policies"][0]["PolicyDocument"]
    (found,) = [each for each in statements["Statement"] if each["Sid"] == "JobRoles"]

    assert (found["Action"], found["Effect"]) == ("sts:AssumeRole", "Allow")
    assert found["Resource"] == [JOB_ROLE, f"{JOB_ROLE}-t4", f"{JOB_ROLE}-vision"]


def test_each_pool_s_nodes_know_their_own(stack: Stack) -> None:
    assert f"JOB_ROLES=={JOB_ROLE}-t4\n" in user_data(stack, "t4")
    quoted = f"'={JOB_ROLE} vision={JOB_ROLE}-vision'"
    assert f"JOB_ROLES={quoted}\n" in user_data(stack, "a10g")


def test_the_stack_tells_whom_the_roles_must_trust(stack: Stack, dev: Stack) -> None:
    assert "NodesRoleArn" in stack.template["Outputs"]
    assert "NodesRoleArn" not in dev.template["Outputs"]


def test_without_a_role_nodes_may_assume_none(dev: Stack) -> None:
    statements = dev.named("NodesRole", "AWS::IAM::Role")["Policies"][0]["PolicyDocument"]

    assert "JobRoles" not in [each.get("Sid") for each in statements["Statement"]]
    assert "JOB_ROLES" not in user_data(dev, "t4")
