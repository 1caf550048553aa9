"""Notices on a real slurmctld with many slurmd: `python -m bench.interruption_real` (root).

From the event's arrival at the interruption function to the drained node and to the signal in
the job's script: our own code and Slurm's. The queues are in this process; EventBridge, SQS and
Lambda come on top on AWS, with Lambda's batching window of a second.
"""

import argparse
import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.figures import Figure, percentile, table
from tests.contracts.real_slurm import RealSlurm, eventually, why_not_here
from tests.make import cluster, record
from tidegate.adapters.clock import SystemClock
from tidegate.adapters.slurm_cli import SlurmCli
from tidegate.agent.loop import Agent
from tidegate.agent.run import Service
from tidegate.agent.watch import Waker
from tidegate.core.actions import Order
from tidegate.core.events import SpotInterruption
from tidegate.ports import ReceivedOrder
from tidegate.service.interruptions import Interruptions
from tidegate.sim.bus import SimBus
from tidegate.sim.ledger import SimLedger

SINGLES = 24
EVENTS_AT_ONCE = 10
FUNCTIONS = 2
POLL_S = 0.01
SCRIPT = "trap 'date +%s.%N > {file}' USR1; for i in $(seq 6000); do sleep 0.05; done"


@dataclass(slots=True)
class LiveBus(SimBus):
    """The simulated bus in real time, for several threads."""

    lock: threading.RLock = field(default_factory=threading.RLock)

    def send_orders(self, orders: Sequence[Order]) -> None:
        with self.lock:
            SimBus.send_orders(self, orders)

    def receive_orders(self, *, urgent: bool, wait_s: int) -> tuple[ReceivedOrder, ...]:
        until_s = time.monotonic() + wait_s
        while True:
            with self.lock:
                found = SimBus.receive_orders(self, urgent=urgent, wait_s=0)
            if found or time.monotonic() >= until_s:
                return found
            time.sleep(POLL_S)

    def acknowledge(self, received: ReceivedOrder) -> None:
        with self.lock:
            SimBus.acknowledge(self, received)


