"""What every `DeadLooks` promises: run on the simulated one and on the adapter against moto."""

from collections.abc import Callable

import pytest

from local.cloud import LocalCloud
from local.cloud_resources import CloudNames
from tidegate.adapters.dead_looks import SqsDeadLooks
from tidegate.ports.dead_looks import DeadLooks
from tidegate.sim.bus import SimDeadLooks

type Kept = Callable[[], list[tuple[str, str]]]


def sim() -> tuple[DeadLooks, Kept]:
    dead = SimDeadLooks()
    return dead, lambda: list(dead.kept.values())


def moto(cloud: LocalCloud, names: CloudNames) -> tuple[DeadLooks, Kept]:
    sqs, url = cloud.client("sqs"), names.dead_look_queue_url

    def kept() -> list[tuple[str, str]]:
        answer = sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["reason"]
        )
        return [
            (message["Body"], message["MessageAttributes"]["reason"]["StringValue"])
            for message in answer.get("Messages", ())
        ]

    return SqsDeadLooks(sqs, url, names.cluster), kept


@pytest.fixture(params=["sim", "moto"])
def bench(
    request: pytest.FixtureRequest, cloud: LocalCloud, names: CloudNames
) -> tuple[DeadLooks, Kept]:
    return sim() if request.param == "sim" else moto(cloud, names)


def test_a_body_is_kept_with_its_reason(bench: tuple[DeadLooks, Kept]) -> None:
    dead, kept = bench

    dead.keep("{not json", message_id="m-1", reason="it is not JSON")

    assert kept() == [("{not json", "it is not JSON")]


def test_equal_bodies_are_both_kept_and_a_repeated_message_once(
    bench: tuple[DeadLooks, Kept],
) -> None:
    dead, kept = bench

    for message_id in ("m-1", "m-2", "m-2"):
        dead.keep("{not json", message_id=message_id, reason="it is not JSON")

    assert len(kept()) == 2


@pytest.mark.parametrize(
    ("reason", "written"),
    [("", "no reason given"), ("a\x00b\nc", "a b c"), ("x" * 900, "x" * 500)],
)
def test_a_reason_that_sqs_would_refuse_is_made_to_fit(
    cloud: LocalCloud, names: CloudNames, reason: str, written: str
) -> None:
    dead, kept = moto(cloud, names)

    dead.keep("{not json", message_id="m-1", reason=reason)

    assert kept() == [("{not json", written)]
