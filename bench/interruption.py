"""A storm of 1,000 spot notices in 10 s, in virtual time: part of `make bench`.

The real interruption service and the real agent on the simulated Slurm, bus and ledger. What
they wait for costs what it cost on real ones: Slurm's commands as `bench.interruption_real`
measured them, AWS's calls as assumed below. Two runs of the function at once, as deployed.
"""

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.figures import Figure, percentile
from bench.small import T4, cluster
from tidegate.agent.loop import Agent
from tidegate.agent.run import arriving
from tidegate.core.model.ec2 import Market
from tidegate.core.model.events import SpotInterruption
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.slurm import Shape
from tidegate.ports import Clock
from tidegate.service.interruptions import Interruptions
from tidegate.sim.bus import SimBus
from tidegate.sim.clock import SimClock
from tidegate.sim.ledger import SimLedger
from tidegate.sim.slurm import SimSlurm
from tidegate.sim.slurm_parts import SimNode, Submit

NOTICES, WITHIN_S = 1_000, 10.0
# What the template deploys: messages in a run, Lambda's window for them, runs at once.
BATCH, WINDOW_S, FUNCTIONS = 100, 1.0, 2
# AWS, assumed: EventBridge to SQS to Lambda; one call; a cold start, for the first two runs.
DELIVERY_S, CALL_S, COLD_START_S = 0.5, 0.01, 2.0
DECODE_S = 0.4  # a digest of 1,000 nodes and jobs on a third of a processor
# Slurm 22.05 on two processors: seconds of a command, and of each name in it.
COSTS_S = {
    "read": (0.04, 0.001),
    "drain": (0.009, 0.0004),
    "signal": (0.02, 0.013),
    "requeue": (0.01, 0.009),
}
RECEIVE_S = 0.02
NAMES_PER_COMMAND = 50


@dataclass(slots=True)
class CostlySlurm:
    """The simulated Slurm; each command takes its time of the agent's, by `wait`."""

    slurm: SimSlurm
    clock: Clock
    wait: Callable[[float], None]
    done: list[tuple[str, tuple[str, ...], float]] = field(default_factory=list)

    def __getattr__(self, kind: str) -> Any:
        command = getattr(self.slurm, kind)

        def costly(*given: Any) -> Any:
            names = tuple(given[0]) if given else ()
            fixed_s, each_s = COSTS_S.get(kind, (0.01, 0.0))
            self.wait(fixed_s + each_s * (len(names) or NOTICES))
            self.done.append((kind, names, self.clock.now_s()))
            return command(*given)

        return costly


