"""What nodes tell of the GPUs of a drawn world's jobs, and what the head's agent makes of it.

Each run has habits of its own, drawn from the seed: it works, stops working for good, works now and
then, or is told of with gaps. A sensor that lies says the same as one of a job that idles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from tidegate.agent.gpu_use import EVERY_S, TOLD_AFTER_S
from tidegate.core.interruption.gpu_use import SILENT_S, seen
from tidegate.core.model.gpu_use import USE_PERCENT_MAX, GpuUse
from tidegate.core.model.slurm import Job
from tidegate.sim.world import SimWorld

LOOK_S = 3 * EVERY_S  # a node tells once a minute
WORKS, RESTS = 60, 0
ORDERED_S = 300.0  # from a report that a plan goes by until its order is carried out

type Run = tuple[str, int, float | None]


@dataclass(slots=True)
class Habit:
    """`works_s` of every `every_s`, until `stops_s` after its start. `gaps`: of its minutes, the
    share that nobody is told of.
    """

    every_s: float
    works_s: float
    stops_s: float
    gaps: float

    def percent(self, minutes: Random, passed_s: float) -> int | None:
        if minutes.random() < self.gaps:
            return None
        return (
            WORKS if passed_s < self.stops_s and passed_s % self.every_s < self.works_s else RESTS
        )


def habit_of(seed: int, run: Run) -> Habit:
    chance = Random(f"{seed}:use of {run[0]} {run[1]}")
    every_s = chance.choice((300.0, 900.0))
    works_s = chance.choice((every_s, every_s, 60.0))
    stops_s = chance.choice((0.0, 0.0, 0.0, chance.uniform(0.0, 900.0), float("inf")))
    return Habit(every_s, works_s, stops_s, chance.choice((0.0, 0.0, 0.0, 0.1)))


@dataclass(slots=True)
class Sensors:
    """`quiet_since_s`: of runs whose GPUs have done nothing without a gap, in true time, since then
    or since the agent has looked. `lately_since_s`: the same of an agent that is gone, as long as
    an order may be on its way that was planned from what it knew.
    """

    world: SimWorld
    seed: int
    quiet_since_s: dict[Run, float] = field(default_factory=dict)
    lately_since_s: dict[Run, float] = field(default_factory=dict)
    _lately_until_s: float = 0.0
    _seen: dict[Run, GpuUse] = field(default_factory=dict)
    _agent: object = None
    _looked_s: tuple[float, float] = (0.0, 0.0)

    def __call__(self, jobs: Sequence[Job]) -> Mapping[str, GpuUse]:
        """What the agent knows; it has looked each minute since it was asked last."""
        now_s, head_s = self.world.clock.now_s(), self.world.head_clock.now_s()
        was_s, was_head_s = self._looked_s
        is_new = self._agent is not self.world.agent
        if is_new or abs((head_s - was_head_s) - (now_s - was_s)) > SILENT_S:
            self.lately_since_s, self._lately_until_s = self.quiet_since_s, now_s + ORDERED_S
            self._seen, self.quiet_since_s, was_s = {}, {}, now_s
        if now_s > self._lately_until_s:
            self.lately_since_s = {}
        running = {run_of(job): job for job in jobs if job.state == "RUNNING" and job.shape.gpus}
        self._seen = {run: use for run, use in self._seen.items() if run in running}
        self.quiet_since_s = {r: at_s for r, at_s in self.quiet_since_s.items() if r in running}
        for run, job in running.items():
            self._look(run, job, max(was_s, now_s - SILENT_S * 2), now_s, head_s - now_s)
        self._agent, self._looked_s = self.world.agent, (now_s, head_s)
        uses = {job.job_id: use for run, job in running.items() if (use := self._seen.get(run))}
        return {
            job_id: use
            for job_id, use in uses.items()
            if head_s - use.below_since_s(USE_PERCENT_MAX) >= TOLD_AFTER_S
        }

    def _look(self, run: Run, job: Job, from_s: float, to_s: float, ahead_s: float) -> None:
        habit, began_s = habit_of(self.seed, run), (job.started_at_s or 0.0) - ahead_s
        # On the minute, however often it is asked.
        at_s = (from_s // LOOK_S + 1) * LOOK_S if run in self._seen else to_s
        while at_s <= to_s:
            minutes = Random(f"{self.seed}:{run[0]}:{at_s // LOOK_S}")
            percent = habit.percent(minutes, max(at_s - began_s, 0.0))
            use = seen(self._seen.get(run), percent, at_s + ahead_s)
            if use:
                self._seen[run] = use
            else:
                self._seen.pop(run, None)
            if percent == RESTS:
                self.quiet_since_s.setdefault(run, at_s)
            else:
                self.quiet_since_s.pop(run, None)
                self.lately_since_s.pop(run, None)
            at_s += LOOK_S


def run_of(job: Job) -> Run:
    return job.job_id, job.restarts, job.started_at_s
