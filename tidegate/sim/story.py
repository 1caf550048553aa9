"""One seed from its first submission to the last instance, under all checks."""

import gc
import logging
import traceback
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tidegate.core.explain.plan import sentence
from tidegate.core.model.calendar import AlwaysUp
from tidegate.core.model.plan import Mark
from tidegate.service.control import Looked
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks import CHECKS, Broken, Check, Witness
from tidegate.sim.checks.witness import Checks
from tidegate.sim.clock import START_S
from tidegate.sim.happenings import Happenings
from tidegate.sim.idle_tests import spoil_tests
from tidegate.sim.options import WorldOptions
from tidegate.sim.repairs import repairs
from tidegate.sim.sensors import Sensors
from tidegate.sim.settle import waiting_for
from tidegate.sim.world import SimWorld

SETTLES = "Settles"
SETTLES_SENTENCE = "When faults stop, everything settles within a bounded time."
NO_CRASH = "NoCrash"
NO_CRASH_SENTENCE = "Planner, service and agent raise nothing that nobody expects."
TRACE_KEPT = 60
EVENTS_MAX = 200_000
GARBAGE_MAX = 200_000  # objects that a collection of the youngest waits for


@dataclass(slots=True)
class Ended:
    """How a story ended. `broken` None: well. `step`: the number of the last event."""

    options: WorldOptions
    broken: Broken | None
    step: int
    at_s: float
    settled_s: float
    num_looks: int
    num_launched: int
    num_calls: int
    injected: Counter[str]
    trace: tuple[str, ...]


