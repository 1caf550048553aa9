"""The agent's threads: orders are acknowledged when carried out, and a stop is clean."""

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from tests.agent.fakes import FakeBus, NotingWaker, agent_of, order
from tidegate.agent.run import Service, arriving
from tidegate.core.model.orders import OrderKind
from tidegate.ports import ReceivedOrder


@dataclass(slots=True)
class PollingBus(FakeBus):
    """A long poll that is over soon, and hands out so many orders."""

    hands_out: int = 1_000

    def receive_orders(self, *, urgent: bool, wait_s: int) -> tuple[ReceivedOrder, ...]:
        time.sleep(0.01 if wait_s else 0)
        found = FakeBus.receive_orders(self, urgent=urgent, wait_s=wait_s)
        self.orders += [one.order for one in found[self.hands_out :]]
        return found[: self.hands_out]


def eventually(what, ask, patience_s=60.0):
    until_s = time.monotonic() + patience_s
    while not ask():
        assert time.monotonic() < until_s, what
        time.sleep(0.01)


@pytest.fixture
def bus():
    return PollingBus()


@contextmanager
def running(slurm, bus, clock, tmp_path):
    agent = agent_of(slurm, bus, clock)
    with NotingWaker(tmp_path / "slurmctld.log") as waker:
        made = Service(agent, bus, waker)
        thread = threading.Thread(target=made.run)
        thread.start()
        yield made
        made.stop()
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture
def service(slurm, bus, clock, tmp_path):
    with running(slurm, bus, clock, tmp_path) as made:
        yield made


def test_an_order_is_carried_out_acknowledged_and_reported(service, slurm, bus):
    slurm.put("n1", "IDLE")
    bus.orders.append(order(OrderKind.DRAIN, "n1"))

    eventually("acknowledged", lambda: bus.acknowledged == ["o1"])
    eventually("reported", lambda: bus.digests and bus.digests[-1].results)

    assert slurm.did("drain") == [("n1",)]


def test_what_was_done_is_told_also_while_the_queue_hears_no_acknowledgement(service, slurm, bus):
    slurm.put("n1", "IDLE")
    bus.is_deaf = True
    bus.orders = [order(OrderKind.DRAIN, "n1")]

    eventually("told", lambda: bus.digests and bus.digests[-1].results)

    assert False not in service.waker.woken, "nobody waited for the slow poll"


def test_an_order_that_slurm_did_not_hear_is_not_acknowledged(service, slurm, bus, caplog):
    slurm.is_up = False
    bus.orders.append(order(OrderKind.DRAIN, "n1"))

    eventually("said", lambda: "An order has to wait" in caplog.text)

    assert bus.acknowledged == []


def test_a_change_of_the_log_is_noticed_at_once(service, slurm, bus, tmp_path):
    eventually("first digest", lambda: bus.digests)
    slurm.queue("1")

    (tmp_path / "slurmctld.log").write_text("sched: submitted\n")

    eventually("published", lambda: bus.digests and bus.digests[-1].reading.jobs)
    assert service.waker.woken[-1], "not the slow poll"


def test_a_storm_of_drains_is_a_few_commands(slurm, bus, clock, tmp_path):
    """What one receive hands out is not all that waits; the rest comes along."""
    names = [f"n{number}" for number in range(60)]
    for name in names:
        slurm.put(name, "IDLE")
    bus.orders += [order(OrderKind.DRAIN, name, order_id=name) for name in names]
    bus.hands_out = 10

    with running(slurm, bus, clock, tmp_path):
        eventually("acknowledged", lambda: len(bus.acknowledged) == 60)

    assert slurm.did("drain") == [tuple(names)]


def test_a_drain_that_comes_meanwhile_goes_before_the_signals_that_wait():
    bus = PollingBus()
    signals = [order(OrderKind.SIGNAL, *map(str, range(200)), text=f"S{n}") for n in range(3)]
    bus.orders += [replace(one, order_id=f"o{n}") for n, one in enumerate(signals)]
    seen = []

    for batch in arriving(bus, urgent=True, wait_s=0):
        seen += [one.order.kind.value for one in batch]
        if len(seen) == 1:
            bus.orders.append(order(OrderKind.DRAIN, "n1", order_id="drain"))

    assert seen == ["signal", "drain", "signal", "signal"]
