"""`slurm.topology`: who may ask EC2 where a node is, and about which types a node asks."""

import pytest

from tests.cdk.made import Stack, joined
from tests.cdk.variants import cluster_stack, stacks_of


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    return cluster_stack(stacks_of(tmp_path_factory, "topology"))


def asks(stack: Stack) -> list[object]:
    policy = stack.named("NodesRole", "AWS::IAM::Role")["Policies"][0]["PolicyDocument"]
    return [
        (each["Action"], each["Resource"])
        for each in policy["Statement"]
        if "Topology" in str(each["Action"])
    ]


def user_data(stack: Stack, pool: str) -> str:
    template = stack.named(f"NodesPool{pool}", "AWS::EC2::LaunchTemplate")
    return joined(template["LaunchTemplateData"]["UserData"])


def test_nodes_may_ask_where_they_are_where_slurm_hears_it_alone(stack: Stack, dev: Stack) -> None:
    assert asks(stack) == [("ec2:DescribeInstanceTopology", "*")]
    assert asks(dev) == []


def test_a_node_asks_about_the_types_that_ec2_tells_of(stack: Stack, dev: Stack) -> None:
    assert "TOPOLOGY=g6e.12xlarge\n" in user_data(stack, "t4")
    assert "TOPOLOGY=-\n" in user_data(stack, "a10g")
    assert "TOPOLOGY" not in user_data(dev, "t4")
