"""An event source mapping gathers batches, and runs as many at once as it may."""

import json
from itertools import batched
from typing import Any

from local.deploy import Deployment
from tests.local.conftest import Stack
from tests.local.put import Route, bodies, said
from tests.local.stack import att, ref, statement

CONSUME = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]


def with_storm_queue(stack: Stack, **mapping: Any) -> Deployment:
    """A standard queue that feeds the function "async"."""
    stack.add("Storm", {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 30}})
    properties = {"EventSourceArn": att("Storm"), "FunctionName": ref("Async"), **mapping}
    stack.add("StormFeed", {"Type": "AWS::Lambda::EventSourceMapping", "Properties": properties})
    (policy,) = stack.properties("FunctionRole")["Policies"]
    policy["PolicyDocument"]["Statement"].append(statement(CONSUME, att("Storm")))
    return stack.deploy()


def send(stack: Stack, deployed: Deployment, *orders: dict[str, Any]) -> None:
    sqs = stack.cloud.client("sqs")
    for some in batched(enumerate(orders), 10, strict=False):
        entries = [{"Id": str(n), "MessageBody": json.dumps(order)} for n, order in some]
        sqs.send_message_batch(QueueUrl=deployed.resources["Storm"][1], Entries=entries)


def test_a_batch_is_as_large_as_the_mapping_says(stack: Stack, route: Route):
    deployed = with_storm_queue(stack, BatchSize=20, MaximumBatchingWindowInSeconds=1)
    send(stack, deployed, *({"number": number} for number in range(25)))
    router = route()

    router.settle()

    assert [len(bodies(done)) for done in router.invocations] == [20, 5]
    assert {body["number"] for done in router.invocations for body in bodies(done)} == {*range(25)}


def test_what_comes_within_the_window_is_one_batch(stack: Stack, route: Route):
    deployed = with_storm_queue(stack, BatchSize=100, MaximumBatchingWindowInSeconds=3)
    router = route()
    router.start()

    send(stack, deployed, *({"number": number} for number in range(15)))
    router.settle()

    assert [len(bodies(done)) for done in router.invocations] == [15]


def test_no_more_invocations_at_once_than_the_mapping_allows(stack: Stack, route: Route):
    deployed = with_storm_queue(
        stack,
        BatchSize=1,
        MaximumBatchingWindowInSeconds=1,
        ScalingConfig={"MaximumConcurrency": 2},
    )
    router = route()
    router.start()

    send(stack, deployed, *({"do": "sleep", "for_s": 1} for _ in range(5)))
    router.settle()

    assert len(router.invocations) == 5
    assert len({said(done)["pid"] for done in router.invocations}) == 2
    spans = [(done.at_s, done.at_s + done.duration_s) for done in router.invocations]
    assert max(sum(a <= at_s < b for a, b in spans) for at_s, _ in spans) == 2
