"""What AWS does to the deployed functions on a bad day, and what is the matter afterwards: a look
that failed says so and counts, nothing is bought twice, and what is lost for good raises an alarm.
"""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.router.functions import Invocation
from local.stack_world import StackWorld
from local.trouble import Fault, Trouble
from tests import make
from tests.stack import story
from tests.stack.world import MORNING
from tidegate.core.model.cluster import Timings
from tidegate.core.model.orders import OrderKind
from tidegate.wire.events import SPOT_DETAIL_TYPE

# All attempts that a client of ours makes.
ATTEMPTS = 2
TIMEOUT_S = 8
AGAIN_S = 1.1
FUNCTION = "tidegate-stacked-{}"


def of(world: StackWorld, function: str) -> list[Invocation]:
    name = FUNCTION.format(function)
    return [each for each in world.router.invocations if each.function_name == name]


def metrics(invocation: Invocation) -> dict[str, Any]:
    """What an invocation counted, from the line that CloudWatch reads as metrics."""
    (line,) = [json.loads(each) for each in invocation.lines if '"_aws":' in each]
    return {name: value[0] for name, value in line.items() if isinstance(value, list)}


def resumed(world: StackWorld) -> bool:
    """Whether the last look took over what a planner before it had left undone."""
    decisions = world.looks()[-1]["rounds"][0]["decisions"]
    return any(each["code"] == "finish-launch" for each in decisions)


def set_visibility(world: StackWorld, queue: str, seconds: int) -> None:
    world.cloud.observer("sqs").set_queue_attributes(
        QueueUrl=world.queue_url(queue), Attributes={"VisibilityTimeout": str(seconds)}
    )


def shorten(world: StackWorld) -> None:
    """The planner lives for seconds only, and its messages come again as soon; it is warm."""
    world.cloud.observer("lambda").update_function_configuration(
        FunctionName=FUNCTION.format("planner"), Timeout=TIMEOUT_S
    )
    set_visibility(world, "QueuesLooks", TIMEOUT_S + 1)
    world.report()
    assert of(world, "planner")[-1].is_ok


def pass_the_lease(world: StackWorld) -> None:
    """Until no planner that bought before can still be at work."""
    ahead_s = world.router.clock.now_s() + Timings().apply_lease_s + 1
    world.router.clock.jump_to(datetime.fromtimestamp(ahead_s, UTC))


def come_again(world: StackWorld, times: int = 1) -> None:
    """Messages of what failed are delivered again a second later, until they are moved aside."""
    for _ in range(times):
        time.sleep(AGAIN_S)
        world.router.settle()


def alarmed_by(world: StackWorld, name: str) -> dict[str, Any]:
    """The deployed alarm of that name."""
    (found,) = world.cloud.observer("cloudwatch").describe_alarms(
        AlarmNames=[f"tidegate-stacked-{name}"]
    )["MetricAlarms"]
    return dict(found)


def assert_rings(world: StackWorld, alarm_name: str, queue: str) -> None:
    """The alarm watches this queue, and its threshold is crossed by one message at once."""
    alarm = alarmed_by(world, alarm_name)
    url = world.queue_url(queue)
    waiting = world.cloud.observer("sqs").get_queue_attributes(
        QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"]
    )["Attributes"]["ApproximateNumberOfMessages"]
    (topic,) = world.deployment.physical_ids("AWS::SNS::Topic")

    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": url.rsplit("/", 1)[-1]}]
    assert (alarm["Namespace"], alarm["MetricName"], alarm["Statistic"]) == (
        "AWS/SQS",
        "ApproximateNumberOfMessagesVisible",
        "Maximum",
    )
    assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
    assert int(waiting) > alarm["Threshold"] == 0
    assert (alarm["EvaluationPeriods"], alarm["Period"]) == (1, 300)
    assert alarm["AlarmActions"] == [topic]


def is_raised_by(world: StackWorld, alarm_name: str, invocation: Invocation) -> bool:
    """Whether what CloudWatch reads out of this invocation's log is more than the alarm bears."""
    alarm = alarmed_by(world, alarm_name)
    lines = [json.loads(each) for each in invocation.lines if '"_aws":' in each]
    if not lines:
        return False  # it counted nothing
    (line,) = lines
    (told,) = line["_aws"]["CloudWatchMetrics"]
    watched = {each["Name"]: each["Value"] for each in alarm["Dimensions"]}
    counts = {each["Name"] for each in told["Metrics"]}

    assert (told["Namespace"], alarm["Statistic"]) == (alarm["Namespace"], "Sum")
    assert watched == {name: line[name] for names in told["Dimensions"] for name in names}
    assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
    assert alarm["AlarmActions"] == [world.physical("AWS::SNS::Topic")]
    value = sum(line[alarm["MetricName"]]) if alarm["MetricName"] in counts else 0
    return bool(value > alarm["Threshold"])


