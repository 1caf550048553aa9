"""The smallest Slurm and bus that the agent's own logic can be tried on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tidegate.agent.loop import Agent
from tidegate.agent.meter import Meter
from tidegate.agent.watch import Waker
from tidegate.core.interruption.heartbeat import Beat
from tidegate.core.model.digest import Digest
from tidegate.core.model.errors import SlurmUnavailable, Throttled
from tidegate.core.model.gpu_use import GpuUse
from tidegate.core.model.job_files import Progress
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.slurm import Job, Node, NodeState, Reading, SetBy, Shape
from tidegate.ports import ReceivedDigest, ReceivedOrder

NOW_S = 1_000.0


@dataclass(slots=True)
class FakeClock:
    now: float = NOW_S

    def now_s(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass(slots=True)
class FakeSlurm:
    """Does what it is told and writes it down.

    `before_read` and `after_read` may change the world; the latter is not in that reading.
    """

    nodes: dict[str, Node] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    calls: list[tuple[str, ...]] = field(default_factory=list)
    refuses: dict[str, str] = field(default_factory=dict)
    before_read: list[Callable[[], None]] = field(default_factory=list)
    after_read: list[Callable[[], None]] = field(default_factory=list)
    is_up: bool = True

    def read(self) -> Reading:
        if not self.is_up:
            raise SlurmUnavailable("connect failure")
        if self.before_read:
            self.before_read.pop(0)()
        found = Reading("22.05", tuple(self.jobs.values()), tuple(self.nodes.values()))
        if self.after_read:
            self.after_read.pop(0)()
        return found

    def drain(self, names: Sequence[str], reason: str) -> None:
        self.calls.append(("drain", *names))
        for name in names:
            self.put(name, "DRAIN", *self.nodes[name].state.words, reason=reason)

    def reboot(self, names: Sequence[str]) -> None:
        self.calls.append(("reboot", *names))

    def weigh(self, names: Sequence[str], weight: int) -> None:
        self.calls.append(("weigh", str(weight), *names))

    def down(self, names: Sequence[str], reason: str) -> None:
        self.calls.append(("down", *names))
        for name in names:
            self.put(name, "DOWN", reason=reason)
        for job in list(self.jobs.values()):
            if not set(names).isdisjoint(job.node_names):
                self.queue(job.job_id, "PENDING", is_requeueable=job.is_requeueable)

    def undrain(self, names: Sequence[str]) -> None:
        self.calls.append(("undrain", *names))
        for name in names:
            self.put(name, *(self.nodes[name].state.words - {"DRAIN"}))

    def delete(self, names: Sequence[str]) -> dict[str, str]:
        self.calls.append(("delete", *names))
        for name in names:
            if name not in self.refuses:
                del self.nodes[name]
        return {name: self.refuses[name] for name in names if name in self.refuses}

    def requeue(self, job_ids: Sequence[str]) -> dict[str, str]:
        self.calls.append(("requeue", *job_ids))
        return {name: self.refuses[name] for name in job_ids if name in self.refuses}

    def hold(self, job_ids: Sequence[str]) -> dict[str, str]:
        self.calls.append(("hold", *job_ids))
        return {name: self.refuses[name] for name in job_ids if name in self.refuses}

    def start(self, job_ids: Sequence[str]) -> None:
        self.calls.append(("start", *job_ids))

    def signal(self, job_ids: Sequence[str], signal: str) -> dict[str, str]:
        self.calls.append(("signal", signal, *job_ids))
        return {name: self.refuses[name] for name in job_ids if name in self.refuses}

    def constrain(self, job_ids: Sequence[str], constraint: str) -> dict[str, str]:
        self.calls.append(("constrain", constraint, *job_ids))
        asked = {each.partition("_")[0] for each in job_ids}
        return {each: why for each, why in self.refuses.items() if each.partition("_")[0] in asked}

    def scancel(self, job_ids: Sequence[str]) -> dict[str, str]:
        self.calls.append(("scancel", *job_ids))
        return {name: self.refuses[name] for name in job_ids if name in self.refuses}

    def tell(self, job_id: str, text: str) -> str:
        self.calls.append(("tell", job_id, text))
        return self.refuses.get(job_id, "")

    def comment(self, job_id: str, text: str) -> None:
        self.calls.append(("comment", job_id, text))

    def check(self, name: str, nodes: Sequence[str]) -> str:
        self.calls.append(("check", name, *nodes))
        return self.refuses.get(name, "")

    def poke(self, names: Sequence[str]) -> None:
        self.calls.append(("poke", *names))

    def put(self, name: str, *words: str, reason: str = "", set_by: SetBy = SetBy.UNKNOWN) -> None:
        """The node exists and is in this state."""
        state = NodeState(frozenset(words))
        known = self.nodes.get(name)
        self.nodes[name] = (
            replace(known, state=state, reason=reason or known.reason, set_by=set_by)
            if known
            else Node(name, state, 8, 1_000, 4, "t4", reason=reason, set_by=set_by)
        )

    def queue(self, job_id: str, state: str = "PENDING", **fields: object) -> None:
        """The job exists and is in this state."""
        job = Job(job_id, state, ("gpu",), 1, Shape(gpus=1), "ada")
        self.jobs[job_id] = replace(job, **fields)  # type: ignore[arg-type]

    def did(self, what: str) -> list[tuple[str, ...]]:
        return [call[1:] for call in self.calls if call[0] == what]


@dataclass(slots=True)
class FakeBus:
    """Keeps the digests; `orders` are handed out once per queue, by urgency."""

    digests: list[Digest] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    is_throttled: bool = False
    is_deaf: bool = False  # to acknowledgements
    on_put: Callable[[Digest], None] = lambda digest: None

    def put_digest(self, digest: Digest) -> None:
        if self.is_throttled:
            raise Throttled("slow down")
        self.digests.append(digest)
        self.on_put(digest)

    def newest_digest(self) -> ReceivedDigest | None:
        raise NotImplementedError

    def look(self, why: str) -> None:
        raise NotImplementedError

    def send_orders(self, orders: Sequence[Order]) -> None:
        self.orders += orders

    def receive_orders(self, *, urgent: bool, wait_s: int) -> tuple[ReceivedOrder, ...]:
        found = [order for order in self.orders if order.kind.is_urgent is urgent]
        self.orders = [order for order in self.orders if order.kind.is_urgent is not urgent]
        return tuple(ReceivedOrder(order, order.order_id) for order in found)

    def acknowledge(self, received: ReceivedOrder) -> None:
        if self.is_deaf:
            raise Throttled("slow down")
        self.acknowledged.append(received.handle)


def order(kind: OrderKind, *names: str, **fields: object) -> Order:
    """An order that is still good for a minute."""
    made = Order("o1", kind, names, NOW_S + 60)
    return replace(made, **fields)  # type: ignore[arg-type]


def agent_of(
    slurm: FakeSlurm,
    bus: FakeBus,
    clock: FakeClock,
    meter: Meter | None = None,
    beats: Callable[[Sequence[Job]], Mapping[str, Beat]] = lambda jobs: {},
    gpu_uses: Callable[[Sequence[Job]], Mapping[str, GpuUse]] = lambda jobs: {},
    progress: Callable[[Sequence[Job]], Mapping[str, Progress]] = lambda jobs: {},
    stopwatch: Callable[[], float] | None = None,
) -> Agent:
    return Agent(
        slurm=slurm,
        bus=bus,
        clock=clock,
        cluster="dev",
        head_instance_id="i-1",
        agent_started_at_s=NOW_S,
        sleep=clock.sleep,
        meter=meter,
        beats=beats,
        gpu_uses=gpu_uses,
        progress=progress,
        stopwatch=stopwatch,
    )


def tick_twice(agent: Agent, clock: FakeClock) -> None:
    """Two looks a second apart: what the first one sees begin is a second old at the other."""
    for _ in range(2):
        agent.tick()
        clock.now += 1


class NotingWaker(Waker):
    """Notes of every wait whether something woke it; else its time was out."""

    def __init__(self, log: Path) -> None:
        super().__init__(log)
        self.woken: list[bool] = []

    def wait(self, timeout_s: float) -> bool:
        self.woken.append(super().wait(timeout_s))
        return self.woken[-1]
