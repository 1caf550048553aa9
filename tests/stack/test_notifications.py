"""The deployed planner tells people under its own role, each cause once."""

import json
from typing import Any

from local.stack_world import StackWorld
from local.trouble import Fault, Trouble
from tests import make
from tests.core.test_idle_gpus import idle
from tidegate.core.model.slurm import Job

WAIT_S = 3 * 3600.0


def subscribed(world: StackWorld) -> Any:
    """What hears all that the stack's topic says from now on."""
    sqs, sns = world.cloud.observer("sqs"), world.cloud.observer("sns")
    url = sqs.create_queue(QueueName="heard")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    topic = world.physical("AWS::SNS::Topic")
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn["QueueArn"])

    def heard() -> list[tuple[str, list[str]]]:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        said = []
        for each in answer.get("Messages", ()):
            sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
            message = json.loads(json.loads(each["Body"])["Message"])
            said.append((message["code"], [one["cause"] for one in message["notices"]]))
        return said

    return heard


def long(number: int) -> Job:
    """For which no pool has a node."""
    return make.job(number, gpus=64, begins_at_s=make.NOW_S - WAIT_S)


def test_a_long_wait_is_told_once_also_where_sns_fails_at_first(world: StackWorld) -> None:
    heard = subscribed(world)
    hung = world.cloud.trouble(Trouble("sns:Publish", Fault.THROTTLED, times=100))

    world.report([long(1)])
    assert heard() == []

    hung.left = 0
    world.report([long(1)])
    world.report([long(1), long(2)])
    world.look()

    assert heard() == [("job-waits", ["1"]), ("job-waits", ["2"])]


def test_the_owner_of_idle_gpus_hears_of_it_under_the_planner_s_own_role(world: StackWorld) -> None:
    heard = subscribed(world)
    ses = world.cloud.observer("ses")
    before = ses.get_send_quota()["SentLast24Hours"]
    ses.verify_email_identity(EmailAddress="tidegate@example.org")

    world.report([idle()], [make.node("i-9", state="MIXED+DYNAMIC_NORM", gpus_alloc=1)])
    world.look()

    assert heard() == [("gpus-idle", ["9/0"])]
    assert ses.get_send_quota()["SentLast24Hours"] == before + 1
