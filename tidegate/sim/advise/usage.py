"""What jobs of a history used, by the steps that `sacct` lists below them.

Source: sacct(1), TRESUsageInTot: the sum over a step's tasks of each one's highest mark; and
slurm.schedmd.com/gres.html#Accounting for gres/gpuutil (percent) and gres/gpumem. Before 24.05.1
Slurm kept of a task with several GPUs only the last one's (its change log). Without NVML there is
no figure or 0, whatever the GPUs do; of parts of a GPU (MIG) NVML says nothing.

Beside it, what nodes of this cluster told of each GPU of a job in each minute (`agent.gpu_time`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from types import MappingProxyType

from tidegate.core.model.frozen import frozen
from tidegate.sim.replay.trace import (
    MIB,
    SACCT_COLUMNS,
    BadLine,
    BadTrace,
    Trace,
    TraceJob,
    duration_s,
    instant_s,
    sacct_rows,
)

# Beside what `tidegate replay` reads. The name comes last: it may hold what separates the others.
USAGE_COLUMNS = ("Timelimit", "User", "TRESUsageInTot", "TRESUsageInMax", "JobName")
COLUMNS = (*SACCT_COLUMNS, *USAGE_COLUMNS[:2], "Account", "Constraints", *USAGE_COLUMNS[2:])
# Without it nothing is known of the GPUs of an array's tasks, which nodes know by this number.
RAW_ID = "JobIDRaw"
ASKED_COLUMNS = (*COLUMNS[:-1], RAW_ID, COLUMNS[-1])

# Slurm looks at a task each 30 s (JobAcctGatherFrequency): a shorter step may have no figures.
SAMPLED_S = 30.0
# A count below zero, as unsigned, or of a counter that began anew in the middle.
MEMORY_MIB_MAX = 64.0 * 1024 * 1024
# Hyperthreads of a job's cores that it did not ask for, and what is rounded.
CPUS_BEYOND = 2.0
GPUS_BEYOND = 1.05
# Of a run's GPU-seconds nodes tell all but the first minute and the last.
TOLD_LEAST = 0.9
# The day, the job, the node, the start, GPU-seconds idle and seen, how many GPUs, and as bits which
# were used.
GPU_TIME = re.compile(
    r"%\d{4}-\d{2}-\d{2}\|(\d+)\|i-[0-9a-f]+\|(\d+)\|\d+\|(\d+)(?:\|(\d{1,2})\|(\d{1,20}))?",
    re.ASCII,
)

OUT_OF_MEMORY, TIMEOUT, COMPLETED = "OUT_OF_MEMORY", "TIMEOUT", "COMPLETED"


@frozen
class Used:
    """The most at a time, over all of a job's nodes. None: not known, or not to be believed.

    `gpus`: how much its GPUs did together, 1.0 for one that did all it can. `cpus`: the mean of
    steps, of which nothing finer is recorded. `gpus_touched`: how many of its GPUs did anything.
    """

    memory_mib: float | None = None
    cpus: float | None = None
    gpus: float | None = None
    gpu_memory_mib: float | None = None
    gpus_touched: int | None = None


@frozen
class Ran:
    """A job of the history, what it is called and what it used.

    `user`: "" for who is no user any more, of whom Slurm knows no name. `state`: Slurm's, of its
    last run; OUT_OF_MEMORY if a run or step of it was.
    """

    job: TraceJob
    user: str
    name: str
    state: str
    used: Used


type Run = tuple[str, int]
"""The job's own number, and when it began (epoch seconds)."""


@frozen
class GpuTold:
    """What a node told of the GPUs of a run, over some of its time. `used`: as bits those that did
    anything; None: it was not looked at.
    """

    seen_gpu_s: float
    gpus: int
    used: int | None


@frozen
class _Step:
    from_s: float
    to_s: float
    used: Used


def parted(text: str) -> tuple[str, Mapping[Run, list[GpuTold]]]:
    """What `sacct` printed, and what lines that begin with % say of GPUs."""
    lines = text.splitlines()
    found: dict[Run, list[GpuTold]] = {}
    for line in lines:
        if told := GPU_TIME.fullmatch(line):
            gpus, used = (int(told[4]), int(told[5])) if told[4] else (0, None)
            of_run = found.setdefault((told[1], int(told[2])), [])
            of_run.append(GpuTold(float(told[3]), gpus, used))
    return "".join(f"{line}\n" for line in lines if not line.startswith("%")), found