@pytest.fixture
def warm(world: StackWorld) -> Iterator[StackWorld]:
    """The planner has looked before; nothing went wrong that was not ordered."""
    world.report()
    yield world
    log = world.cloud.authorizer.log
    assert [*log.denied, *log.not_modelled, *world.router.troubles] == []


@pytest.mark.parametrize(
    ("call", "about", "bought"),
    [
        ("dynamodb:Query", "", 0),
        ("dynamodb:TransactWriteItems", "launch#", 0),
        ("dynamodb:TransactWriteItems", "node#", 1),
    ],
    ids=["read", "commit", "record of what was bought"],
)
def test_a_throttled_ledger_fails_the_look_and_the_next_one_does_the_work(
    warm: StackWorld, call: str, about: str, bought: int
):
    throttled = warm.cloud.trouble(Trouble(call, Fault.THROTTLED, times=ATTEMPTS, about=about))

    assert len(story.buy(warm)) == bought
    failed = of(warm, "planner")[-1]
    assert throttled.left == 0
    assert failed.is_ok, "its messages must not come again: they would lock the group"
    assert "Throttled" in warm.looks()[-1]["trouble"]
    assert metrics(failed)["LookFailed"] == 1

    pass_the_lease(warm)
    assert len(story.buy(warm)) == 1
    assert warm.looks()[-1]["trouble"] == ""
    assert resumed(warm) is bool(bought)
    assert metrics(of(warm, "planner")[-1])["LookFailed"] == 0


def test_a_call_that_is_throttled_once_goes_unnoticed(warm: StackWorld):
    once = [
        warm.cloud.trouble(Trouble(call, fault))
        for call, fault in [
            ("dynamodb:GetItem", Fault.SERVER_ERROR),
            ("dynamodb:Query", Fault.LOST_REQUEST),
            ("dynamodb:TransactWriteItems", Fault.LOST_ANSWER),
            ("ec2:DescribeInstances", Fault.SERVER_ERROR),
            ("ec2:CreateFleet", Fault.LOST_ANSWER),
        ]
    ]

    assert len(story.buy(warm)) == 1
    assert [each.left for each in once] == [0] * len(once)
    assert warm.trouble() == []


@pytest.mark.parametrize(
    ("fault", "bought"),
    [(Fault.LOST_REQUEST, 0), (Fault.LOST_ANSWER, 1)],
    ids=["before EC2 has done it", "after EC2 has done it"],
)
def test_a_planner_out_of_time_in_create_fleet_buys_once_in_all(
    world: StackWorld, fault: Fault, bought: int
):
    shorten(world)
    hung = world.cloud.trouble(Trouble("ec2:CreateFleet", fault, wait_s=10 * TIMEOUT_S))

    assert len(story.buy(world)) == bought
    killed = [each.error for each in of(world, "planner") if each.error]
    assert killed == [f"timed out after {TIMEOUT_S} s"]
    assert hung.left == 0

    # Whoever looks before the lease is over leaves the launch alone, and buys nothing beside it.
    come_again(world)
    assert len(story.buy(world)) == bought
    assert not resumed(world)
    pass_the_lease(world)
    (node,) = story.buy(world)
    assert resumed(world)

    # The ledger knows it well enough to let it go again.
    story.let_go(world, [node])
    assert world.nodes() == []


def test_a_digest_that_s3_does_not_give_fails_the_look_and_buys_nothing(warm: StackWorld):
    warm.cloud.trouble(Trouble("s3:GetObject", Fault.SERVER_ERROR, ATTEMPTS, about="digest/"))

    assert story.buy(warm) == []
    assert "Throttled: InternalError" in warm.looks()[-1]["trouble"]
    assert of(warm, "planner")[-1].is_ok
    assert len(story.buy(warm)) == 1


def test_a_digest_of_rubbish_is_dropped_and_the_next_one_counts(warm: StackWorld):
    bus = warm.bus
    warm.cloud.observer("s3").put_object(Bucket=bus.bucket, Key=bus.digest_key, Body=b"?")
    warm.cloud.observer("sqs").send_message(
        QueueUrl=warm.queue_url("QueuesLooks"),
        MessageBody=json.dumps({"look": "test", "id": "1", "at": "now"}),
        MessageGroupId="stacked",
    )
    warm.router.settle()

    look = warm.looks()[-1]
    assert "dropped a digest that cannot be read" in look["rounds"][0]["notes"][0]
    assert (look["trouble"], of(warm, "planner")[-1].is_ok) == ("", True)
    assert len(story.buy(warm)) == 1


