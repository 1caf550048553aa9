"""What every `Bus` promises: run on the simulated one and on AWS as moto plays it."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import pytest

from local.cloud import LocalCloud
from local.cloud_resources import CloudNames
from tests import make
from tidegate.adapters.bus import AwsBus
from tidegate.core.model.digest import Digest
from tidegate.core.model.errors import BadEvent
from tidegate.core.model.events import Look
from tidegate.core.model.orders import Order, OrderKind
from tidegate.ports import Bus, ReceivedOrder
from tidegate.sim.bus import SimBus
from tidegate.sim.clock import SimClock
from tidegate.wire.events import parse_event

# What is asked within it must be through by then, also on a busy machine.
VISIBILITY_S = 3


class Way(Protocol):
    """A `Bus` whose far ends the test can reach."""

    cluster: str

    @property
    def bus(self) -> Bus: ...

    def wait(self, seconds: float) -> None: ...

    def looks(self) -> list[str]: ...

    def spoil_digest(self) -> None: ...

    def send_rubbish(self) -> None:
        """Put a body on the urgent queue that no order encodes to."""
        ...

    def is_rubbish_left(self) -> bool: ...


class SimWay:
    cluster = "test"

    def __init__(self) -> None:
        self.clock = SimClock()
        self.bus = SimBus(self.clock, visibility_s=VISIBILITY_S)

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def looks(self) -> list[str]:
        return list(self.bus.take_looks())

    def spoil_digest(self) -> None:
        self.bus.spoil_digest()

    def send_rubbish(self) -> None:
        self.bus.urgent.send(None)

    def is_rubbish_left(self) -> bool:
        return any(message.order is None for message in self.bus.urgent.messages)


class MotoWay:
    def __init__(self, cloud: LocalCloud, names: CloudNames) -> None:
        self.cluster, self.names = names.cluster, names
        self.s3, self.sqs = cloud.client("s3"), cloud.client("sqs")
        for url in (names.urgent_queue_url, names.routine_queue_url):
            hidden = {"VisibilityTimeout": str(VISIBILITY_S)}
            self.sqs.set_queue_attributes(QueueUrl=url, Attributes=hidden)
        self.bus = AwsBus(
            self.s3,
            cloud.client("events"),
            self.sqs,
            cluster=names.cluster,
            bucket=names.bucket,
            event_bus=names.event_bus,
            urgent_queue_url=names.urgent_queue_url,
            routine_queue_url=names.routine_queue_url,
            look_queue_url=names.look_queue_url,
        )

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def looks(self) -> list[str]:
        url = self.names.look_queue_url
        got = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", ())
        events = [parse_event(message["Body"]) for message in got]
        return [event.why for event in events if isinstance(event, Look)]

    def spoil_digest(self) -> None:
        self.s3.put_object(Bucket=self.names.bucket, Key=self.bus.digest_key, Body=b"rubbish")

    def send_rubbish(self) -> None:
        self.sqs.send_message(QueueUrl=self.names.urgent_queue_url, MessageBody="rubbish")

    def is_rubbish_left(self) -> bool:
        url = self.names.urgent_queue_url
        got = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        return any(message["Body"] == "rubbish" for message in got.get("Messages", ()))


@pytest.fixture(params=["sim", "moto"])
def way(request: pytest.FixtureRequest) -> Way:
    if request.param == "sim":
        return SimWay()
    return MotoWay(request.getfixturevalue("cloud"), request.getfixturevalue("names"))


def order(number: int = 1, kind: OrderKind = OrderKind.DRAIN, *, delay_s: int = 0) -> Order:
    names = ("i-0b662ef9931388ba0",)
    return Order(f"o-{number}", kind, names, make.NOW_S, ("IDLE",), "why", delay_s)


def digest(way: Way, sequence: int) -> Digest:
    return replace(make.digest([make.job()], [make.node()], sequence=sequence), cluster=way.cluster)


def receive(way: Way, *, urgent: bool = True) -> tuple[ReceivedOrder, ...]:
    return way.bus.receive_orders(urgent=urgent, wait_s=0)


def orders(received: Sequence[ReceivedOrder]) -> list[Order]:
    return [one.order for one in received]


def test_there_is_no_digest_before_the_first(way: Way) -> None:
    assert way.bus.newest_digest() is None


def test_the_newest_digest_replaces_the_one_before(way: Way) -> None:
    for sequence in (1, 2):
        way.bus.put_digest(digest(way, sequence))

    received = way.bus.newest_digest()

    assert received
    assert received.digest == digest(way, 2)
    assert 0 <= received.age_s < 5


def test_the_age_of_a_digest_grows(way: Way) -> None:
    way.bus.put_digest(digest(way, 1))
    way.wait(2.1)

    received = way.bus.newest_digest()

    assert received
    assert 1 <= received.age_s < 10


def test_a_digest_that_nobody_can_read_is_a_bad_event(way: Way) -> None:
    way.bus.put_digest(digest(way, 1))
    way.spoil_digest()

    with pytest.raises(BadEvent):
        way.bus.newest_digest()


def test_a_digest_asks_for_a_look(way: Way) -> None:
    way.bus.put_digest(digest(way, 1))

    assert len(way.looks()) == 1


def test_looks_for_the_same_reason_are_all_heard(way: Way) -> None:
    way.bus.look("spot interruption")
    way.bus.look("spot interruption")

    assert way.looks() == ["spot interruption", "spot interruption"]


def test_orders_arrive_whole_on_the_queue_of_their_kind(way: Way) -> None:
    drain, release = order(1, OrderKind.DRAIN), order(2, OrderKind.RELEASE)

    way.bus.send_orders([drain, release])

    assert orders(receive(way, urgent=True)) == [drain]
    assert orders(receive(way, urgent=False)) == [release]


def test_more_orders_than_a_batch_holds_all_arrive(way: Way) -> None:
    sent = [order(number) for number in range(25)]
    way.bus.send_orders(sent)

    arrived: list[Order] = []
    while received := receive(way):
        arrived += orders(received)
        for one in received:
            way.bus.acknowledge(one)

    assert sorted(arrived, key=lambda one: int(one.order_id[2:])) == sent


def test_an_order_that_is_not_acknowledged_comes_again(way: Way) -> None:
    way.bus.send_orders([order()])
    assert orders(receive(way)) == [order()]
    assert receive(way) == ()

    way.wait(VISIBILITY_S + 0.2)

    assert orders(receive(way)) == [order()]


def test_an_acknowledged_order_does_not_come_again(way: Way) -> None:
    way.bus.send_orders([order()])
    (received,) = receive(way)

    way.bus.acknowledge(received)
    way.wait(VISIBILITY_S + 0.2)

    assert receive(way) == ()


def test_acknowledging_twice_is_no_error(way: Way) -> None:
    way.bus.send_orders([order()])
    (received,) = receive(way)

    way.bus.acknowledge(received)
    way.bus.acknowledge(received)


def test_a_delayed_order_is_not_seen_before_its_time(way: Way) -> None:
    late, soon = order(1, delay_s=4), order(2)
    way.bus.send_orders([late, soon])

    assert orders(receive(way)) == [soon]

    way.wait(4.2)
    assert late in orders(receive(way))


def test_an_order_that_nobody_can_read_is_dropped_and_the_rest_goes_on(way: Way) -> None:
    way.send_rubbish()
    way.bus.send_orders([order()])

    arrived = [*orders(receive(way)), *orders(receive(way))]
    way.wait(VISIBILITY_S + 0.2)

    assert arrived == [order()]
    assert not way.is_rubbish_left()


def test_an_order_about_slurms_own_words_is_dropped(way: Way) -> None:
    everything = replace(order(2), names=("ALL",))

    way.bus.send_orders([everything, order()])

    assert [*orders(receive(way)), *orders(receive(way))] == [order()]


def test_sending_no_orders_is_no_error(way: Way) -> None:
    way.bus.send_orders([])

    assert receive(way) == ()
