"""Counts for how long the GPUs of jobs idled, and which did anything at all, by run, node and day,
beside what `sacct` will say.

Each minute that a node tells of is counted once, and never for longer than it took by the agent's
own stopwatch, whatever the clocks of head and node do. What nobody told of is counted as nothing:
it is not seen, and so not idle. The counts lie in the shared folder, where a new head finds them;
an agent that dies loses the minutes since it wrote them last.
"""

import contextlib
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tidegate.agent.users import own_folder, replace_if_changed
from tidegate.core.interruption.gpu_use import SILENT_S, GpuUseSample, told_of
from tidegate.core.model.errors import BadConfig
from tidegate.core.model.gpu_use import IDLE_PERCENT
from tidegate.core.model.slurm import Job
from tidegate.core.offers.spend import DAY_S, day_of
from tidegate.ports import Clock

FOLDER = Path(".tidegate") / "gpu-time"
# A node tells once a minute; of a longer silence only the last minute is known.
MINUTE_S = 60.0
LATE_S = 120.0
KEEP_EVERY_S = 300.0
# Longer than the two months that a report is of.
KEPT_DAYS = 100
DAY_FILE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
# The job, the node, the start of the run, GPU-seconds idle and seen; how many GPUs, and as bits
# which of them were used. Agents of the version before wrote no more than the seconds.
LINE = re.compile(
    r"(\d{1,12})\|(i-[0-9a-f]{8,17})\|(\d{1,12})\|(\d{1,12})\|(\d{1,12})"
    r"(?:\|(\d{1,2})\|(\d{1,20}))?",
    re.ASCII,
)

logger = logging.getLogger(__name__)

type Run = tuple[str, str, int]
"""The job's own id, the node, when the run began (epoch seconds)."""


@dataclass(frozen=True, slots=True)
class Count:
    """GPU-seconds of a run on a node and day. `used`: of its `gpus`, as bits, those of which not
    every minute is known to have been idle; None: an agent that did not look began the day.
    """

    idle_s: float = 0.0
    seen_s: float = 0.0
    gpus: int = 0
    used: int | None = 0

    def after(self, uses: Mapping[int, int | None], new_s: float) -> "Count":
        """With what the node tells of each of the job's GPUs, by a number that it keeps."""
        known = [use for use in uses.values() if use is not None]
        idle_s = new_s * sum(use < IDLE_PERCENT for use in known)
        bits = sum(1 << n for n, use in uses.items() if use is None or use >= IDLE_PERCENT)
        if self.gpus not in (0, len(uses)):
            bits = (1 << max(self.gpus, len(uses))) - 1  # which is which nobody knows any more
        return Count(
            self.idle_s + idle_s,
            self.seen_s + new_s * len(known),
            max(self.gpus, len(uses)),
            None if self.used is None else self.used | bits,
        )


