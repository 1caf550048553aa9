"""The head's agent: reads Slurm, publishes digests, carries out orders. No threads of its own.

`tick` and `on_orders` may be called from different threads; each does one step and returns.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tidegate.agent.asked import Carried
from tidegate.agent.change import Fingerprint, fingerprint
from tidegate.agent.lost_work import LostWorks
from tidegate.agent.meter import Meter
from tidegate.agent.node_orders import Lasting
from tidegate.agent.orders import Sleep, Worker, batches
from tidegate.agent.release import Pace
from tidegate.agent.restarts import Restarts
from tidegate.core.fleet.resume import fallen, faults, relaunched
from tidegate.core.interruption.heartbeat import Beat, hang
from tidegate.core.interruption.idle_gpus import gpu_jobs
from tidegate.core.model.digest import Digest, Stamp
from tidegate.core.model.errors import SlurmUnavailable, TidegateError
from tidegate.core.model.gpu_use import IDLE_PERCENT, GpuUse
from tidegate.core.model.job_files import Progress
from tidegate.core.model.orders import Order, OrderOutcome, OrderResult
from tidegate.core.model.slurm import Fault, Job, Node, Reading
from tidegate.core.model.slurm_names import ABOUT_JOBS
from tidegate.ports import Bus, Clock
from tidegate.ports.slurm import Slurm

HEARTBEAT_S = 60.0
IDLE_HEARTBEAT_S = 300.0
RESULTS_KEPT_S = 600.0
# Only so that no digest grows without end: more than Slurm carries out in these ten minutes, for
# a signal takes it 13 ms.
MAX_RESULTS = 50_000
# On a head whose clock is wrong every order comes late, and each digest that says so brings the
# order again: that is told this seldom.
LATE_TOLD_EVERY_S = 30.0
# A clock that is kept in step is moved by less than this between two looks.
CLOCK_OFF_S = 5.0

logger = logging.getLogger(__name__)


class Agent:
    """One start of the agent on one head."""

    def __init__(
        self,
        *,
        slurm: Slurm,
        bus: Bus,
        clock: Clock,
        cluster: str,
        head_instance_id: str,
        agent_started_at_s: float,
        sleep: Sleep = time.sleep,
        pace: Pace | None = None,
        heartbeat_s: float = HEARTBEAT_S,
        tell: Callable[[str], None] = lambda text: None,
        meter: Meter | None = None,
        beats: Callable[[Sequence[Job]], Mapping[str, Beat]] = lambda jobs: {},
        gpu_uses: Callable[[Sequence[Job]], Mapping[str, GpuUse]] = lambda jobs: {},
        progress: Callable[[Sequence[Job]], Mapping[str, Progress]] = lambda jobs: {},
        lost_works: LostWorks | None = None,
        stopwatch: Callable[[], float] | None = None,
    ) -> None:
        self._meter = meter or Meter()
        self._slurm = slurm
        self._bus = bus
        self._clock = clock
        self._cluster = cluster
        self._stamp = Stamp(head_instance_id, agent_started_at_s, 0)
        self._worker = Worker(slurm, sleep, pace or Pace(), tell=tell)
        self._heartbeat_s = heartbeat_s
        self._lock = threading.Lock()
        self._done: dict[str, tuple[float, tuple[OrderResult, ...]]] = {}
        self._has_news = False
        self._late_told_at_s = 0.0
        self._restarts = Restarts()
        self._seen: Reading | None = None
        self._faults: dict[str, Fault] = {}
        self._beats = beats
        self._gpu_uses = gpu_uses
        self._progress = progress
        self._lost_works = lost_works or LostWorks(clock)
        self._stopwatch = stopwatch or clock.now_s
        self._looked_s: tuple[float, float] | None = None
        self._rested_at_s: dict[str, float] = {}
        self._lasting = Lasting()
        self._open_names: frozenset[str] = frozenset()
        self._published: Fingerprint | None = None
        self._published_at_s = 0.0
        self._is_slurm_silent = False
        self._is_bus_silent = False
        self._is_settling = False

    @property
    def is_settling(self) -> bool:
        """Something is about to change without a word in slurmctld's log: look again soon."""
        return self._is_settling

    def tick(self) -> Digest | None:
        """Look at Slurm once; the digest that was published, None when there was nothing new.

        Raises nothing for a silent slurmctld or bus: it says so once and tries again.
        """
        try:
            began_s, num_signals = self._clock.now_s(), self._worker.signalled.num_noted
            reading = self._slurm.read()
            self._nudge(reading, began_s)
            self._worker.signalled.forget_ended(reading.jobs, num_signals)
            reading = self._with_faults(reading, began_s)
            reading = self._with_hangs(self._with_gpu_uses(reading), began_s)
            reading = self._with_progress(reading)
        except SlurmUnavailable as error:
            self._slurm_is_silent(error)
            return None
        self._slurm_answers()
        self._meter.looked(reading, began_s, self._clock.now_s() - began_s)
        return self._publish(reading)

    def on_orders(self, orders: Sequence[Order]) -> tuple[OrderResult, ...]:
        """Carry orders out, each once: a repetition gives the same results and does nothing.

        Errors: SlurmUnavailable; then do not acknowledge the orders, so that they come again.
        """
        asked = {order.order_id: order for order in orders}
        with self._lock:  # a look may forget them while the others are carried out
            done = {each: self._done[each][1] for each in asked if each in self._done}
        new = tuple(order for order_id, order in asked.items() if order_id not in done)
        for batch in batches(new, lambda order: order):
            done |= self._carry_out(batch)
        return tuple(one for order_id in asked for one in done[order_id])

    def _carry_out(self, batch: Sequence[Order]) -> dict[str, tuple[OrderResult, ...]]:
        """By order id what became of each."""
        carried = self._worker.carry_out(batch, self._clock.now_s())
        now_s = self._clock.now_s()
        found: dict[str, list[OrderResult]] = {order.order_id: [] for order in batch}
        for result in carried.results:
            found[result.order_id].append(result)
        done = {order_id: tuple(ones) for order_id, ones in found.items()}
        with self._lock:
            self._done |= {order_id: (now_s, ones) for order_id, ones in done.items()}
            self._has_news |= self._is_news(carried, now_s)
            self._lasting.add(carried.lasting, now_s)
            if carried.lifted:
                self._lasting.lift(carried.lifted)
            self._restarts.add(carried.requeued, now_s)
        self._meter.carried_out(carried.results)
        for result in carried.results:
            logger.info(
                "Order %s on %s: %s. %s",
                result.kind.value,
                result.name,
                result.outcome.value,
                result.detail,
                extra={"order_id": result.order_id},
            )
        return done

    def _is_news(self, carried: Carried, now_s: float) -> bool:
        """Whether the planner should hear of it before the heartbeat; not of hints carried out.

        Nor that a drain waits for its node to join: the planner's next look would order it again,
        and so on once a second for as long as the node boots.
        """
        waiting = {order.order_id for order in carried.lasting}
        told = [
            one.outcome
            for one in carried.results
            if one.outcome is not OrderOutcome.FAILED or one.order_id not in waiting
        ]
        if any(outcome is not OrderOutcome.EXPIRED for outcome in told):
            return True
        if not told or 0.0 <= now_s - self._late_told_at_s < LATE_TOLD_EVERY_S:
            return False
        self._late_told_at_s = now_s
        return True

    # -- what Slurm does not do by itself ---------------------------------------------------

    def _nudge(self, reading: Reading, read_at_s: float) -> None:
        """Make waiting jobs start on nodes that just opened, and requeued jobs at once."""
        drained = self._lasting.renew(
            reading, self._slurm, read_at_s=read_at_s, now_s=self._clock.now_s()
        )
        open_names = frozenset(node.name for node in reading.nodes if _is_open(node)) - drained
        has_pending = any(job.is_pending for job in reading.jobs)
        fresh = sorted(open_names - self._open_names)
        if fresh and has_pending:
            self._slurm.poke(fresh)
            logger.info("%d nodes take jobs now; told Slurm to look at its queue.", len(fresh))
        self._open_names = open_names
        is_silent = has_pending and any(
            node.state.takes_jobs and not _is_open(node) for node in reading.nodes
        )
        self._is_settling = self._start_requeued(reading, read_at_s) or is_silent

    def _start_requeued(self, reading: Reading, read_at_s: float) -> bool:
        """Cancel the two minutes that Slurm makes requeued jobs wait; whether any is left.

        Those as well that Slurm requeued by itself, since a node of theirs went DOWN or gave no
        answer when they were to start.
        """
        with self._lock:
            before = self._seen or reading
            self._restarts.add_new(fallen(before, reading), read_at_s)
            self._restarts.add_relaunched(relaunched(before, reading, read_at_s), read_at_s)
            due = self._restarts.due(reading, read_at_s=read_at_s, now_s=self._clock.now_s())
        if due:
            self._slurm.start(due)
        return self._restarts.are_left

    def _with_faults(self, reading: Reading, read_at_s: float) -> Reading:
        """The queue with why jobs of it were requeued, since only who saw the last run can tell."""
        known = self._faults | faults(self._seen or reading, reading, read_at_s)
        self._seen = reading
        jobs = {job.job_id: job for job in reading.jobs} if known else {}
        self._faults = {job_id: each for job_id, each in known.items() if job_id in jobs}
        if not self._faults:
            return reading
        told = (replace(j, fault=self._faults.get(j.job_id)) for j in reading.jobs)
        return replace(reading, jobs=tuple(told))

    def _with_hangs(self, reading: Reading, now_s: float) -> Reading:
        """The queue with which jobs hang. One that is suspended cannot touch anything."""
        beats = self._beats(reading.jobs)
        is_put = self._is_clock_put()
        lost = self._lost_works(reading.jobs, beats, now_s)
        if not beats and not lost:
            return reading
        running = {job.job_id: job for job in reading.jobs if job.job_id in beats}
        rests = {id_: now_s for id_, job in running.items() if is_put or job.state != "RUNNING"}
        known = {job_id: at_s for job_id, at_s in self._rested_at_s.items() if job_id in running}
        self._rested_at_s = known | rests
        idle = {one.job.job_id: one.idle_since_s(IDLE_PERCENT) for one in gpu_jobs(reading.jobs)}
        hangs = {
            job_id: hang(
                job,
                self._lost_works.lasting(job_id, beats[job_id]),
                now_s,
                rested_at_s=self._rested_at_s.get(job_id, 0.0),
                begins_within_s=self._lost_works.begins_within_s(job),
                idle_since_s=idle.get(job_id),
            )
            for job_id, job in running.items()
        }
        steps = {job_id: beat.step for job_id, beat in beats.items()}
        told = (
            replace(j, hang=hangs.get(j.job_id), step=steps.get(j.job_id), lost=lost.get(j.job_id))
            for j in reading.jobs
        )
        return replace(reading, jobs=tuple(told))

    def _is_clock_put(self) -> bool:
        """Whether somebody has put the clock since the last look: then no file is as old as it
        seems. Both are read now: how long Slurm took to answer is no difference between them.
        """
        last, self._looked_s = self._looked_s, (self._clock.now_s(), self._stopwatch())
        if last is None:
            return False
        by_clock_s, by_watch_s = (b - a for a, b in zip(last, self._looked_s, strict=True))
        return abs(by_clock_s - by_watch_s) > CLOCK_OFF_S

    def _with_gpu_uses(self, reading: Reading) -> Reading:
        """The queue with how much jobs use their GPUs, where that is little."""
        uses = self._gpu_uses(reading.jobs)
        if not uses:
            return reading
        return replace(
            reading, jobs=tuple(replace(j, gpu_use=uses.get(j.job_id)) for j in reading.jobs)
        )

    def _with_progress(self, reading: Reading) -> Reading:
        """The queue with how far jobs have come, where they say so."""
        told = self._progress(reading.jobs)
        if not told:
            return reading
        jobs = (replace(job, progress=told.get(job.job_id)) for job in reading.jobs)
        return replace(reading, jobs=tuple(jobs))

    # -- the digest -------------------------------------------------------------------------

    def _publish(self, reading: Reading) -> Digest | None:
        now_s = self._clock.now_s()
        seen = fingerprint(reading)
        with self._lock:
            has_news = self._has_news
            results = self._recent_results(now_s)
            # A clock that was put back must not keep the heartbeat waiting.
            is_due = not 0.0 <= now_s - self._published_at_s < self._heartbeat(reading)
            if seen == self._published and not has_news and not is_due:
                return None
            self._has_news = False
        # Each attempt has its own number: the store may hold an attempt that seemed to fail.
        stamp = self._stamp
        self._stamp = Stamp(stamp.head_instance_id, stamp.agent_started_at_s, stamp.sequence + 1)
        digest = Digest(self._cluster, self._stamp, now_s, reading, results)
        try:
            self._bus.put_digest(digest)
        except TidegateError as error:
            self._bus_is_silent(error, has_news=has_news)
            return None
        if self._is_bus_silent:
            logger.info("Digests reach the planner again.")
        self._is_bus_silent = False
        self._published, self._published_at_s = seen, now_s
        self._meter.published(now_s)
        return digest

    def _recent_results(self, now_s: float) -> tuple[OrderResult, ...]:
        """The results of the last ten minutes; older ones are forgotten."""
        since_s = now_s - RESULTS_KEPT_S
        self._done = {key: done for key, done in self._done.items() if done[0] >= since_s}
        return kept([result for _, found in self._done.values() for result in found])

    def _heartbeat(self, reading: Reading) -> float:
        """The heartbeat is the planner's periodic look; an empty cluster needs fewer."""
        is_empty = not reading.jobs and not reading.nodes
        return max(self._heartbeat_s, IDLE_HEARTBEAT_S) if is_empty else self._heartbeat_s

    # -- outages, said once -----------------------------------------------------------------

    def _slurm_is_silent(self, error: SlurmUnavailable) -> None:
        if not self._is_slurm_silent:
            logger.warning("Slurm does not answer; nothing is published until it does: %s", error)
        self._is_slurm_silent = self._is_settling = True
        self._meter.slurm_is_silent()

    def _slurm_answers(self) -> None:
        if self._is_slurm_silent:
            logger.info("Slurm answers again.")
        self._is_slurm_silent = False

    def _bus_is_silent(self, error: TidegateError, *, has_news: bool) -> None:
        with self._lock:
            self._has_news = self._has_news or has_news
        self._published = None
        self._is_settling = True
        if not self._is_bus_silent:
            logger.warning("The digest could not be sent, trying again: %s", error)
        self._is_bus_silent = True
        self._meter.bus_is_silent()


def kept(results: Sequence[OrderResult], at_most: int = MAX_RESULTS) -> tuple[OrderResult, ...]:
    """Of too many results the newest, those about nodes first: the planner waits for them."""
    if len(results) <= at_most:
        return tuple(results)
    about_jobs = [one for one in results if one.kind in ABOUT_JOBS]
    about_nodes = [one for one in results if one.kind not in ABOUT_JOBS]
    logger.warning("Of %d results %d are told to the planner.", len(results), at_most)
    return tuple([*about_jobs, *about_nodes][-at_most:])


def _is_open(node: Node) -> bool:
    """Jobs start here at the next pass; after an undrain Slurm first waits for a ping."""
    return node.state.takes_jobs and not node.state.is_silent