class Storm:
    """A cluster of 1,000 busy nodes, the agent and two interruption functions.

    Each has a clock of its own that runs ahead while it works; `_due` holds who goes on when.
    """

    def __init__(self) -> None:
        self.clock = SimClock()
        self.head_clock = SimClock(self.clock.now_s())
        of = cluster(T4, markets=(Market.SPOT,))
        ((_, offering),) = of.pools[0].offerings()
        self.bus, self.ledger = SimBus(self.clock), SimLedger(self.clock)
        slurm = SimSlurm(of, self.clock)
        self.names = [f"i-{number:017x}" for number in range(NOTICES)]
        for name in self.names:
            features = of.pools[0].features(T4.name, offering.market)
            node = SimNode(name, T4.vcpus, T4.slurm_memory_mib, 1, "t4", features)
            slurm.register(node)
            slurm.submit(Submit("ada", Shape(1, "t4"), 1e6, comment="tidegate:ckpt=USR1@20"))
        self.ledger.all_nodes = {
            name: NodeRecord(
                *(name, "l-0", of.pools[0].name, offering),
                launched_at_s=self.clock.now_s(),
                usd_per_hour=of.prices[offering],
                phase=Phase.JOINED,
            )
            for name in self.names
        }
        self.slurm = CostlySlurm(slurm, self.head_clock, self.head_clock.advance)
        self.agent = Agent(
            slurm=self.slurm,
            bus=self.bus,
            clock=self.head_clock,
            cluster="bench",
            head_instance_id="i-head",
            agent_started_at_s=self.clock.now_s(),
            sleep=self.head_clock.advance,
        )
        self.agent.tick()
        self.slurm.done.clear()
        self.function = Interruptions(of, self.ledger, self.bus, self.clock)
        self.began_s = self.clock.now_s()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._waiting: list[tuple[float, str]] = []
        self._batches = arriving(self.bus, urgent=True, wait_s=0)

    def run(self) -> dict[str, float]:
        """When each notice came, by node."""
        came_at_s = {
            name: self.began_s + number * WITHIN_S / NOTICES
            for number, name in enumerate(self.names)
        }
        self._waiting = [(at_s + DELIVERY_S, name) for name, at_s in came_at_s.items()]
        for _ in range(FUNCTIONS):
            self._at(self.began_s + DELIVERY_S + WINDOW_S + COLD_START_S, self._invoke)
        self._at(self.began_s, self._receive)
        while self._due:
            at_s, _, go_on = heapq.heappop(self._due)
            self.clock.set(max(at_s, self.clock.now_s()))
            go_on()
        return came_at_s

    def _at(self, at_s: float, go_on: Callable[[], None]) -> None:
        heapq.heappush(self._due, (at_s, next(self._numbers), go_on))

    def _invoke(self) -> None:
        """One run of the function; the next begins when it has ended and something waits."""
        now_s = self.clock.now_s()
        due = [each for each in self._waiting if each[0] <= now_s][:BATCH]
        if not due:
            if self._waiting:
                self._at(self._waiting[0][0] + WINDOW_S, self._invoke)
            return
        self._waiting = self._waiting[len(due) :]
        # Orders leave after the records are read; marks are one call per node.
        self._at(now_s + 2 * CALL_S, lambda: self._handle([name for _, name in due]))
        self._at(now_s + (5 + len(due)) * CALL_S + DECODE_S, self._invoke)

    def _handle(self, names: Sequence[str]) -> None:
        at_s = self.clock.now_s()
        self.function.handle([SpotInterruption(name, at_s) for name in names])

    def _receive(self) -> None:
        """The agent goes on with what its queue holds by now, one batch at a time."""
        now_s = self.clock.now_s()
        self.head_clock.set(max(now_s, self.head_clock.now_s()) + RECEIVE_S)
        batch = next(self._batches, None)
        if batch is None:
            self._batches = arriving(self.bus, urgent=True, wait_s=0)
        else:
            self.agent.on_orders([one.order for one in batch])
            for one in batch:
                self.bus.acknowledge(one)
        if now_s < self.began_s + 200:
            self._at(self.head_clock.now_s(), self._receive)


def figures() -> list[Figure]:
    storm = Storm()
    came_at_s = storm.run()
    drained_at_s: dict[str, float] = {}
    signalled = 0
    counts: dict[str, list[int]] = {}
    for kind, names, at_s in storm.slurm.done:
        counts.setdefault(kind, []).append(len(names))
        signalled += len(names) * (kind == "signal")
        if kind == "drain":
            for name in names:
                drained_at_s.setdefault(name, at_s)
    took_s = [drained_at_s.get(name, float("inf")) - at_s for name, at_s in came_at_s.items()]
    last_s = max(drained_at_s.values()) - storm.began_s
    saved = sum(job.requeues > 0 for job in storm.slurm.slurm.jobs.values())
    most = NOTICES / NAMES_PER_COMMAND
    return [
        Figure("storm of 1,000, first notice to last drained", last_s, "s", 20.0),
        Figure("storm of 1,000, notice to drained, p95", percentile(took_s, 95), "s"),
        Figure("storm of 1,000, drain commands", len(counts["drain"]), "", most),
        Figure("storm of 1,000, scancel commands", len(counts["signal"]), "", most),
        Figure("storm of 1,000, requeue commands", len(counts["requeue"]), "", most),
        Figure("storm of 1,000, jobs not signalled once", abs(NOTICES - signalled), "", 0),
        Figure("storm of 1,000, jobs not requeued", NOTICES - saved, "", 0),
    ]
