"""What the agent has seen and done, as samples for Prometheus. Safe from any thread."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tidegate.core.explain.verdicts import Verdicts
from tidegate.core.model import prometheus as metrics
from tidegate.core.model.orders import OrderResult
from tidegate.core.model.prometheus import Sample
from tidegate.core.model.slurm import Job, Node, Reading

# What the planner saw is not told for longer: it judges the queue every minute, an empty one
# every five. A figure that is gone raises no alert, one that stands still might.
TOLD_FOR_S = 900.0
# While there are nodes it judges them every minute at the latest.
IDLE_TOLD_FOR_S = 180.0

JOB_STATES = ("pending", "running", "other")
NODE_STATES = ("idle", "busy", "drained", "down")


class Meter:
    """`stopwatch`: seconds that no change of the clock moves."""

    def __init__(
        self, started_at_s: float = 0.0, stopwatch: Callable[[], float] = time.monotonic
    ) -> None:
        self._started_at_s = started_at_s
        self._stopwatch = stopwatch
        self._lock = threading.Lock()
        self._reading: Reading | None = None
        self._looked_at_s: float | None = None
        self._look_took_s = 0.0
        self._is_slurm_up = False
        self._published_at_s: float | None = None
        self._digests = Counter({"sent": 0, "failed": 0})
        self._orders = Counter(dict.fromkeys(metrics.every_order(), 0))
        self._gpu_s: Counter[tuple[str, str]] = Counter()
        self._judged: tuple[float, str] | None = None
        self._of_planner: tuple[Sample, ...] = ()
        self._judged_on_watch_s = stopwatch()
        self._idle: Mapping[str, str] = {}

    # -- what happens ------------------------------------------------------------------------

    def looked(self, reading: Reading, at_s: float, took_s: float) -> None:
        """Slurm answered."""
        with self._lock:
            self._reading, self._looked_at_s, self._look_took_s = reading, at_s, took_s
            self._is_slurm_up = True

    def slurm_is_silent(self) -> None:
        self._is_slurm_up = False

    def published(self, at_s: float) -> None:
        with self._lock:
            self._published_at_s = at_s
            self._digests["sent"] += 1

    def bus_is_silent(self) -> None:
        with self._lock:
            self._digests["failed"] += 1

    def carried_out(self, results: Iterable[OrderResult]) -> None:
        with self._lock:
            self._orders.update((each.kind.value, each.outcome.value) for each in results)

    def gpu_time(self, partition: str, idle_s: float, busy_s: float) -> None:
        """GPU-seconds of a running job, as its nodes told of them."""
        with self._lock:
            for use, gpu_s in (("idle", idle_s), ("busy", busy_s)):
                self._gpu_s[partition, use] += round(gpu_s)

    def judged(self, verdicts: Verdicts) -> None:
        """These are the newest verdicts; the same ones again are no news."""
        judged = (verdicts.at_s, verdicts.plan_id)
        with self._lock:
            if self._judged != judged:
                self._judged, self._of_planner = judged, verdicts.samples
                self._idle = verdicts.idle
                self._judged_on_watch_s = self._stopwatch()

    # -- what is told ------------------------------------------------------------------------

    @property
    def nodes(self) -> Sequence[Node] | None:
        """Those of the last look; None: there was none yet."""
        with self._lock:
            return self._reading.nodes if self._reading else None

    @property
    def standing(self) -> tuple[Sequence[Node], Mapping[str, str]] | None:
        """Nodes, and what the planner keeps those without a job for, if it said so lately; None:
        Slurm is silent.
        """
        with self._lock:
            if self._reading is None or not self._is_slurm_up:
                return None
            is_new = self._stopwatch() - self._judged_on_watch_s <= IDLE_TOLD_FOR_S
            return self._reading.nodes, self._idle if is_new else {}

    def samples(self, now_s: float) -> Iterator[Sample]:
        """All of them, each metric's one after the other."""
        with self._lock:
            reading, orders, digests = self._reading, self._orders.copy(), self._digests.copy()
            gpu_s = self._gpu_s.copy()
            age_s = self._stopwatch() - self._judged_on_watch_s
            judged = self._of_planner if age_s <= TOLD_FOR_S else ()
        yield metrics.AGENT_STARTED.of(self._started_at_s)
        yield metrics.AGENT_WROTE.of(now_s)
        yield metrics.SLURM_ANSWERS.of(self._is_slurm_up)
        yield metrics.VERDICTS_AGE.of(age_s)
        if self._looked_at_s is not None:
            yield metrics.AGENT_LOOKED.of(self._looked_at_s)
            yield metrics.AGENT_LOOK_TOOK.of(self._look_took_s)
        if self._published_at_s is not None:
            yield metrics.DIGEST_PUBLISHED.of(self._published_at_s)
            yield metrics.DIGEST_AGE.of(max(now_s - self._published_at_s, 0.0))
        for outcome, count in digests.items():
            yield metrics.DIGESTS.of(count, outcome=outcome)
        for (kind, outcome), count in orders.items():
            yield metrics.ORDERS.of(count, kind=kind, outcome=outcome)
        for (partition, use), seconds in sorted(gpu_s.items()):
            yield metrics.JOB_GPUS.of(seconds, partition=partition, use=use)
        if reading is not None:
            yield from _queue(reading)
        yield from judged


def _queue(reading: Reading) -> Iterator[Sample]:
    jobs = Counter(dict.fromkeys(JOB_STATES, 0))
    for job in reading.jobs:
        jobs[_job_state(job)] += job.count
    nodes = Counter(dict.fromkeys(NODE_STATES, 0))
    nodes.update(_node_state(node) for node in reading.nodes)
    for state, count in jobs.items():
        yield metrics.SLURM_JOBS.of(count, state=state)
    for state, count in nodes.items():
        yield metrics.SLURM_NODES.of(count, state=state)


def _job_state(job: Job) -> str:
    return "pending" if job.is_pending else "running" if job.is_running else "other"


def _node_state(node: Node) -> str:
    if node.state.is_down:
        return "down"
    if node.state.is_drain:
        return "drained"
    return "busy" if node.state.is_busy else "idle"
