"""One search for a plan's id finds what it bought, how that booted, and what the head carried out.

The deployed functions' own log lines, and those of the agent, which works on a made-up Slurm.
"""

import io
import json
import logging
from typing import Any

from local.stack_world import StackWorld
from tests import make
from tests.agent.fakes import FakeClock, FakeSlurm
from tests.stack import story
from tidegate.agent.loop import Agent
from tidegate.agent.main import JsonLines
from tidegate.core.model.ec2 import LAUNCH_TAG
from tidegate.core.model.orders import plan_of
from tidegate.wire.events import BOOT_READY_DETAIL_TYPE

STAGES = [{"stage": "driver", "at_ms": 200, "ms": 4100}, {"stage": "slurmd", "at_ms": 9, "ms": 9}]


def found(world: StackWorld, plan_id: str) -> list[dict[str, Any]]:
    """What a search for the id gives in the functions' log groups, as records."""
    lines = (line for each in world.router.invocations for line in each.lines)
    return [json.loads(line) for line in lines if f'"{plan_id}"' in line]


def carry_out(world: StackWorld, node: str) -> str:
    """What the agent logs as it carries out the orders that wait for it."""
    slurm, clock = FakeSlurm(), FakeClock(make.NOW_S)
    slurm.put(node, "IDLE")
    agent = Agent(
        slurm=slurm,
        bus=world.bus,
        clock=clock,
        cluster=world.file.cluster.name,
        head_instance_id=world.head_id,
        agent_started_at_s=world.started_at_s,
        sleep=clock.sleep,
    )
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("tidegate.agent")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        agent.on_orders(world.orders())
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert slurm.did("delete") == [(node,)]
    return said.getvalue()


def launch_of(world: StackWorld, node: str) -> str:
    described = world.cloud.observer("ec2").describe_instances(InstanceIds=[node])
    tags = described["Reservations"][0]["Instances"][0]["Tags"]
    return str({each["Key"]: each["Value"] for each in tags}[LAUNCH_TAG])


def test_a_plan_is_followed_from_its_launch_to_the_boot_and_the_end_of_its_node(
    world: StackWorld,
) -> None:
    (node,) = story.buy(world)
    plan_id = plan_of(launch_of(world, node))
    assert plan_id
    world.tell_of_boot(node, BOOT_READY_DETAIL_TYPE, plan_id=plan_id, stages=STAGES)
    story.warn(world, node)

    records = found(world, plan_id)
    (look,) = [each["look"]["rounds"][0] for each in records if "look" in each]
    (boot,) = [each["boot"] for each in records if "boot" in each]
    (notice,) = [each["interruption"] for each in records if "interruption" in each]
    assert look["plan_id"] == plan_id
    assert [each["instance_id"] for each in look["launched"]] == [node]
    assert boot == {
        "instance_id": node,
        "plan_id": plan_id,
        "stages": {"driver": 4.1, "slurmd": 0.009},
        "s": 4.3,
    }
    assert (notice["nodes"], notice["plan_ids"]) == ([node], [plan_id])
    assert world.trouble() == []


def secrets(world: StackWorld) -> set[str]:
    """The functions' credentials and the Munge key, as bytes are written."""
    sessions = world.router.functions.roles._sessions.values()
    manager = world.cloud.observer("secretsmanager")
    named = [each["Name"] for each in manager.list_secrets()["SecretList"]]
    values = [manager.get_secret_value(SecretId=each) for each in named]
    keys = {str(each.get("SecretString") or each.get("SecretBinary")) for each in values}
    return keys | {each.secret_key for each in sessions} | {each.token for each in sessions}


def test_no_log_line_holds_a_secret(world: StackWorld) -> None:
    (node,) = story.buy(world)
    story.warn(world, node)
    story.let_go(world, [node])

    lines = [line for each in world.router.invocations for line in each.lines]
    assert len(secrets(world)) >= 5
    assert not [line for line in lines if any(each in line for each in secrets(world))]


def test_an_order_is_found_under_its_plan_at_the_planner_and_at_the_head(
    world: StackWorld,
) -> None:
    (node,) = story.buy(world)
    world.report(nodes=[make.node(node, idle_s=9999)])

    (line,) = [json.loads(each) for each in carry_out(world, node).splitlines()]

    (look,) = [each["look"]["rounds"][0] for each in found(world, line["plan_id"])]
    assert line["order_id"].startswith(line["plan_id"])
    assert [each["nodes"] for each in look["decisions"] if each["code"] == "release"] == [[node]]
    assert world.trouble() == []