@dataclass(slots=True)
class TimedSlurm:
    """Slurm's commands, with when each ended, how long it took and how many it named."""

    slurm: SlurmCli
    drained_at_s: dict[str, float] = field(default_factory=dict)
    commands: list[tuple[str, int, float]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        command = getattr(self.slurm, name)

        def timed(*given: Any) -> Any:
            began_s = time.monotonic()
            try:
                return command(*given)
            finally:
                count = len(given[0]) if given else 0
                self.commands.append((name, count, time.monotonic() - began_s))
                if name == "drain":
                    self.drained_at_s |= dict.fromkeys(given[0], time.time())

        return timed


@dataclass(slots=True)
class Bench:
    """A cluster of real nodes with a job each, the agent, and the interruption function."""

    slurm: RealSlurm
    timed: TimedSlurm
    names: list[str]
    function: Interruptions

    def notes(self, name: str) -> Path:
        return self.slurm.folder / "out" / name

    def notify(self, names: Sequence[str]) -> float:
        """The function's run on these notices; when it began."""
        at_s = time.time()
        self.function.handle([SpotInterruption(name, at_s) for name in names])
        return at_s

    def drained_s(self, began_at_s: dict[str, float]) -> list[float]:
        at_s = self.timed.drained_at_s
        eventually("all drained", lambda: at_s.keys() >= began_at_s.keys(), 60.0)
        return [at_s[name] - began_at_s[name] for name in began_at_s]

    def signalled_s(self, began_at_s: dict[str, float]) -> list[float]:
        def read(name: str) -> str:
            return self.notes(name).read_text() if self.notes(name).exists() else ""

        eventually("all signalled", lambda: all(read(name) for name in began_at_s), 60.0)
        return [float(read(name)) - began_at_s[name] for name in began_at_s]


@contextmanager
def benched(num_nodes: int) -> Iterator[Bench]:
    with TemporaryDirectory(prefix="tg", dir="/tmp") as folder, RealSlurm(Path(folder)) as slurm:
        names = [f"i-{number:017x}" for number in range(1, num_nodes + 1)]
        for chunk in itertools.batched(names, 8, strict=False):
            slurm.join(*chunk)
        clock = SystemClock()
        bus, ledger = LiveBus(clock), SimLedger(clock)
        ledger.all_nodes = {name: record(name) for name in names}
        timed = TimedSlurm(slurm.port)
        bench = Bench(slurm, timed, names, Interruptions(cluster(), ledger, bus, clock))
        for name in names:
            options = ("-w", name, "--gres=gpu:t4:1", "--comment=tidegate:ckpt=USR1@90")
            slurm.submit(*options, script=SCRIPT.format(file=bench.notes(name)))
        slurm.port.poke(names)
        running = eventually("all run", lambda: _running(slurm) == num_nodes, 90.0)
        assert running
        with _agent(timed, bus, clock, slurm.log):
            eventually("a digest", lambda: bus.digest is not None)
            time.sleep(1)
            yield bench


def _running(slurm: RealSlurm) -> int:
    return sum(job.is_running for job in slurm.port.read().jobs)


@contextmanager
def _agent(timed: TimedSlurm, bus: LiveBus, clock: SystemClock, log: Path) -> Iterator[None]:
    agent = Agent(
        slurm=timed,
        bus=bus,
        clock=clock,
        cluster="bench",
        head_instance_id="i-head",
        agent_started_at_s=clock.now_s(),
    )
    with Waker(log) as waker:
        service = Service(agent, bus, waker)
        thread = threading.Thread(target=service.run)
        thread.start()
        try:
            yield
        finally:
            service.stop()
            thread.join(30)


def singles(bench: Bench) -> list[Figure]:
    """One notice after the other."""
    began_at_s: dict[str, float] = {}
    for name in bench.names[:SINGLES]:
        began_at_s[name] = bench.notify([name])
        time.sleep(1.5)
    drained_s, signalled_s = bench.drained_s(began_at_s), bench.signalled_s(began_at_s)
    return [
        Figure("notice to drained, p95", percentile(drained_s, 95), "s", 1.5),
        Figure("notice to signal in the script, p95", percentile(signalled_s, 95), "s", 2.0),
    ]


def storm(bench: Bench) -> list[Figure]:
    """All nodes at once; those that were signalled before are not again."""
    bench.timed.slurm.undrain(bench.names)
    bench.timed.drained_at_s.clear()
    bench.timed.commands.clear()
    chunks = [list(chunk) for chunk in itertools.batched(bench.names, EVENTS_AT_ONCE, strict=False)]
    arrived_at_s = time.time()
    with ThreadPoolExecutor(FUNCTIONS) as functions:
        list(functions.map(bench.notify, chunks))
    began_at_s = dict.fromkeys(bench.names, arrived_at_s)
    drained_s = bench.drained_s(began_at_s)
    signalled_s = bench.signalled_s(dict.fromkeys(bench.names[SINGLES:], arrived_at_s))
    counts = {kind: [n for name, n, _ in bench.timed.commands if name == kind] for kind in KINDS}
    for kind, found in counts.items():
        print(f"  storm: {kind} commands for so many names: {found}")
    of = f"storm of {len(bench.names)}"
    return [
        Figure(f"{of}, last drained", max(drained_s), "s", 20.0),
        Figure(f"{of}, last signal in its script", max(signalled_s, default=0.0), "s", 20.0),
    ]


KINDS = ("drain", "signal")


def costs(bench: Bench) -> list[Figure]:
    """What the simulated storm takes for Slurm's costs."""
    took = {kind: [s for name, _, s in bench.timed.commands if name == kind] for kind in ("read",)}
    return [Figure(f"read of {len(bench.names)} nodes, median", percentile(took["read"], 50), "s")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=64)
    asked = parser.parse_args()
    if reason := why_not_here():
        raise SystemExit(reason)
    with benched(max(asked.nodes, SINGLES)) as bench:
        found = [*singles(bench), *storm(bench)]
        found += costs(bench)
    print(table(found))
    raise SystemExit(not all(each.holds for each in found))


if __name__ == "__main__":
    main()
