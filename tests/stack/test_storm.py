"""A storm of notices through the deployed rules, queues and function, with rubbish in between."""

import json
from itertools import batched
from typing import Any

import pytest

from local.stack_world import StackWorld
from tests import make
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.core.model.ledger import LaunchStatus
from tidegate.core.model.orders import OrderKind
from tidegate.ports import Finished
from tidegate.wire.events import HEALTH_DETAIL_TYPE, SPOT_DETAIL_TYPE, STATE_DETAIL_TYPE

NUM_NODES = 130
# EventBridge takes events of 256 KB, and so does SQS.
LARGE = "x" * 250_000

RUBBISH: list[tuple[str, str, object]] = [
    ("aws.ec2", SPOT_DETAIL_TYPE, {}),
    ("aws.ec2", SPOT_DETAIL_TYPE, {"instance-id": "; reboot"}),
    ("aws.ec2", STATE_DETAIL_TYPE, {"instance-id": "; reboot", "state": "stopped"}),
    ("aws.health", HEALTH_DETAIL_TYPE, {"service": "EC2", "eventTypeCategory": "issue" * 9}),
]
HARMLESS: list[tuple[str, str, object]] = [
    ("aws.ec2", SPOT_DETAIL_TYPE, {"instance-id": "i-0123456789", "more": LARGE}),
    ("aws.ec2", STATE_DETAIL_TYPE, {"instance-id": "i-0123456789", "state": "stopping"}),
    ("aws.ec2", STATE_DETAIL_TYPE, {"instance-id": "i-0123456789", "state": "dancing"}),
    ("aws.ec2", "EC2 Something New", {"instance-id": "i-0123456789"}),
]


def entry(source: str, kind: str, detail: object) -> dict[str, Any]:
    return {"Source": source, "DetailType": kind, "Detail": json.dumps(detail)}


@pytest.fixture
def stormy(world: StackWorld) -> tuple[StackWorld, DynamoLedger, list[str]]:
    """A stack with many nodes in its ledger."""
    names = [f"i-{number:017x}" for number in range(NUM_NODES)]
    ledger = world.ledger()
    ledger.finish_launches(
        Finished("l-0", LaunchStatus.DONE, [make.record(name) for name in names])
    )
    return world, ledger, names


def test_rubbish_in_a_storm_costs_no_notice(
    stormy: tuple[StackWorld, DynamoLedger, list[str]],
) -> None:
    world, ledger, names = stormy
    notices = [
        entry("aws.ec2", SPOT_DETAIL_TYPE, {"instance-id": name, "instance-action": "terminate"})
        for name in names
    ]
    others = [entry(*each) for each in (*RUBBISH, *HARMLESS)]
    events = world.cloud.observer("events")

    for chunk in batched([*notices[:70], *others, *notices[70:]], 10, strict=False):
        events.put_events(Entries=list(chunk))
    world.router.settle()

    drains = [order for order in world.orders() if order.kind is OrderKind.DRAIN]
    runs = [each for each in world.router.invocations if "interruption" in each.function_name]
    assert sorted(name for order in drains for name in order.names) == names
    assert len(drains) <= 3
    assert [each.reclaim_at_s is not None for each in ledger.nodes(names)] == [True] * NUM_NODES
    assert sum(len(names_of(run.answer)) for run in runs) == len(RUBBISH)
    assert figure(runs, "BadEvents") == len(RUBBISH)
    assert figure(runs, "ForeignNotices") == 1
    assert not any(run.error for run in runs)


def names_of(answer: Any) -> list[str]:
    """The messages that the function gave back."""
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def figure(runs: list[Any], name: str) -> float:
    """The sum of a metric over all runs, from their logs."""
    total = 0.0
    for line in (line for run in runs for line in run.lines if f'"{name}":' in line):
        found = json.loads(line)
        value = found.get(name, found.get("figures", {}).get(name, 0))
        total += sum(value) if isinstance(value, list) else value
    return total
