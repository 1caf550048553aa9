"""The router: what EventBridge, SQS event sources, Scheduler and Lambda do with a deployed stack.

Everything it does it reads from the deployed state. Synchronously, for tests:

    with Router(cloud) as router:
        cloud.client("events").put_events(Entries=[...])
        router.settle()
        router.advance_to(datetime(2026, 3, 2, 11, tzinfo=UTC))
        assert [each.function_name for each in router.invocations] == [...]

and live, between `start()` and `stop()`: threads of its own for each event source mapping, as
many as it may run invocations at once, so that interruptions never wait behind planning, and one
for each function that is invoked asynchronously.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from local.cloud import LocalCloud
from local.deploy import PLACE
from local.router.clock import VirtualClock
from local.router.delivery import Delivery, Undelivered, Work
from local.router.deployed import Deployed, Mapped, ScheduleSettings
from local.router.functions import OWN_CODE, Functions, Invocation, OnLog
from local.router.poller import Poller
from local.router.roles import Authorizer, Roles
from local.router.schedules import due
from local.shims import events
from local.shims.install import install_shims

TICK_S = 0.2
POLL_WAIT_S = 1
SETTLE_TIMEOUT_S = 60.0


class NotSettled(Exception):
    """The router was still busy when its time was over."""


@dataclass(slots=True)
class Router:
    """Routes for everything that is deployed in `cloud`.

    `repeat`: how often each event, message and schedule is delivered; AWS promises at least
    once. `authorizer`: the cloud's own unless given. `own_code`: what of a function's zip is
    run from the zip; everything else is imported from this interpreter's packages.
    """

    cloud: LocalCloud
    authorizer: Authorizer | None = None
    clock: VirtualClock = field(default_factory=VirtualClock)
    repeat: int = 1
    own_code: Sequence[str] = OWN_CODE
    on_log: OnLog | None = None
    functions: Functions = field(init=False)
    delivery: Delivery = field(init=False)
    poller: Poller = field(init=False)
    deployed: Deployed = field(init=False)
    _fired_until_s: float = field(init=False)
    _firing: threading.Lock = field(default_factory=threading.Lock)
    _work: dict[str, deque[Work]] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _busy: int = 0
    _activity: int = 0
    _idle_since: dict[str, int] = field(default_factory=dict)
    _threads: dict[str, threading.Thread] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _is_live: bool = False

    def __post_init__(self) -> None:
        install_shims()
        authorizer: Authorizer = self.authorizer or self.cloud.authorizer
        self.deployed = Deployed(PLACE)
        self._fired_until_s = self.clock.now_s()
        roles = Roles(self.cloud, authorizer)
        self.functions = Functions(
            cloud=self.cloud,
            deployed=self.deployed,
            roles=roles,
            clock=self.clock,
            own_code=self.own_code,
            on_log=self.on_log,
        )
        self.delivery = Delivery(
            deployed=self.deployed,
            authorizer=authorizer,
            functions=self.functions,
            clock=self.clock,
            enqueue=self._enqueue,
            repeat=self.repeat,
        )
        self.poller = Poller(self.deployed, roles, self.functions, self.repeat)
        events.attach(self.delivery)

    def __enter__(self) -> "Router":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def invocations(self) -> Sequence[Invocation]:
        """Everything that was invoked, in the order in which it ended."""
        return self.functions.invocations

    @property
    def undelivered(self) -> Sequence[Undelivered]:
        """What went to a dead-letter queue instead of its target, or was lost."""
        return self.delivery.undelivered

    @property
    def troubles(self) -> Sequence[str]:
        """Why queues could not be polled."""
        return self.poller.troubles

    def start(self) -> None:
        """Route from threads until `stop()`."""
        self._is_live = True
        self._thread("supervisor", self._supervise)

    def stop(self) -> None:
        """End the threads and the functions' processes; a running invocation is cut off."""
        self._stop.set()
        events.detach(self.delivery)
        self.functions.stop()
        with self._changed:
            self._changed.notify_all()
            threads = list(self._threads.values())
        for thread in threads:
            thread.join()
        self.functions.stop()

    def settle(self, timeout_s: float = SETTLE_TIMEOUT_S) -> None:
        """Until nothing is in flight, and no queue has a message that may be received now.

        Raises NotSettled. A message that waits for its visibility time-out is not waited for.
        """
        ends_at_s = time.monotonic() + timeout_s
        if self._is_live:
            self._wait_until_idle(ends_at_s)
            return
        while self._step():
            if time.monotonic() > ends_at_s:
                raise NotSettled(f"still busy after {timeout_s} s")

    def advance_to(self, when: datetime) -> list[str]:
        """Jump the clock to `when`, and fire every schedule due on the way, in order.

        Each is fired at its own time and settled before the next. Returns their ARNs.
        """
        with self._firing:
            fired = self._fire_until(when.timestamp(), self._settle_at)
            self.clock.jump_to(when)
        return fired

    def _settle_at(self, at_s: float) -> None:
        self.clock.jump_to(datetime.fromtimestamp(at_s, UTC))
        self.settle()

    def _fire_until(self, until_s: float, then: Callable[[float], None]) -> list[str]:
        """Fire what is due until then, with the clock put to each one's time before."""
        found: list[tuple[float, str, ScheduleSettings]] = []
        for schedule in self.deployed.schedules():
            for at_s in due(
                schedule.expression,
                schedule.zone,
                created_at_s=schedule.created_at_s,
                after_s=self._fired_until_s,
                until_s=until_s,
            ):
                found.append((at_s, schedule.arn, schedule))
        for at_s, _, schedule in sorted(found, key=lambda each: each[:2]):
            self.clock.jump_to(datetime.fromtimestamp(at_s, UTC))
            self._fired_until_s = at_s
            self.delivery.fire(schedule, at_s)
            then(at_s)
        self._fired_until_s = max(self._fired_until_s, until_s)
        return [arn for _, arn, _ in sorted(found, key=lambda each: each[:2])]

    def _enqueue(self, work: Work) -> None:
        with self._changed:
            self._activity += 1
            waiting = self._work.setdefault(work.function_arn, deque())
            waiting.append(work)
            self._changed.notify_all()
        if self._is_live:
            name = f"asynchronous {work.function_arn}"
            self._thread(name, lambda: self._serve(work.function_arn))

    def _step(self) -> bool:
        """Synchronously: one asynchronous invocation each, then one batch of each queue."""
        did = False
        for waiting in list(self._work.values()):
            if waiting:
                self.delivery.run(waiting.popleft())
                did = True
        for mapped in self.deployed.mappings():
            did = self.poller.poll(mapped, wait_s=0) or did
        return did

    def _supervise(self) -> None:
        """Fires schedules as the clock passes them, and keeps a poller for every mapping."""
        while not self._stop.wait(TICK_S):
            with self._firing:
                self._fire_until(self.clock.now_s(), lambda _: None)
            for name, _ in self._pollers():
                self._thread(f"poll {name}", self._poller_of(name))

    def _pollers(self) -> list[tuple[str, Mapped]]:
        """A name for each poller that the mappings need."""
        return [
            (f"{mapped.uuid} {number}", mapped)
            for mapped in self.deployed.mappings()
            for number in range(mapped.concurrency)
        ]

    def _poller_of(self, name: str) -> Callable[[], None]:
        return lambda: self._poll_until_gone(name)

    def _poll_until_gone(self, name: str) -> None:
        while not self._stop.is_set():
            mapped = dict(self._pollers()).get(name)
            if mapped is None:
                break
            began_at = self._activity
            if self.poller.poll(mapped, wait_s=POLL_WAIT_S):
                began_at = -1
            with self._changed:
                self._activity += began_at == -1
                self._idle_since[name] = began_at
                self._changed.notify_all()
        with self._changed:
            self._idle_since.pop(name, None)

    def _serve(self, function_arn: str) -> None:
        """Asynchronous invocations of one function, one after the other."""
        while not self._stop.is_set():
            with self._changed:
                if not self._work[function_arn]:
                    self._changed.wait(TICK_S)
                    continue
                work = self._work[function_arn].popleft()
                self._busy += 1
            try:
                self.delivery.run(work)
            finally:
                with self._changed:
                    self._busy -= 1
                    self._activity += 1
                    self._changed.notify_all()

    def _wait_until_idle(self, ends_at_s: float) -> None:
        """Every poller has come back empty from a poll that began after the last activity."""
        with self._changed:
            wanted = self._activity = self._activity + 1
            while not self._is_idle(wanted):
                left_s = ends_at_s - time.monotonic()
                if left_s <= 0:
                    raise NotSettled("still busy")
                self._changed.wait(min(left_s, TICK_S))
                wanted = max(wanted, self._activity)

    def _is_idle(self, wanted: int) -> bool:
        return (
            not self._busy
            and not any(self._work.values())
            and all(self._idle_since.get(name, -1) >= wanted for name, _ in self._pollers())
        )

    def _thread(self, name: str, target: Callable[[], None]) -> None:
        """A thread of that name, unless it runs already."""
        with self._changed:
            known = self._threads.get(name)
            if self._stop.is_set() or (known and known.is_alive()):
                return
            thread = threading.Thread(target=target, name=f"router: {name}", daemon=True)
            self._threads[name] = thread
            thread.start()
