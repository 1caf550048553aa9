"""Classes of jobs that ask alike, what they used at most, and what smaller request would do.

A request is never below the most that was seen plus a margin, memory never at or near what a job of
the class ran out of. What is not known is left as it is.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from math import ceil

from tidegate.core.model.frozen import frozen
from tidegate.sim.advise.usage import COMPLETED, OUT_OF_MEMORY, TIMEOUT, Ran
from tidegate.sim.replay.trace import DAY_S, TraceJob

# Of n runs drawn alike the next one is above all of them once in n + 1 times.
RUNS_LEAST = 20
DAYS_LEAST = 3
# A run that was over so soon says nothing of what its class needs: two samples of Slurm's.
TELLING_S = 60.0
MARGIN = 0.25

GIB = 1024
LIMIT_STEP_S = 300.0
LIMIT_LEAST_S = 600.0
# A request that is hardly smaller is not worth a person's time.
LIMIT_SMALLER, MEMORY_SMALLER = 0.75, 0.8


class Asks(StrEnum):
    """What a class asks too much of."""

    GPUS = "gpus-unused"
    MEMORY = "memory-unused"
    CPUS = "cpus-unused"
    TIME = "time-limit-long"


class Silent(StrEnum):
    """Why nothing is said of a class."""

    NOBODY = "user-gone"
    FEW_RUNS = "few-runs"
    NO_USAGE = "usage-unknown"
    FITS = "asks-what-it-uses"
    OTHER_GPUS = "other-gpus"
    CHEAP = "left-out"
    UNPROVED = "too-new-to-check"
    WOULD_NOT_RUN = "would-not-run"
    UNCERTAIN = "saving-uncertain"


@frozen
class ClassKey:
    """Whose jobs, by name with each number as `#`, and what they ask but for time."""

    user: str
    name: str
    partition: str
    nodes: int
    gpus: int
    gpu_type: str
    cpus: int
    memory_mib: int
    constraint: str

    @property
    def family(self) -> tuple[str, str, str]:
        """The same work, whatever it asks."""
        return self.user, self.name, self.partition

    @property
    def job(self) -> TraceJob:
        """One that asks as they do."""
        return TraceJob(
            job_id=self.name,
            submit_s=0.0,
            duration_s=0.0,
            nodes=self.nodes,
            gpus=self.gpus,
            gpus_total=self.gpus * self.nodes,
            partition=self.partition,
            cpus=self.cpus,
            memory_mib=self.memory_mib,
            gpu_type=self.gpu_type,
            user=self.user,
            constraint=self.constraint,
        )


@frozen
class Finding:
    """One thing that a class asks too much of."""

    code: Asks
    sentence: str


@frozen
class Proposal:
    """What a class could ask instead; `time_limit_s` None: as long as before.

    `options`: for sbatch. `runs`: those that ended well.
    """

    key: ClassKey
    runs: int
    days: int
    gpus: int
    gpu_type: str
    cpus: int
    memory_mib: int
    time_limit_s: float | None
    findings: tuple[Finding, ...]

    @property
    def options(self) -> str:
        said = []
        codes = {each.code for each in self.findings}
        kind = f"gpu:{self.gpu_type}" if self.gpu_type else "gpu"
        if Asks.GPUS in codes or self.gpu_type != self.key.gpu_type:
            said.append(f"--gres={kind}:{self.gpus}" if self.gpus else "--gres=none")
        # Less of the one would else change the other, by DefMemPerCPU.
        if codes & {Asks.MEMORY, Asks.CPUS} and self.memory_mib:
            said.append(f"--mem={ceil(self.memory_mib / GIB)}G")
        if self.time_limit_s is not None:
            minutes = round(self.time_limit_s / 60)
            said.append(f"--time={minutes // 60}:{minutes % 60:02}:00")
        return " ".join(said)

    def change(self, job: TraceJob) -> TraceJob:
        """A job of the class, asking so."""
        limits = (job.time_limit_s, self.time_limit_s)
        return replace(
            job,
            gpus=self.gpus,
            gpus_total=min(job.gpus_total, self.gpus * job.nodes),
            gpu_type=self.gpu_type,
            cpus=self.cpus,
            memory_mib=self.memory_mib,
            time_limit_s=min((each for each in limits if each is not None), default=None),
        )

    def holds(self, run: Ran) -> bool:
        """Whether a run that was not seen before would have fitted; what is unknown did."""
        used, job = run.used, run.job
        if run.state == OUT_OF_MEMORY and self.memory_mib < job.memory_mib:
            return False
        beyond = (
            (used.memory_mib, self.memory_mib, job.memory_mib),
            (used.cpus, self.cpus, job.cpus),
            (used.gpus, self.gpus, job.gpus),
            (used.gpus_touched, self.gpus, job.gpus),
        )
        if any(much is not None and now < before and much > now for much, now, before in beyond):
            return False
        return self.time_limit_s is None or job.duration_s <= self.time_limit_s


def stem(name: str) -> str:
    """`train-0017` and `train-0018` are the same work."""
    return re.sub(r"\d+", "#", name)


def key_of(run: Ran) -> ClassKey:
    job = run.job
    what = (job.nodes, job.gpus, job.gpu_type, job.cpus, job.memory_mib, job.constraint)
    return ClassKey(run.user, stem(run.name), job.partition, *what)


def classes(runs: Iterable[Ran]) -> dict[ClassKey, list[Ran]]:
    found: dict[ClassKey, list[Ran]] = {}
    for run in runs:
        found.setdefault(key_of(run), []).append(run)
    return found


def floors(runs: Iterable[Ran]) -> dict[tuple[str, str, str], int]:
    """By family: the most memory in MiB that one of its jobs asked and ran out of."""
    found: dict[tuple[str, str, str], int] = {}
    for run in runs:
        if run.state == OUT_OF_MEMORY:
            family = key_of(run).family
            found[family] = max(found.get(family, 0), run.job.memory_mib)
    return found


def proposal(
    key: ClassKey, runs: Sequence[Ran], floor_mib: int, gpu_memory_mib: int, margin: float = MARGIN
) -> Proposal | Silent:
    """What the class could ask; `gpu_memory_mib`: of the smallest GPU it may get, 0: unknown."""
    if not key.user:
        return Silent.NOBODY
    well = [run for run in runs if run.state == COMPLETED and run.job.duration_s >= TELLING_S]
    days = len({int(run.job.submit_s // DAY_S) for run in well})
    if len(well) < RUNS_LEAST or days < DAYS_LEAST:
        return Silent.FEW_RUNS
    sized = _Sized(key, [run for run in runs if run.job.duration_s >= TELLING_S], margin)
    is_alone = key.nodes == 1  # of several nodes nobody knows which one used how much
    gpus, why_gpus = sized.gpus(gpu_memory_mib) if is_alone else (key.gpus, None)
    cpus, why_cpus = sized.cpus(gpus) if is_alone else (key.cpus, None)
    memory_mib, why_memory = sized.memory(floor_mib) if is_alone else (key.memory_mib, None)
    limit_s, why_time = sized.limit()
    findings = tuple(filter(None, (why_gpus, why_cpus, why_memory, why_time)))
    if not findings:
        return Silent.FITS if sized.is_known else Silent.NO_USAGE
    asks = (gpus, key.gpu_type, cpus, memory_mib, limit_s)
    return Proposal(key, len(well), days, *asks, findings)


@frozen
class _Sized:
    """Each size of a class; of those that are not known in enough runs none is changed."""

    key: ClassKey
    runs: Sequence[Ran]
    margin: float

    @property
    def is_known(self) -> bool:
        return self._most([run.used.memory_mib for run in self.runs]) is not None

    def _most(self, used: Sequence[float | None]) -> float | None:
        """Also of runs that failed; only those that ended well count as known."""
        well = [u for u, run in zip(used, self.runs, strict=True) if run.state == COMPLETED]
        known = [each for each in used if each is not None]
        if sum(each is not None for each in well) < RUNS_LEAST:
            return None
        return max(known)

    def _said(self, what: str, used: str, instead: str) -> str:
        return f"asks {what}, used at most {used} in {len(self.runs)} runs: {instead} would do"

    def gpus(self, gpu_memory_mib: int) -> tuple[int, Finding | None]:
        asked = self.key.gpus
        did = self._most([run.used.gpus for run in self.runs])
        touched = self._most([run.used.gpus_touched for run in self.runs])
        if asked and touched is not None:
            # Whole GPUs, each looked at in every minute: nothing is added to what was counted.
            least = max(int(touched), ceil(did or 0.0))
            text = self._said(f"{asked} GPUs", f"{int(touched)} of them", f"{least or 'none'}")
            return (asked, None) if least >= asked else (least, Finding(Asks.GPUS, text))
        held_mib = self._most([run.used.gpu_memory_mib for run in self.runs])
        if not asked or did is None or held_mib is None or not gpu_memory_mib:
            return asked, None
        scale = 1 + self.margin
        least = max(ceil(did * scale), ceil(held_mib * scale / gpu_memory_mib))
        if least >= asked:
            return asked, None
        used = f"what {did:.2f} of them can do, and {held_mib / GIB:.1f} GiB of their memory,"
        text = self._said(f"{asked} GPUs", used, f"{least}" if least else "none")
        return least, Finding(Asks.GPUS, text)

    def cpus(self, gpus: int) -> tuple[int, Finding | None]:
        asked = self.key.cpus
        did = self._most([run.used.cpus for run in self.runs])
        if did is None:
            return asked, None
        least = max(ceil(did * (1 + self.margin)), gpus, 1)
        if least >= asked:
            return asked, None
        text = self._said(f"{asked} CPUs", f"{did:.1f} of them on average", f"{least}")
        return least, Finding(Asks.CPUS, text)

    def memory(self, floor_mib: int) -> tuple[int, Finding | None]:
        asked = self.key.memory_mib
        used = self._most([run.used.memory_mib for run in self.runs])
        if used is None:
            return asked, None
        least = max(ceil(max(used, floor_mib) * (1 + self.margin) / GIB), 1) * GIB
        if least > asked * MEMORY_SMALLER:
            return asked, None
        what, instead = f"{asked / GIB:.0f} GiB of memory", f"{least // GIB} GiB"
        ran_out = f" ({floor_mib / GIB:.0f} GiB were too few once)" if floor_mib else ""
        return least, Finding(Asks.MEMORY, self._said(what, f"{used / GIB:.1f}", instead) + ran_out)

    def limit(self) -> tuple[float | None, Finding | None]:
        """None: as it is. A class of which a run met its limit needs longer than anybody saw."""
        asked = [run.job.time_limit_s for run in self.runs]
        known = [each for each in asked if each is not None]
        if len(known) < len(asked) or any(run.state == TIMEOUT for run in self.runs):
            return None, None
        most_s = max(run.job.duration_s for run in self.runs)
        steps = ceil(most_s * (1 + self.margin) / LIMIT_STEP_S)
        least_s = max(steps * LIMIT_STEP_S, LIMIT_LEAST_S)
        if least_s > min(known) * LIMIT_SMALLER:
            return None, None
        what = f"up to {max(known) / 3600:.1f} h"
        text = self._said(what, f"{most_s / 3600:.1f} h", f"{least_s / 3600:.1f} h")
        return least_s, Finding(Asks.TIME, text)