@dataclass(slots=True)
class Story:
    """Plays the world of some options. `keeps_all`: the trace keeps every line."""

    options: WorldOptions
    keeps_all: bool = False
    kinds: Sequence[type[Check]] = CHECKS
    world: SimWorld = field(init=False)
    chaos: Chaos = field(init=False)
    happenings: Happenings = field(init=False)
    checks: Checks = field(init=False)
    num_looks: int = 0
    _last: Looked | None = None
    _trace: deque[tuple[float, str, object]] = field(init=False)
    _is_fresh: bool = False

    def __post_init__(self) -> None:
        options = self.options
        self._trace = deque(maxlen=None if self.keeps_all else TRACE_KEPT)
        self.world = SimWorld(
            options.cluster,
            lambda instance: 60.0,
            self._looked,
            heartbeat_s=options.heartbeat_s,
            calendar=options.calendar or AlwaysUp(),
            associations=options.associations,
            licences=options.licences,
        )
        if options.cluster.idle_gpus:
            self.world.gpu_uses = Sensors(self.world, options.seed)
        self.chaos = Chaos(options, self.world)
        self.happenings = Happenings(self.chaos)
        self.checks = Checks(Witness(self.world, self.chaos), self.kinds)
        self._listen()

    def play(self) -> Ended:
        """The whole story; a broken check ends it."""
        broken: Broken | None = None
        began_s = self.world.clock.now_s()
        with _silent(logging.getLogger("tidegate")):
            try:
                self.chaos.install()
                self.world.reboot_s = repairs(self.chaos)
                self.checks.install()
                self.happenings.begin()
                if "tests" in self.options.faults:
                    spoil_tests(self.chaos)
                self._safety()
                self.happenings.stop()
                self._liveness()
            except Broken as found:
                broken = found
            except Exception as error:  # noqa: BLE001 - whatever it is, its seed must be told
                place = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{Path(place.filename).name}:{place.lineno}"
                said = f"{type(error).__name__}: {error} ({where})"
                broken = Broken(NO_CRASH, NO_CRASH_SENTENCE, said)
        world = self.world
        return Ended(
            options=self.options,
            broken=broken,
            step=world.num_events,
            at_s=world.clock.now_s() - began_s,
            settled_s=world.clock.now_s() - began_s - self.options.safety_s,
            num_looks=self.num_looks,
            num_launched=len(world.compute.everything),
            num_calls=len(world.compute.requests),
            injected=self.chaos.injected,
            trace=tuple(self._lines()) if broken or self.keeps_all else (),
        )

    def _safety(self) -> None:
        until_s = START_S + self.options.safety_s
        while (at_s := self.world.next_event_s()) <= until_s:
            self.world.next_event(at_s)
            self._not_endless()
        self.world.clock.set(max(until_s, self.world.clock.now_s()))

    def _liveness(self) -> None:
        """Without faults until nothing is waited for; the bound is generous, not endless."""
        until_s = self.world.clock.now_s() + self._bound_s()
        waits: str | None = "the first look"
        while self._is_early() or (waits := waiting_for(self.world, self._last)):
            if self.world.clock.now_s() > until_s:
                raise Broken(SETTLES, SETTLES_SENTENCE, str(waits))
            self._is_fresh = False
            while not self._is_fresh and self.world.clock.now_s() <= until_s:
                self.world.next_event()
                self._not_endless()

    def _is_early(self) -> bool:
        """Users still come."""
        known = len(self.happenings.job_ids) + len(self.happenings.refused)
        return known < len(self.options.arrivals)

    def _bound_s(self) -> float:
        timings, calendar = self.options.cluster.timings, self.options.calendar
        works_s = sum(
            each.submit.duration_s * max(each.submit.array, 1) for each in self.options.arrivals
        )
        rests_s = 10 * (8 * timings.rest_max_s + timings.boot_bound_s)
        share = calendar.day_s / calendar.up_s if calendar else 1.0
        begins_s = sum(each.submit.begin_after_s for each in self.options.arrivals)
        overrides_s = sum(each.for_s for each in self.options.operator if each.kind == "override")
        return (2 * works_s + rests_s + begins_s + overrides_s + 3600.0) * share + (
            calendar.day_s if calendar else 0.0
        )

    def _not_endless(self) -> None:
        if self.world.num_events > EVENTS_MAX:
            raise Broken(SETTLES, SETTLES_SENTENCE, f"{EVENTS_MAX} events did not end it")

    # -- the trace -------------------------------------------------------------------------

    def _listen(self) -> None:
        world, note = self.world, self._note
        self.world.compute.on_launch.append(lambda one: note("EC2 launches", one))
        world.compute.on_end.append(lambda one: note("EC2 ends", one.instance_id))
        world.slurm.on_command.append(lambda verb, names: note(f"agent: {verb}", names))
        world.slurm.table.on_start.append(
            lambda job: note(f"Slurm starts {job.job_id} on", job.node_names)
        )
        world.slurm.table.on_job_end.append(
            lambda job: note(f"Slurm ends {job.job_id}:", job.state)
        )
        world.on_results.append(lambda results: note("agent:", results))
        world.on_interrupted.append(lambda news: note("news:", news))

    def _looked(self, looked: Looked) -> None:
        self._last, self._is_fresh = looked, True
        self.num_looks += 1
        if looked.trouble or any(done.plan.actions for done in looked.rounds):
            self._note("look", looked)
        self.checks.looked(looked)

    def _note(self, what: str, of: object) -> None:
        self._trace.append((self.world.clock.now_s() - START_S, what, of))

    def _lines(self) -> list[str]:
        lines: list[str] = []
        for at_s, what, of in self._trace:
            if isinstance(of, Looked):
                lines.extend(f"{at_s:8.1f} s  {line}" for line in _look_lines(of))
            else:
                lines.append(f"{at_s:8.1f} s  {what} {of}")
        return lines


def _look_lines(looked: Looked) -> list[str]:
    lines: list[str] = []
    for done in looked.rounds:
        stale = " (stale, thrown away)" if done.outcome.is_stale else ""
        lines.append(f"look at epoch {done.snapshot.epoch.number}{stale}")
        decisions = [each for each in done.plan.actions if not isinstance(each, Mark)]
        lines.extend(f"    {sentence(each)}" for each in decisions)
        lines.extend(f"    refused {one.offering}: {one.code}" for one in done.outcome.refused)
        lines.extend(f"    trouble: {text}" for text in done.outcome.trouble)
    if looked.trouble:
        lines.append(f"look failed: {looked.trouble}")
    return lines


@contextmanager
def many() -> Iterator[None]:
    """Around many stories: a story leaves little garbage and is soon over, so look seldom."""
    before = gc.get_threshold()
    gc.set_threshold(GARBAGE_MAX, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _silent(logger: logging.Logger) -> Iterator[None]:
    """What the agent logs of a silent Slurm is thousands of lines here."""
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
