"""What fails comes again, after its time, as often as the stack says, and then goes aside."""

import json
import time
from pathlib import Path

import pytest

from local.router.router import NotSettled
from tests.local.conftest import Stack
from tests.local.put import (
    Route,
    bodies,
    come_again,
    dead_bodies,
    event,
    eventually,
    look,
    of,
    said,
)

VISIBILITY_S = 1


def test_the_same_body_twice_is_dropped_and_another_is_not(stack: Stack, route: Route):
    deployed = stack.deploy()
    router = route()

    look(stack, deployed, number=1)
    router.settle()
    look(stack, deployed, number=1)
    look(stack, deployed, number=2)
    router.settle()

    assert [bodies(each) for each in router.invocations] == [[{"number": 1}], [{"number": 2}]]


def test_a_deduplication_id_counts_and_not_the_body(stack: Stack, route: Route):
    deployed = stack.deploy()
    router = route()
    sqs = stack.cloud.client("sqs")

    for number in (1, 2):
        sqs.send_message(
            QueueUrl=deployed.outputs["LooksUrl"],
            MessageBody=json.dumps({"number": number}),
            MessageGroupId="dev",
            MessageDeduplicationId="same",
        )
        router.settle()

    assert [bodies(each) for each in router.invocations] == [[{"number": 1}]]


def test_a_group_in_flight_is_locked_and_another_flows(stack: Stack):
    deployed = stack.deploy()
    sqs, url = stack.cloud.client("sqs"), deployed.outputs["LooksUrl"]
    look(stack, deployed, group="one", number=1)
    (first,) = sqs.receive_message(QueueUrl=url, VisibilityTimeout=30)["Messages"]
    look(stack, deployed, group="one", number=2)
    look(stack, deployed, group="two", number=3)

    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert [json.loads(each["Body"])["number"] for each in received] == [3]

    sqs.delete_message(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"])
    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert [json.loads(each["Body"])["number"] for each in received] == [2]


def test_what_timed_out_together_comes_again_in_its_order(stack: Stack):
    stack.properties("Looks")["VisibilityTimeout"] = VISIBILITY_S
    deployed = stack.deploy()
    sqs, url = stack.cloud.client("sqs"), deployed.outputs["LooksUrl"]
    for number in (1, 2, 3):
        look(stack, deployed, number=number)
    sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    time.sleep(VISIBILITY_S + 0.1)

    seen = []
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        for each in messages:
            seen.append(json.loads(each["Body"])["number"])
            sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])

    assert seen == [1, 2, 3]


def test_a_batch_is_no_larger_than_the_mapping_says(stack: Stack, route: Route):
    stack.properties("Mapping")["BatchSize"] = 2
    deployed = stack.deploy()
    router = route()

    for number in range(5):
        look(stack, deployed, number=number)
    router.settle()

    assert [len(each.event["Records"]) for each in router.invocations] == [2, 2, 1]


def test_only_the_reported_part_of_a_batch_comes_again(stack: Stack, route: Route):
    deployed = stack.deploy()
    router = route()

    look(stack, deployed, group="one", number=1)
    look(stack, deployed, group="two", number=2, do="fail")
    look(stack, deployed, group="three", number=3)
    router.settle()
    assert len(router.invocations) == 1
    come_again(stack, deployed, router.invocations[-1])
    router.settle()

    first, second = router.invocations
    assert [body["number"] for body in bodies(first)] == [1, 2, 3]
    assert [body["number"] for body in bodies(second)] == [2]


def test_without_report_batch_item_failures_an_answer_deletes_all(stack: Stack, route: Route):
    del stack.properties("Mapping")["FunctionResponseTypes"]
    deployed = stack.deploy()
    router = route()

    look(stack, deployed, do="fail")
    router.settle()
    come_again(stack, deployed, router.invocations[-1])
    router.settle()

    assert len(router.invocations) == 1


def test_a_batch_that_raises_comes_again_and_ends_in_the_dead_letter_queue(
    stack: Stack, route: Route
):
    deployed = stack.deploy()
    router = route()

    look(stack, deployed, do="raise")
    router.settle()
    assert [each.error for each in router.invocations] == ["RuntimeError: asked to"]
    assert dead_bodies(stack, deployed, "DeadLooks") == []
    come_again(stack, deployed, router.invocations[-1])
    router.settle()
    assert len(router.invocations) == 2
    come_again(stack, deployed, router.invocations[-1])
    router.settle()

    assert len(router.invocations) == 2
    assert dead_bodies(stack, deployed, "DeadLooks") == [{"do": "raise"}]