@dataclass(slots=True)
class GpuTimes:
    """`tell`: is told the partition of a job, and GPU-seconds that it idled and that it did not.

    `stopwatch`: seconds that no change of the clock moves.
    """

    shared_dir: Path
    clock: Clock
    tell: Callable[[str, float, float], None]
    stopwatch: Callable[[], float] = time.monotonic
    _days: dict[str, dict[Run, Count]] = field(default_factory=dict)
    _last: dict[str, tuple[float, float]] = field(default_factory=dict)
    _began_at_s: float | None = None
    _kept_at_s: float = 0.0
    _problem: str = ""

    def __call__(self, jobs: Sequence[Job], samples: Mapping[str, GpuUseSample]) -> None:
        """Count what is new in what nodes said. Raises nothing."""
        now_s, watch_s = self.clock.now_s(), self.stopwatch()
        if self._began_at_s is None:
            self._began_at_s = now_s
        by_id = {job.raw_id or job.job_id: job for job in jobs}
        told = {name: each for name, each in samples.items() if self._is_new(name, each, now_s)}
        try:
            for name, each in sorted(told.items()):
                self._count(name, each, self._new_s(name, each, watch_s), by_id)
            if watch_s >= self._kept_at_s + KEEP_EVERY_S:
                self._keep(watch_s)
                self._kept_at_s = watch_s
        except (OSError, BadConfig) as error:
            if str(error) != self._problem:
                logger.warning("How long GPUs idle cannot be written down: %s", error)
            self._problem = str(error)

    def _is_new(self, name: str, told: GpuUseSample, now_s: float) -> bool:
        last = self._last.get(name)
        return abs(now_s - told.at_s) <= SILENT_S and (last is None or last[0] != told.at_s)

    def _new_s(self, name: str, told: GpuUseSample, watch_s: float) -> float:
        """For how long it is known: since the node told the last time, or a minute.

        What was said before this agent began may be counted already, by the one before it.
        """
        last = self._last.get(name)
        self._last[name] = told.at_s, watch_s
        if last is None:
            return MINUTE_S if told.at_s > (self._began_at_s or 0.0) else 0.0
        since_s = told.at_s - last[0]
        return min(since_s if 0 < since_s <= LATE_S else MINUTE_S, watch_s - last[1])

    def _count(self, name: str, told: GpuUseSample, new_s: float, jobs: Mapping[str, Job]) -> None:
        for job_id in dict.fromkeys((*(job_id for job_id, _ in told.uses), *told.devices)):
            job = jobs.get(job_id)
            # What a node said before this run began was of another one.
            if job is None or name not in job.node_names or not job.started_at_s:
                continue
            if told.at_s < job.started_at_s:
                continue
            uses = told_of(job, told)
            if not uses:
                continue
            counts = self._day(day_of(self.clock.now_s()).name)
            run = (job_id, name, round(job.started_at_s))
            before = counts.get(run, Count())
            counts[run] = now = before.after(uses, new_s)
            idle_s, seen_s = now.idle_s - before.idle_s, now.seen_s - before.seen_s
            self.tell(next(iter(job.partitions), ""), idle_s, seen_s - idle_s)

    def _day(self, day: str) -> dict[Run, Count]:
        """Its counts, with those of the agents before this one. Errors: OSError, BadConfig."""
        if day not in self._days:
            path = own_folder(self.shared_dir, FOLDER) / day
            text = path.read_text(errors="replace") if path.exists() else ""
            self._days[day] = dict(_counted(text.splitlines()))
        return self._days[day]

    def _keep(self, watch_s: float) -> None:
        self._last = {n: last for n, last in self._last.items() if last[1] > watch_s - DAY_S}
        folder = own_folder(self.shared_dir, FOLDER)
        for day, counts in self._days.items():
            replace_if_changed(folder / day, "".join(_lines(counts)))
        now_s = self.clock.now_s()
        today, oldest = day_of(now_s).name, day_of(now_s - KEPT_DAYS * DAY_S).name
        self._days = {day: counts for day, counts in self._days.items() if day == today}
        for path in folder.iterdir():
            if DAY_FILE.fullmatch(path.name) and path.name < oldest:
                with contextlib.suppress(OSError):
                    path.unlink()
        self._problem = ""


def _counted(lines: Iterable[str]) -> Iterator[tuple[Run, Count]]:
    for line in lines:
        if found := LINE.fullmatch(line):
            gpus, used = (int(found[6]), int(found[7])) if found[6] else (0, None)
            count = Count(float(found[4]), float(found[5]), gpus, used)
            yield (found[1], found[2], int(found[3])), count


def _lines(counts: Mapping[Run, Count]) -> Iterator[str]:
    for (job_id, name, start_s), each in sorted(counts.items(), key=lambda item: item[0]):
        used = "" if each.used is None else f"|{each.gpus}|{each.used}"
        yield f"{job_id}|{name}|{start_s}|{each.idle_s:.0f}|{each.seen_s:.0f}{used}\n"
