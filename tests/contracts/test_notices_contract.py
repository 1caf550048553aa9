"""What every `Notices` promises: run on the simulated one and on the adapter against moto."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from local.cloud import LocalCloud
from local.cloud_resources import CloudNames
from tests.make import NOW_S
from tidegate.adapters.notices import SnsNotices
from tidegate.core.model.notice import Mail, MailEnd, Message, Notice, NoticeCode, Told
from tidegate.ports import Notices
from tidegate.sim.notices import SimNotices

type Bench = tuple[Notices, Callable[[], list[str]]]
MESSAGE = Message(
    "dev",
    NoticeCode.JOB_WAITS,
    NOW_S,
    (Notice(NoticeCode.JOB_WAITS, "7", "job 7 of ada has waited for 2.0 h: no pool has 64 GPUs"),),
)


def sim() -> Bench:
    notices = SimNotices()
    return notices, lambda: [each.code for each in notices.sent]


def moto(cloud: LocalCloud, names: CloudNames) -> Bench:
    sns, sqs = cloud.client("sns"), cloud.client("sqs")
    topic = sns.create_topic(Name=names.cluster)["TopicArn"]
    url = sqs.create_queue(QueueName=f"{names.cluster}-heard")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn["QueueArn"])

    def heard() -> list[str]:
        answer: Any = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        bodies = [json.loads(each["Body"]) for each in answer.get("Messages", ())]
        codes = [json.loads(each["Message"])["code"] for each in bodies]
        assert codes == [each["MessageAttributes"]["code"]["Value"] for each in bodies]
        return codes

    return SnsNotices(cloud.client("dynamodb"), sns, names.table, topic), heard


@pytest.fixture(params=["sim", "moto"])
def bench(request: pytest.FixtureRequest) -> Bench:
    if request.param == "sim":
        return sim()
    return moto(request.getfixturevalue("cloud"), request.getfixturevalue("names"))


def test_nobody_was_told_of_anything_before_the_first_time(bench: Bench) -> None:
    notices, heard = bench

    assert (notices.told(), heard()) == (Told(), [])


def test_what_is_noted_stands_instead_of_what_was(bench: Bench) -> None:
    notices, _ = bench

    notices.note(Told({"job-waits/7": NOW_S, "block-ends/cr-1": NOW_S}))
    mails = {f"own-gpus-idle/7/{n}": Mail(end, NOW_S) for n, end in enumerate(MailEnd)}
    notices.note(Told({"job-waits/8_[1-9]": NOW_S + 0.25}, mails))

    assert notices.told() == Told({"job-waits/8_[1-9]": NOW_S + 0.25}, mails)


def test_a_message_reaches_who_has_subscribed(bench: Bench) -> None:
    notices, heard = bench

    notices.publish(MESSAGE)

    assert heard() == ["job-waits"]


def test_the_most_that_is_told_of_fits_in_a_record(cloud: LocalCloud, names: CloudNames) -> None:
    notices, _ = moto(cloud, names)
    most = Told({f"job-waits/{10**7 + number}_[0-9999]": NOW_S for number in range(4000)})

    notices.note(most)

    assert notices.told() == most


def test_a_record_of_another_version_is_as_none(cloud: LocalCloud, names: CloudNames) -> None:
    notices, _ = moto(cloud, names)
    cloud.client("dynamodb").put_item(
        TableName=names.table,
        Item={"pk": {"S": "ledger"}, "sk": {"S": "told"}, "body": {"S": '{"newer": 1}'}},
    )

    assert notices.told() == Told()
