"""The agent's threads: one that looks at Slurm, and one for each queue of orders."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tidegate.agent import gpu_use, hand_in, heartbeats, idle_time, lost_work
from tidegate.agent.gpu_use import GpuUses
from tidegate.agent.hand_in import HandIn
from tidegate.agent.heartbeats import Heartbeats
from tidegate.agent.idle_time import IdleTimes
from tidegate.agent.loop import Agent
from tidegate.agent.lost_work import LostWorks
from tidegate.agent.metrics import WRITE_EVERY_S, MetricsFolder
from tidegate.agent.notes import Notes
from tidegate.agent.orders import batches
from tidegate.agent.watch import Waker
from tidegate.core.model.errors import SlurmUnavailable, TidegateError
from tidegate.ports import Bus, ReceivedOrder

# slurmctld logs a submission a little before squeue shows it, and a batch of sbatch calls
# makes one digest instead of many.
SETTLE_S = 0.2
# At most one digest a second.
MIN_PERIOD_S = 1.0
# No more than a fifth of the time goes into reading a large queue.
READ_SHARE = 5.0
POLL_S = 10.0
SETTLING_POLL_S = 1.0
LONG_POLL_S = 20
# What SQS hands out at most; more is waiting then. The visibility time bounds what is in hand.
FULL_RECEIVE = 10
AT_ONCE_MAX = 100
RETRY_S = 5.0
STOP_PATIENCE_S = 15.0
NOTES_EVERY_S = 1.0

logger = logging.getLogger(__name__)


def arriving(bus: Bus, *, urgent: bool, wait_s: int) -> Iterator[list[ReceivedOrder]]:
    """What is in the queue, batch by batch, until it is empty. Errors: those of the bus.

    In a storm more arrives while a batch is carried out: a new drain goes before old signals.
    """
    waiting = _received(bus, urgent=urgent, wait_s=wait_s)
    while waiting:
        batch = batches(waiting, lambda one: one.order)[0]
        yield batch
        done = {received.handle for received in batch}
        waiting = [received for received in waiting if received.handle not in done]
        waiting += _received(bus, urgent=urgent, wait_s=0) if urgent else []


def _received(bus: Bus, *, urgent: bool, wait_s: int) -> list[ReceivedOrder]:
    received = list(bus.receive_orders(urgent=urgent, wait_s=wait_s))
    more = received
    while urgent and len(more) >= FULL_RECEIVE and len(received) < AT_ONCE_MAX:
        more = list(bus.receive_orders(urgent=urgent, wait_s=0))
        received += more
    return received


@dataclass(slots=True)
class Service:
    """Runs until `stop`. `every_poll` is called now and then by the looking thread.

    `notes`: None: no notes are written on jobs. `metrics`: None: no metrics are written.
    `heartbeats`, `gpu_uses`: None: nobody looks at any. `hand_in`: None: no report is made.
    `idle_times`, `lost_works`: None: what idle nodes are for, what requeued jobs lose is not
    written down.
    """

    agent: Agent
    bus: Bus
    waker: Waker
    every_poll: Callable[[], None] = lambda: None
    notes: Notes | None = None
    metrics: MetricsFolder | None = None
    heartbeats: Heartbeats | None = None
    gpu_uses: GpuUses | None = None
    hand_in: HandIn | None = None
    idle_times: IdleTimes | None = None
    lost_works: LostWorks | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _has_lost_thread: bool = False
    _has_trouble: dict[bool, bool] = field(default_factory=dict)
    _in_hand: threading.Lock = field(default_factory=threading.Lock)
    _num_in_hand: int = 0

    def stop(self) -> None:
        """Finish the orders in hand and return from `run`; safe in a signal handler."""
        self._stopping.set()
        self.waker.wake()

    def run(self) -> None:
        """Look until stopped."""
        for urgent in (True, False):
            name = "urgent orders" if urgent else "routine orders"
            # Daemons: a long poll takes up to 20 s to notice that we stop, and loses nothing.
            threading.Thread(
                target=self._take_orders, args=(urgent,), name=name, daemon=True
            ).start()
        if self.notes:
            threading.Thread(
                target=self._write_notes, args=(self.notes,), name="notes", daemon=True
            ).start()
        if self.metrics:
            threading.Thread(
                target=self._write_metrics, args=(self.metrics,), name="metrics", daemon=True
            ).start()
        for name, asked, every_s in (
            ("heartbeats", self.heartbeats, heartbeats.EVERY_S),
            ("GPU use", self.gpu_uses, gpu_use.EVERY_S),
            ("hand-in", self.hand_in, hand_in.EVERY_S),
            ("idle time", self.idle_times, idle_time.EVERY_S),
            ("lost work", self.lost_works, lost_work.EVERY_S),
        ):
            if asked:
                threading.Thread(
                    target=self._repeat, args=(asked.step, every_s), name=name, daemon=True
                ).start()
        while not self._stopping.is_set():
            self._look()
        self._wait_for_orders()
        assert not self._has_lost_thread, "a thread of orders died; its traceback is above"

    def _look(self) -> None:
        """One look, then wait for the next: a change of Slurm's log, or the slow poll."""
        began_s = time.monotonic()
        self.waker.clear()
        has_published = self.agent.tick() is not None
        self.every_poll()
        took_s = time.monotonic() - began_s
        is_settling = self.agent.is_settling
        # A slow read means a large queue, unless Slurm is silent: its return must be noticed.
        rest_s = 0.0 if is_settling else min(took_s * (READ_SHARE - 1), POLL_S)
        self._stopping.wait(max(rest_s, MIN_PERIOD_S - took_s if has_published else 0.0))
        if self.waker.wait(SETTLING_POLL_S if is_settling else POLL_S):
            self._stopping.wait(SETTLE_S)

    def _write_notes(self, notes: Notes) -> None:
        while not self._stopping.wait(NOTES_EVERY_S):
            notes.step()

    def _write_metrics(self, metrics: MetricsFolder) -> None:
        """A thread of its own: a disk that hangs keeps nobody else waiting."""
        metrics.write()
        while not self._stopping.wait(WRITE_EVERY_S):
            metrics.write()

    def _repeat(self, step: Callable[[], None], every_s: float) -> None:
        while not self._stopping.wait(every_s):
            step()

    def _take_orders(self, urgent: bool) -> None:
        try:
            while not self._stopping.is_set():
                self._take_batch(urgent)
        finally:
            # A thread that dies alone would leave an agent that looks alive and obeys nothing.
            if not self._stopping.is_set():
                self._has_lost_thread = True
                self.stop()

    def _take_batch(self, urgent: bool) -> None:
        try:
            for batch in arriving(self.bus, urgent=urgent, wait_s=LONG_POLL_S):
                if self._stopping.is_set():
                    return
                self._carry_out(batch)
        except TidegateError as error:
            if not self._stopping.is_set():
                self._say_once(urgent, error)
                self._stopping.wait(RETRY_S)
            return
        if self._has_trouble.pop(urgent, None):
            logger.info("Orders arrive again.")

    def _say_once(self, urgent: bool, error: TidegateError) -> None:
        """Tell the first failure of a row; the order is not acknowledged, so it comes again."""
        if not self._has_trouble.get(urgent):
            what = (
                "An order has to wait, Slurm does not answer"
                if isinstance(error, SlurmUnavailable)
                else "Orders cannot be received, trying again"
            )
            logger.warning("%s: %s", what, error)
        self._has_trouble[urgent] = True

    def _carry_out(self, batch: Sequence[ReceivedOrder]) -> None:
        with self._in_hand:
            self._num_in_hand += 1
        try:
            self.agent.on_orders([received.order for received in batch])
            # First: what was done is told however long the queue takes.
            self.waker.wake()
            for received in batch:
                self.bus.acknowledge(received)
        finally:
            with self._in_hand:
                self._num_in_hand -= 1

    def _wait_for_orders(self) -> None:
        until_s = time.monotonic() + STOP_PATIENCE_S
        while self._num_in_hand and time.monotonic() < until_s:
            time.sleep(0.05)