def read_usage(
    text: str,
    trace: Trace,
    *,
    sums_gpus: bool,
    gpus_told: Mapping[Run, Sequence[GpuTold]] = MappingProxyType({}),
) -> tuple[Ran, ...]:
    """The jobs of a trace that was read from the same `sacct -P`, with what they used.

    `sums_gpus`: whether that Slurm was 24.05.1 or newer. Errors: BadTrace, columns are missing.
    """
    header = text.split("\n", 1)[0].rstrip("\r").split("|")
    if missing := [name for name in COLUMNS if name not in header]:
        raise BadTrace(
            f"line 1: the columns {', '.join(missing)} are missing; export them with"
            f" sacct -a -P -D -S 2026-01-01 -E now -o {','.join(COLUMNS)}"
        )
    said: dict[str, tuple[str, str]] = {}
    began: dict[str, Run] = {}
    states: dict[str, str] = {}
    steps: dict[str, list[Mapping[str, str]]] = {}
    for values in sacct_rows(text):
        job_id, _, step = values["JobID"].partition(".")
        state = values["State"].split(" ")[0]
        if state == OUT_OF_MEMORY or (not step and states.get(job_id) != OUT_OF_MEMORY):
            states[job_id] = state
        if step:
            steps.setdefault(job_id, []).append(values)
        else:
            said[job_id] = values["User"], values["JobName"]
            began[job_id] = values.get(RAW_ID) or job_id, _began(values)
    # Proof, too, that this file's Slurm sums: one task alone did more than one GPU can.
    proved = sums_gpus and any(_percent(row) > 100 for rows in steps.values() for row in rows)
    seeing = {
        job.partition
        for job in trace.jobs
        if any(_tres_mib(row, "gres/gpumem") for row in steps.get(job.job_id, ()))
    }
    touched = {
        job.job_id: _touched(job, gpus_told.get(began[job.job_id], ())) for job in trace.jobs
    }
    # Where nobody's GPU ever did anything it is what tells that does not see.
    awake = {job.partition for job in trace.jobs if touched[job.job_id]}
    return tuple(
        Ran(
            job,
            *said[job.job_id],
            states[job.job_id],
            replace(
                _used(job, steps.get(job.job_id, ()), _sees(job, seeing, sums_gpus=proved)),
                gpus_touched=touched[job.job_id] if job.partition in awake else None,
            ),
        )
        for job in trace.jobs
    )


def _began(values: Mapping[str, str]) -> int:
    """0: it never did."""
    try:
        return round(instant_s(values, "Start"))
    except BadLine:
        return 0


def _touched(job: TraceJob, told: Sequence[GpuTold]) -> int | None:
    """How many of its GPUs did anything in the run; None: not known of nearly all of it."""
    seen_s = sum(each.seen_gpu_s for each in told)
    is_whole = seen_s >= TOLD_LEAST * job.gpus * job.duration_s > 0
    used = [each.used for each in told if each.used is not None and each.gpus == job.gpus]
    if job.nodes != 1 or job.has_parts or not is_whole or len(used) < len(told):
        return None
    return reduce(or_, used, 0).bit_count()


def _sees(job: TraceJob, seeing: set[str], *, sums_gpus: bool) -> bool:
    """Whether what Slurm says of this job's GPUs can be believed."""
    return job.partition in seeing and not job.has_parts and (job.gpus_total == 1 or sums_gpus)


def _used(job: TraceJob, rows: Iterable[Mapping[str, str]], sees_gpus: bool) -> Used:
    steps = [step for row in rows if (step := _step(job, row))]
    if not steps:
        return Used()
    gpus = (_peak((s.from_s, s.to_s, s.used.gpus) for s in steps)) if sees_gpus else None
    return Used(
        memory_mib=_peak((s.from_s, s.to_s, s.used.memory_mib) for s in steps),
        cpus=_peak((s.from_s, s.to_s, s.used.cpus) for s in steps),
        gpus=gpus if gpus is None or gpus <= job.gpus_total * GPUS_BEYOND else None,
        gpu_memory_mib=_peak((s.from_s, s.to_s, s.used.gpu_memory_mib) for s in steps)
        if sees_gpus
        else None,
    )


def _step(job: TraceJob, row: Mapping[str, str]) -> _Step | None:
    """None: it has no figures, and was too short to have any or ran nothing of the job's."""
    try:
        from_s, to_s = instant_s(row, "Start"), instant_s(row, "End")
    except BadLine:
        return None if not row["TRESUsageInTot"] else _Step(0.0, 1e12, Used())
    lasted_s = to_s - from_s
    if not row["TRESUsageInTot"]:
        is_small = lasted_s < SAMPLED_S or row["JobID"].endswith(".extern")
        return None if is_small else _Step(from_s, to_s, Used())
    tres = _tres(row, "TRESUsageInTot")
    memory_mib = _tres_mib(row, "mem")
    percent = _number(tres.get("gres/gpuutil", ""))
    used = Used(
        memory_mib=memory_mib,
        cpus=_cpus(job, tres.get("cpu", ""), lasted_s),
        gpus=None if percent is None else percent / 100,
        gpu_memory_mib=_tres_mib(row, "gres/gpumem"),
    )
    return _Step(from_s, max(to_s, from_s + 1), used)


def _cpus(job: TraceJob, text: str, lasted_s: float) -> float | None:
    """None too when more was counted than the job's CPUs can do."""
    try:
        counted_s = duration_s(text)
    except BadLine:
        return None
    if counted_s is None or lasted_s < SAMPLED_S:
        return 0.0 if counted_s is not None else None
    cpus = counted_s / lasted_s
    return cpus if cpus <= job.cpus * job.nodes * CPUS_BEYOND else None


def _peak(spans: Iterable[tuple[float, float, float | None]]) -> float | None:
    """The largest sum of what runs at a time; None: of one of them it is not known."""
    changes: list[tuple[float, float]] = []
    for from_s, to_s, much in spans:
        if much is None:
            return None
        changes += [(from_s, much), (to_s, -much)]
    # What ends in a second is gone before what begins in it.
    now = most = 0.0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def _tres(row: Mapping[str, str], column: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in row[column].split(",") if "=" in part)


def _percent(row: Mapping[str, str]) -> float:
    return _number(_tres(row, "TRESUsageInMax").get("gres/gpuutil", "")) or 0.0


def _tres_mib(row: Mapping[str, str], name: str) -> float | None:
    found = re.fullmatch(
        r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([KMGT]?)", _tres(row, "TRESUsageInTot").get(name, "")
    )
    if found is None:
        return None
    mib = float(found[1]) * MIB[found[2]]
    return mib if mib <= MEMORY_MIB_MAX else None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,6}(?:\.[0-9]{1,9})?", text) else None
