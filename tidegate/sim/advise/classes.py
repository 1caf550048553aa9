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
from tidegate.sim.advise.parts import SHARE_MOST, Part
from tidegate.sim.advise.usage import COMPLETED, OUT_OF_MEMORY, TIMEOUT, Ran
from tidegate.sim.replay.trace import DAY_S, GPU, TraceJob

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
    PART = "gpu-part"
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
    NO_PARTS = "no-parts"
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
    gres: str = GPU

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
            gres=self.gres,
        )


@frozen
class Finding:
    """One thing that a class asks too much of."""

    code: Asks
    sentence: str


@frozen
class Proposal:
    """What a class could ask instead; `time_limit_s` None: as long as before.

    `options`: for sbatch. `runs`: those that ended well. `part`: of a GPU in the place of a whole
    one, with which they may last `lasts` times as long.
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
    part: Part | None = None
    lasts: float = 1.0

    @property
    def options(self) -> str:
        said = []
        codes = {each.code for each in self.findings}
        gres = self.key.gres
        kind = f"{gres}:{self.gpu_type}" if self.gpu_type else gres
        if self.part:
            said.append(f"--gres={self.part.request}")
        elif Asks.GPUS in codes or self.gpu_type != self.key.gpu_type:
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
        limits, part = (job.time_limit_s, self.time_limit_s), self.part
        return replace(
            job,
            gpus=part.count if part else self.gpus,
            gpus_total=part.count if part else min(job.gpus_total, self.gpus * job.nodes),
            gpu_type=part.gpu_type if part else self.gpu_type,
            gres=part.gres if part else job.gres,
            duration_s=job.duration_s * self.lasts,
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
        if self.part and not self.part.holds(used.gpus or 0.0, used.gpu_memory_mib or 0.0):
            return False
        limit_s = job.time_limit_s if self.part else self.time_limit_s
        return limit_s is None or job.duration_s * self.lasts <= limit_s


def stem(name: str) -> str:
    """`train-0017` and `train-0018` are the same work."""
    return re.sub(r"\d+", "#", name)


def key_of(run: Ran) -> ClassKey:
    job = run.job
    what = (job.nodes, job.gpus, job.gpu_type, job.cpus, job.memory_mib, job.constraint)
    return ClassKey(run.user, stem(run.name), job.partition, *what, gres=job.gres)


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
    key: ClassKey,
    runs: Sequence[Ran],
    floor_mib: int,
    gpu_memory_mib: int,
    margin: float = MARGIN,
    parts: Sequence[Part] = (),
) -> Proposal | Silent:
    """What the class could ask; `gpu_memory_mib`: of the smallest GPU it may get, 0: unknown;
    `parts`: of such GPUs that it may get, those that would be best first.
    """
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
    part = sized.part(parts) if gpus == 1 else None
    limit_s, why_time = sized.limit() if part is None else (None, None)
    why_part = sized.why(part) if part else None
    findings = tuple(filter(None, (why_gpus, why_part, why_cpus, why_memory, why_time)))
    if not findings:
        return sized.silent(gpu_memory_mib if gpus == 1 and not parts else 0)
    asks = (gpus, key.gpu_type, cpus, memory_mib, limit_s)
    lasts = sized.lasts(part) if part else 1.0
    return Proposal(key, len(well), days, *asks, findings, part, lasts)


@frozen
class _Sized:
    """Each size of a class; of those that are not known in enough runs none is changed."""

    key: ClassKey
    runs: Sequence[Ran]
    margin: float

    def silent(self, gpu_memory_mib: int) -> Silent:
        """Why nothing is found; `gpu_memory_mib`: of a GPU that nobody has in parts, 0: of none."""
        if gpu_memory_mib and (of_gpu := self._of_gpu()):
            did, held_mib = of_gpu
            if did <= SHARE_MOST and held_mib <= gpu_memory_mib * SHARE_MOST:
                return Silent.NO_PARTS
        is_known = self._most([run.used.memory_mib for run in self.runs]) is not None
        return Silent.FITS if is_known else Silent.NO_USAGE

    def _of_gpu(self) -> tuple[float, float] | None:
        """How much of a GPU's time it may use, and how much of its memory in MiB."""
        did = self._most([run.used.gpus for run in self.runs])
        held_mib = self._most([run.used.gpu_memory_mib for run in self.runs])
        if did is None or held_mib is None:
            return None
        return did * (1 + self.margin), held_mib * (1 + self.margin)

    def part(self, parts: Sequence[Part]) -> Part | None:
        """The first that is enough, and on which no run would have met its time limit."""
        of_gpu = self._of_gpu()
        limits = [run.job.time_limit_s for run in self.runs if run.job.time_limit_s is not None]
        most_s = max(run.job.duration_s for run in self.runs)
        for each in parts if of_gpu and of_gpu[0] else ():
            if (
                of_gpu
                and each.holds(*of_gpu)
                and all(most_s * self.lasts(each) <= limit_s for limit_s in limits)
            ):
                return each
        return None

    def lasts(self, part: Part) -> float:
        of_gpu = self._of_gpu()
        assert of_gpu
        return part.lasts(of_gpu[0])

    def why(self, part: Part) -> Finding:
        did, held_mib = (each / (1 + self.margin) for each in self._of_gpu() or (0.0, 0.0))
        used = f"{100 * did:.0f} % of its time, and {held_mib / GIB:.1f} GiB of its memory,"
        said = self._said("a whole GPU", used, part.request)
        played = f"played as if jobs lasted {self.lasts(part):.2f} times as long"
        return Finding(Asks.PART, f"{said}: {part.told}; {played}")

    def _most(self, used: Sequence[float | None]) -> float | None:
        """Also of runs that failed; only those that ended well count as known."""
        well = [u for u, run in zip(used, self.runs, strict=True) if run.state == COMPLETED]
        known = [each for each in used if each is not None]
        if sum(each is not None for each in well) < RUNS_LEAST:
            return None
        return max(known)

    def _said(self, what: str, used: str, instead: str) -> str:
        return f"asks {what}, used at most {used} in {len(self.runs)} runs: {instead} would do"

    @property
    def _called(self) -> str:
        return "GPUs" if self.key.gres == "gpu" else f"{self.key.gres} devices"

    def gpus(self, gpu_memory_mib: int) -> tuple[int, Finding | None]:
        asked = self.key.gpus
        did = self._most([run.used.gpus for run in self.runs])
        touched = self._most([run.used.gpus_touched for run in self.runs])
        if asked and touched is not None:
            # Whole GPUs, each looked at in every minute: nothing is added to what was counted.
            least = max(int(touched), ceil(did or 0.0))
            text = self._said(
                f"{asked} {self._called}", f"{int(touched)} of them", f"{least or 'none'}"
            )
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
        whole = 0 if self.key.job.has_parts else gpus
        least = max(ceil(did * (1 + self.margin)), whole, 1)
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