def test_a_release_that_sqs_does_not_take_goes_out_when_its_time_is_over(warm: StackWorld):
    nodes = story.buy(warm)
    idle = [make.node(name, idle_s=9999) for name in nodes]
    full = warm.cloud.trouble(Trouble("sqs:SendMessageBatch", Fault.THROTTLED, times=ATTEMPTS))

    warm.report(nodes=idle)
    assert full.left == 0
    assert "Throttled" in warm.looks()[-1]["trouble"]
    assert warm.orders() == []

    # It was noted before it was sent, so that no budget forgets one that SQS took after all.
    warm.report(nodes=idle)
    assert warm.orders() == []

    warm.router.advance_to(MORNING + timedelta(minutes=8))
    warm.report(nodes=idle)
    releases = [order.names for order in warm.orders() if order.kind is OrderKind.RELEASE]
    assert set(releases) == {tuple(nodes)}


def test_a_drain_that_sqs_does_not_take_goes_out_when_the_notice_comes_again(warm: StackWorld):
    (node,) = story.buy(warm)
    warm.report([make.job(1, on=[node])], [make.node(node, gpus_alloc=1, state="MIXED")])
    set_visibility(warm, "Interruptions", 1)
    warm.cloud.trouble(Trouble("sqs:SendMessageBatch", Fault.THROTTLED, times=ATTEMPTS))

    story.warn(warm, node)
    come_again(warm)

    assert [each.is_ok for each in of(warm, "interruption")] == [False, True]
    drains = [order for order in warm.orders() if order.kind is OrderKind.DRAIN]
    assert {order.names for order in drains} == {(node,)}


def test_a_notice_while_ec2_throttles_describe_drains_at_once_and_the_next_look_buys(
    warm: StackWorld,
):
    (node,) = story.buy(warm)
    at_work = [make.job(1, on=[node])], [make.node(node, gpus_alloc=1, state="MIXED")]
    warm.report(*at_work)
    throttled = warm.cloud.trouble(
        Trouble("ec2:DescribeInstances", Fault.THROTTLED, times=ATTEMPTS)
    )

    story.warn(warm, node)
    assert throttled.left == 0
    assert "Throttled" in warm.looks()[-1]["trouble"]
    assert {o.names for o in warm.orders() if o.kind is OrderKind.DRAIN} == {(node,)}
    assert warm.nodes() == [node]

    warm.report(*at_work)
    assert len(warm.nodes()) == 2


def test_a_notice_that_fails_for_good_lies_where_an_alarm_looks(warm: StackWorld):
    (node,) = story.buy(warm)
    set_visibility(warm, "Interruptions", 1)
    warm.cloud.trouble(Trouble("dynamodb:BatchGetItem", Fault.THROTTLED, times=1000))

    story.warn(warm, node)
    come_again(warm, 5)

    assert [each.is_ok for each in of(warm, "interruption")] == [False] * 5
    (body,) = warm.dead_letters("QueuesDead")
    assert json.loads(body)["detail"]["instance-id"] == node
    assert_rings(warm, "DeadNotEmpty", "QueuesDead")


def test_events_that_nobody_can_read_raise_an_alarm_and_lie_aside_at_last(warm: StackWorld):
    (node,) = story.buy(warm)
    set_visibility(warm, "Interruptions", 1)
    story.warn(warm, node)
    assert not is_raised_by(warm, "BadEvents", of(warm, "interruption")[-1])

    warm.put("aws.ec2", SPOT_DETAIL_TYPE, {"instance-id": "; reboot"})
    assert is_raised_by(warm, "BadEvents", of(warm, "interruption")[-1])

    come_again(warm, 5)
    (body,) = warm.dead_letters("QueuesDead")
    assert json.loads(body)["detail"] == {"instance-id": "; reboot"}


def test_a_look_that_nobody_can_read_lies_where_an_alarm_looks(warm: StackWorld):
    story.unreadable(warm)

    assert sorted(body[:8] for body in warm.dead_letters("DeadLooks"))[0] == "not JSON"
    assert_rings(warm, "DeadLooksNotEmpty", "DeadLooks")
    assert is_raised_by(warm, "BadEvents", of(warm, "planner")[-1])
    assert len(story.buy(warm)) == 1


def test_a_planner_that_never_starts_ends_in_the_dead_letters_of_looks(world: StackWorld):
    set_visibility(world, "QueuesLooks", 1)
    settings = world.router.deployed.function(FUNCTION.format("planner")).environment
    bucket, key = (dict(settings)[f"TIDEGATE_CLUSTER_{each}"] for each in ("BUCKET", "KEY"))
    world.cloud.observer("s3").delete_object(Bucket=bucket, Key=key)

    world.report([make.job(1)])
    come_again(world, 5)

    assert [each.is_ok for each in of(world, "planner")] == [False] * 5
    assert len(world.dead_letters("DeadLooks")) == 1
    assert_rings(world, "DeadLooksNotEmpty", "DeadLooks")
    assert alarmed_by(world, "PlannerErrors")["Dimensions"] == [
        {"Name": "FunctionName", "Value": FUNCTION.format("planner")}
    ]