def test_a_function_over_its_time_is_killed_and_the_message_comes_again(stack: Stack, route: Route):
    stack.properties("Planner")["Timeout"] = 2
    deployed = stack.deploy()
    router = route()

    look(stack, deployed, do="sleep", for_s=600)
    router.settle()
    come_again(stack, deployed, router.invocations[-1])
    router.settle()

    first, second = router.invocations
    assert first.error == second.error == "timed out after 2 s"
    assert 2 <= first.duration_s < 6
    assert said(first)["pid"] != said(second)["pid"]
    assert (first.is_cold, second.is_cold) == (True, True)


def test_a_process_that_dies_is_started_anew(stack: Stack, route: Route):
    stack.deploy()
    router = route()

    event(stack, "test.ec2", do="die")
    router.settle()
    event(stack, "test.ec2", number=1)
    router.settle()

    *died, last = router.invocations
    assert {each.error for each in died} == {"the process ended with 3"}
    assert (last.error, last.is_cold) == ("", True)


def test_an_event_that_fails_for_good_goes_to_the_functions_queue(stack: Stack, route: Route):
    deployed = stack.deploy()
    router = route()

    event(stack, "test.ec2", do="raise")
    router.settle()

    assert len(router.invocations) == 3
    assert [body["detail"] for body in dead_bodies(stack, deployed, "Dead")] == [{"do": "raise"}]
    assert "failed 3 times: RuntimeError: asked to" in router.undelivered[0].reason


def test_the_number_of_retries_is_the_stacks_to_say(stack: Stack, route: Route):
    destination = {"OnFailure": {"Destination": {"Fn::GetAtt": ["Dead", "Arn"]}}}
    stack.add(
        "Config",
        {
            "Type": "AWS::Lambda::EventInvokeConfig",
            "Properties": {
                "FunctionName": {"Ref": "Async"},
                "Qualifier": "$LATEST",
                "MaximumRetryAttempts": 0,
                "DestinationConfig": destination,
            },
        },
    )
    del stack.properties("Async")["DeadLetterConfig"]
    deployed = stack.deploy()
    router = route()

    event(stack, "test.ec2", do="raise")
    router.settle()

    assert len(router.invocations) == 1
    assert len(dead_bodies(stack, deployed, "Dead")) == 1


def test_a_function_stays_warm_until_the_stack_changes_it(stack: Stack, route: Route):
    stack.deploy()
    router = route()
    for number in (1, 2):
        event(stack, "test.ec2", number=number)
        router.settle()
    stack.properties("Async")["Environment"]["Variables"] = {"NOTE": "new"}

    stack.deploy()
    event(stack, "test.ec2", number=3)
    router.settle()

    first, second, third = map(said, router.invocations)
    assert [each.is_cold for each in router.invocations] == [True, False, True]
    assert first["pid"] == second["pid"] != third["pid"]
    assert [each["note"] for each in (first, second, third)] == ["async", "async", "new"]


def test_a_handler_that_cannot_be_loaded_is_an_error_of_each_invocation(stack: Stack, route: Route):
    stack.properties("Async")["Handler"] = "handlers.absent"
    stack.deploy()
    router = route()

    event(stack, "test.ec2", number=1)
    router.settle()

    assert "absent" in router.invocations[0].error
    assert len(router.invocations) == 3


def test_a_router_that_is_still_busy_says_so(stack: Stack, route: Route, tmp_path: Path):
    stack.properties("Planner")["Timeout"] = 120
    deployed = stack.deploy()
    router = route()
    router.start()
    done, awaited = tmp_path / "done", tmp_path / "done.awaited"

    look(stack, deployed, do="wait", for_file=str(done))
    eventually("it is at work", awaited.exists)
    with pytest.raises(NotSettled):
        router.settle(timeout_s=0.5)
    done.touch()
    router.settle()

    assert len(of(router.invocations, "planner")) == 1
