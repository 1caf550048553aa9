"""Tidegate is upgraded while jobs run: head and functions are of two versions for a while.

`tests/wire/test_version_mix.py` holds each message against the version before; here a life of
nodes goes on across them.
"""

import gzip
import json
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

from local.stack_world import StackWorld
from tests import make
from tests.stack import story
from tests.stack.test_recovery import assert_taken_over, buy_and_run
from tests.wire.version_samples import PREVIOUS
from tidegate.adapters.bus import AwsBus
from tidegate.core.model.digest import Digest
from tidegate.core.model.frozen import frozen
from tidegate.core.model.orders import Order, OrderKind
from tidegate.wire.digest import encode_digest
from tidegate.wire.orders import encode_order

SCHEMAS = {kind: each["schema"] for kind, each in json.loads(PREVIOUS.read_text()).items()}
RECORDS = {"launch": "LaunchRecord", "node": "NodeRecord"}


def as_before(kind: str, written: Any) -> Any:
    """What the version before would have written in the place of this."""
    return _known(written, SCHEMAS[kind], SCHEMAS[kind].get("$defs", {}))


def _known(value: Any, schema: Mapping[str, Any], parts: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return _known(value, parts[schema["$ref"].rpartition("/")[2]], parts)
    if "anyOf" in schema:
        kinds = {dict: "object", list: "array", type(None): "null"}
        resolved = [
            parts.get(str(each.get("$ref", "")).rpartition("/")[2], each)
            for each in schema["anyOf"]
        ]
        wanted = kinds.get(type(value))
        fits = [each for each in resolved if each.get("type") == wanted]
        return _known(value, fits[0], parts) if fits else value
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        return {
            name: _known(each, known[name], parts) for name, each in value.items() if name in known
        }
    if isinstance(value, list) and "items" in schema:
        return [_known(each, schema["items"], parts) for each in value]
    return value


@frozen
class BusBefore(AwsBus):
    """The agent's end of the bus, whose digests are those of the version before."""

    def put_digest(self, digest: Digest) -> None:
        written = as_before("Digest", json.loads(gzip.decompress(encode_digest(digest))))
        self._put_digest(gzip.compress(json.dumps(written).encode()), digest.stamp)


def unread(orders: list[Order]) -> list[str]:
    """What the agent of the version before cannot read of these orders."""
    reader = Draft202012Validator(SCHEMAS["Order"])
    return [
        error.message
        for order in orders
        for error in reader.iter_errors(json.loads(encode_order(order)))
    ]


def test_an_agent_of_the_version_before_can_carry_out_what_it_is_told(world: StackWorld):
    world.bus_kind = BusBefore
    node = buy_and_run(world)
    story.warn(world, node)
    told = world.orders()
    world.report(nodes=[make.node(node, idle_s=9999)])
    told += world.orders()

    assert {each.kind for each in told} >= {OrderKind.DRAIN, OrderKind.RELEASE}
    assert {name for each in told for name in each.names} == {node}
    assert unread(told) == []
    assert world.trouble() == []


def test_an_agent_is_renewed_while_a_job_runs(world: StackWorld):
    world.bus_kind = BusBefore
    node = buy_and_run(world)

    world.bus_kind = AwsBus
    world.restart_head()

    assert_taken_over(world, node)


def test_what_the_functions_of_the_version_before_have_recorded_goes_on(world: StackWorld):
    node = buy_and_run(world)
    dynamodb, table = world.cloud.observer("dynamodb"), world.physical("AWS::DynamoDB::Table")
    rewritten = set()
    for item in dynamodb.scan(TableName=table)["Items"]:
        kind = RECORDS.get(item["sk"]["S"].partition("#")[0])
        if kind and "body" in item:
            body = json.dumps(as_before(kind, json.loads(item["body"]["S"])))
            dynamodb.put_item(TableName=table, Item={**item, "body": {"S": body}})
            rewritten.add(kind)
    assert rewritten == set(RECORDS.values())

    assert_taken_over(world, node)
