"""What is lost is built again, and the nodes that run are taken over, not lost and not doubled.

docs/recovery.md tells a person the same steps.
"""

import pytest
import yaml

from local.deploy import deploy, destroy
from local.router.router import Router
from local.stack_world import StackWorld
from tests import make
from tests.assemblies import assembled
from tests.stack import story
from tests.stack.world import CLUSTER_FILE, STACK

JOB = 1


def buy_and_run(world: StackWorld) -> str:
    """A node that runs a job."""
    (node,) = story.buy(world, JOB)
    report_running(world, node)
    return node


def report_running(world: StackWorld, node: str) -> None:
    world.report([make.job(JOB, on=[node])], [make.node(node, gpus_alloc=1, state="MIXED")])


def assert_taken_over(world: StackWorld, node: str) -> None:
    """The node stays while its job runs, nothing is bought for it again, and later it goes."""
    report_running(world, node)
    report_running(world, node)
    assert world.nodes() == [node]
    assert [each.kind for each in world.orders()] == []

    story.let_go(world, [node])
    assert world.nodes() == []
    assert [each.error for each in world.router.invocations if each.error] == []
    assert list(world.cloud.authorizer.log.denied) == []


def items(world: StackWorld) -> tuple[str, list[dict[str, object]]]:
    table = world.physical("AWS::DynamoDB::Table")
    return table, world.cloud.observer("dynamodb").scan(TableName=table)["Items"]


def test_table_lost(world: StackWorld):
    node = buy_and_run(world)
    table, found = items(world)
    assert found
    for item in found:
        key = {name: item[name] for name in ("pk", "sk")}
        world.cloud.observer("dynamodb").delete_item(TableName=table, Key=key)

    assert_taken_over(world, node)


def test_head_lost(world: StackWorld, tmp_path):
    """A new head of the next generation, with the same volume and files."""
    node = buy_and_run(world)
    lost = world.head_id
    kept = world.physical("AWS::EC2::Volume")
    world.cloud.observer("ec2").terminate_instances(InstanceIds=[lost])
    file = tmp_path / "cluster.yaml"
    described = yaml.load(CLUSTER_FILE.read_text(), Loader=yaml.BaseLoader)
    file.write_text(yaml.safe_dump({**described, "head": {"generation": "2"}}))

    world.deployment = deploy(world.cloud, assembled(file, tmp_path / "cdk.out"), STACK)
    world.restart_head()

    assert world.head_id != lost
    assert world.physical("AWS::EC2::Volume") == kept
    assert_taken_over(world, node)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_stack_lost(assembly, world: StackWorld):
    """Everything but what is kept: deployed again from Git, onto the same ledger and files."""
    node = buy_and_run(world)
    kept = items(world)[0]
    world.router.stop()

    destroy(world.cloud, STACK)
    world.deployment = deploy(world.cloud, assembly, STACK)
    world.restart_head()

    assert items(world)[0] == kept
    with Router(world.cloud, clock=world.router.clock) as router:
        world.router = router
        assert_taken_over(world, node)
