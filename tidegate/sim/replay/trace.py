"""Job histories: what `sacct -P` exports, and CSV files with one line for each job."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from tidegate.core.model.devices import SHARED_GRES
from tidegate.core.model.frozen import frozen
from tidegate.core.model.mig import named_profile
from tidegate.core.model.slurm import Job
from tidegate.sim.replay.csv_rows import cut

# What a CSV file must have; `user`, `account`, `time_limit_s`, `cpus`, `memory_mib` (each per
# node), `gpu_type`, `gres` (shard or mps, of which `gpus` are then so many) and `constraint` may be
# there.
CSV_COLUMNS = ("job_id", "submit_s", "duration_s", "gpus", "nodes", "partition")

# What the replay reads of `sacct -P`; others are ignored.
SACCT_COLUMNS = ("JobID", "Submit", "Start", "End", "State", "Partition", "NNodes", "ReqTRES")
SACCT_COMMAND = (
    "sacct -a -P -D -S 2026-01-01 -E now -o JobID,Submit,Start,End,State,Partition,NNodes,"
    "ReqTRES,Timelimit,User,Account,Constraints"
)

# A GRES that runs no job that asks for GPUs, and the other way round.
NEURON = "neuron"

# A clock that was wrong once, or a start of 1970, makes decades of it; they are not played.
MAX_JOB_DAYS = 366
MAX_SPAN_DAYS = 5 * 366
DAY_S = 86400.0
GPU = "gpu"

# Of a column: 3,000 years of seconds, and as many jobs, nodes or GPUs as nobody has.
MOST_S, MOST_COUNT = 1e11, 9_999_999

MIB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024, "": 1 / 1024 / 1024}


class BadTrace(Exception):
    """A history that cannot be read; the message names lines."""


@frozen
class TraceJob:
    """A job of the history. `gpus`, `cpus` and `memory_mib` are those of each of its nodes.

    `gres`: shard or mps where `gpus` are so many of these. `gpu_type`: as the history calls it.

    `gpus_total`: what it asked for in all, at most `gpus` times `nodes`.
    `time_limit_s` None: the history does not say. `submit_s` counts from the history's start.
    `queued`: as Slurm shows it, where it is no history but waits or runs now.
    """

    job_id: str
    submit_s: float
    duration_s: float
    nodes: int
    gpus: int
    gpus_total: int
    partition: str
    cpus: int = 1
    memory_mib: int = 0
    gpu_type: str = ""
    time_limit_s: float | None = None
    user: str = "user"
    account: str = ""
    constraint: str = ""
    queued: Job | None = None
    gres: str = GPU

    @property
    def has_parts(self) -> bool:
        """It asked for parts of GPUs, as far as the history's words tell."""
        is_cut = named_profile(self.gpu_type) is not None
        return bool(self.gpus) and (self.gres in SHARED_GRES or is_cut)


@frozen
class Broken:
    """A line that is no job."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@frozen
class Trace:
    """Jobs in the order of their submission, and what could not be read.

    `skipped`: lines that are no work to replay (steps, jobs that never ran), by reason.
    `starts_at_s`: second 0 of the history, in seconds since 1970; None: it does not say.
    """

    jobs: tuple[TraceJob, ...]
    broken: tuple[Broken, ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()
    starts_at_s: float | None = None


class BadLine(Exception):
    """Why a line, or what stands in one of its columns, cannot be read."""


class _Skip(Exception):
    """Why a line is no work to replay."""


def read_trace(text: str, *, is_lenient: bool = False) -> Trace:
    """Read either format, known by its first line. Errors: BadTrace, naming broken lines."""
    lines = text.splitlines()
    header = lines[0] if lines else ""
    is_sacct = "|" in header
    try:
        columns = header.split("|") if is_sacct else next(csv.reader([header]), [])
    except csv.Error as error:
        raise BadTrace(f"line 1: is no CSV: {error}") from error
    wanted = SACCT_COLUMNS if is_sacct else CSV_COLUMNS
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise BadTrace(f"line 1: the columns {', '.join(missing)} are missing")
    if twice := sorted({name for name in columns if name and columns.count(name) > 1}):
        raise BadTrace(f"line 1: names {', '.join(map(cut, twice))} twice: keep one")
    trace = _read(lines[1:], columns, is_sacct=is_sacct)
    if trace.broken and not is_lenient:
        told = "\n".join(str(each) for each in trace.broken[:10])
        more = f"\nand {len(trace.broken) - 10} more" if len(trace.broken) > 10 else ""
        raise BadTrace(f"{told}{more}")
    if not trace.jobs:
        raise BadTrace("no line is a job that ran")
    return trace


def _read(lines: Iterable[str], columns: list[str], *, is_sacct: bool) -> Trace:
    jobs: list[TraceJob] = []
    broken: list[Broken] = []
    skipped: dict[str, int] = {}
    seen: dict[str, tuple[int, int]] = {}
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        try:
            row = sacct_fields(line, columns) if is_sacct else _fields(line)
            if len(row) != len(columns):
                raise BadLine(f"{len(row)} fields instead of {len(columns)}")
            values = dict(zip(columns, row, strict=True))
            job = _sacct_job(values) if is_sacct else _csv_job(values)
            if job.job_id in seen and not is_sacct:
                raise BadLine(f"job {job.job_id} is in line {seen[job.job_id][0]} already")
            if job.job_id in seen:  # of a requeued job the last run counts
                skipped["earlier runs"] = skipped.get("earlier runs", 0) + 1
                before = jobs[seen[job.job_id][1]]
                job = replace(job, submit_s=min(job.submit_s, before.submit_s))
                jobs[seen[job.job_id][1]] = job
                continue
            seen[job.job_id] = number, len(jobs)
            jobs.append(job)
        except BadLine as problem:
            broken.append(Broken(number, str(problem)))
        except _Skip as reason:
            skipped[str(reason)] = skipped.get(str(reason), 0) + 1
    jobs.sort(key=lambda job: job.submit_s)
    if late := list(_too_long(jobs, seen)):
        broken = sorted([*broken, *late], key=lambda each: each.line)
        out = {each.line for each in late}
        jobs = [job for job in jobs if seen[job.job_id][0] not in out]
    first_s = None
    if is_sacct and jobs:
        first_s = jobs[0].submit_s // 86400 * 86400
        jobs = [replace(job, submit_s=job.submit_s - first_s) for job in jobs]
    return Trace(tuple(jobs), tuple(broken), tuple(sorted(skipped.items())), first_s)


def _too_long(jobs: Sequence[TraceJob], lines: Mapping[str, tuple[int, int]]) -> Iterator[Broken]:
    """What ends too long after the first job's submission to be played."""
    for job in jobs:
        days = (job.submit_s + job.duration_s - jobs[0].submit_s) / DAY_S
        if days > MAX_SPAN_DAYS:
            text = f"ends {days:,.0f} days after the first job came, more than {MAX_SPAN_DAYS}"
            yield Broken(lines[job.job_id][0], f"{text}: is a clock or the first line wrong?")


# -- CSV -------------------------------------------------------------------------------------


def _fields(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error as error:
        raise BadLine(f"is no CSV: {error}") from None


def _csv_job(values: Mapping[str, str]) -> TraceJob:
    nodes, gpus_total = _count(values, "nodes", 1), _count(values, "gpus", 0)
    gpus = -(-gpus_total // nodes)
    if not values["job_id"]:
        raise BadLine("job_id is empty")
    limit = values.get("time_limit_s", "")
    return TraceJob(
        job_id=values["job_id"],
        submit_s=_seconds(values, "submit_s"),
        duration_s=_played(_seconds(values, "duration_s")),
        nodes=nodes,
        gpus=gpus,
        gpus_total=gpus_total,
        partition=values["partition"],
        cpus=_count(values, "cpus", 1) if values.get("cpus") else max(gpus, 1),
        memory_mib=_count(values, "memory_mib", 0) if values.get("memory_mib") else 0,
        gpu_type=values.get("gpu_type", "").lower(),
        time_limit_s=_seconds(values, "time_limit_s") if limit else None,
        user=values.get("user", "") or "user",
        account=values.get("account", ""),
        constraint=values.get("constraint", ""),
        gres=_gres(values.get("gres", "")),
    )


def _gres(text: str) -> str:
    if text in ("", GPU, NEURON, *SHARED_GRES):
        return text or GPU
    named = ", ".join((GPU, NEURON, *SHARED_GRES[:-1]))
    raise BadLine(f"gres must be {named} or {SHARED_GRES[-1]}, is {cut(text)!r}")


def _seconds(values: Mapping[str, str], name: str) -> float:
    try:
        value = float(values[name])
    except ValueError:
        raise BadLine(f"{name} must be a number, is {cut(values[name])!r}") from None
    if not 0 <= value < MOST_S:
        raise BadLine(f"{name} must be 0-{MOST_S:,.0f} seconds, is {cut(values[name])}")
    return value


def _count(values: Mapping[str, str], name: str, least: int) -> int:
    text = values[name]
    found = _whole(text)
    if found is None or found < least:
        raise BadLine(f"{name} must be a whole number, {least}-{MOST_COUNT:,}, is {cut(text)!r}")
    return found


def _whole(text: str) -> int | None:
    """A count as histories have them; None: it is none."""
    return int(text) if re.fullmatch(r"[0-9]{1,7}", text) else None  # up to MOST_COUNT


def _played(duration_s: float) -> float:
    if duration_s > MAX_JOB_DAYS * DAY_S:
        days = duration_s / DAY_S
        text = f"it ran for {days:,.0f} days, more than {MAX_JOB_DAYS}"
        raise BadLine(f"{text}: was a clock wrong? leave the line out")
    return duration_s


# -- sacct -----------------------------------------------------------------------------------


def sacct_fields(line: str, columns: Sequence[str]) -> list[str]:
    """As many as there are columns, if the line is whole; a job's name at its end may hold `|`."""
    return line.split("|", len(columns) - 1 if columns[-1] == "JobName" else -1)


def sacct_rows(text: str) -> Iterator[dict[str, str]]:
    """The whole lines of `sacct -P` by column, steps too."""
    header, *lines = text.splitlines() or [""]
    columns = header.split("|")
    for line in lines:
        row = sacct_fields(line, columns)
        if len(row) == len(columns):
            yield dict(zip(columns, row, strict=True))


def _sacct_job(values: Mapping[str, str]) -> TraceJob:
    """One line of `sacct -P -D`: arrays have a line for each task, requeues for each run."""
    job_id = values["JobID"]
    if "." in job_id:
        raise _Skip("steps")
    if not re.fullmatch(r"\d+(_(\d+|\[.*\])|\+\d+)?", job_id):
        raise BadLine(f"JobID must be like 12, 12_3 or 12+1, is {cut(job_id)!r}")
    state = values["State"].split(" ")[0]
    if state in ("PENDING", "RUNNING", "SUSPENDED", "REQUEUED"):
        raise _Skip(f"{state.lower()}: not ended")
    if values["Start"] in ("Unknown", "None", "") or "[" in job_id:
        raise _Skip("never started")
    start_s, end_s = instant_s(values, "Start"), instant_s(values, "End")
    if end_s < start_s:
        raise BadLine(f"End {values['End']} is before Start {values['Start']}")
    nodes = _count(values, "NNodes", 1)
    tres = _tres(values["ReqTRES"])
    gres, gpus_total, gpu_type = _devices(tres)
    memory = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{0,9})?)([KMGT]?)n?", tres.get("mem", "0M"))
    if memory is None:
        raise BadLine(f"ReqTRES must have mem like 4096M or 1.5G, has mem={cut(tres['mem'])}")
    return TraceJob(
        job_id=job_id,
        submit_s=instant_s(values, "Submit"),
        duration_s=_played(end_s - start_s),
        nodes=nodes,
        gpus=-(-gpus_total // nodes),
        gpus_total=gpus_total,
        partition=values["Partition"].split(",")[0],
        cpus=max(-(-_number(tres.get("cpu", "1")) // nodes), 1),
        memory_mib=int(float(memory[1]) * MIB[memory[2]] / nodes),
        gpu_type=gpu_type,
        time_limit_s=duration_s(values.get("Timelimit", "")),
        user=values.get("User", "") or "user",
        account=values.get("Account", ""),
        constraint=values.get("Constraints", ""),
        gres=gres,
    )


def _tres(text: str) -> dict[str, str]:
    """`cpu=4,gres/gpu:a10g=1,mem=16G,node=1`."""
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def _devices(tres: Mapping[str, str]) -> tuple[str, int, str]:
    """GRES, how many of it in all, and of which type: `gres/gpu:a100_1g.5gb=1,gres/gpu=1`, and
    `gres/shard=3` or `gres/mps=50` of a job that shares GPUs.

    Slurm tells types where AccountingStorageTRES names them (slurm.conf(5)); MIG instances are
    GPUs of such a type. Source: tests/contracts/test_parts_accounting.py.
    """
    each = [(gres, *_of_gres(tres, gres)) for gres in (GPU, NEURON, *SHARED_GRES)]
    asked = [(gres, total, types) for gres, total, types in each if total]
    if len(asked) > 1:
        raise _Skip("devices in two ways at once, as whole and shared GPUs")
    gres, total, types = asked[0] if asked else (GPU, 0, [])
    if len(types) > 1 and any(map(named_profile, types)):
        raise _Skip("MIG instances of several types for one job")
    return gres, total, types[0] if len(types) == 1 else ""


def _of_gres(tres: Mapping[str, str], gres: str) -> tuple[int, list[str]]:
    head = f"gres/{gres}:"
    typed = sorted(name for name in tres if name.startswith(head))
    total = _number(tres.get(f"gres/{gres}", "0"))
    total = total or sum(_number(tres[name]) for name in typed)
    return total, [name.removeprefix(head).lower() for name in typed]


def _number(text: str) -> int:
    found = _whole(text)
    if found is None:
        raise BadLine(f"ReqTRES must have whole numbers of CPUs and GPUs, has {cut(text)!r}")
    return found


def instant_s(values: Mapping[str, str], name: str) -> float:
    try:
        return datetime.fromisoformat(values[name]).replace(tzinfo=UTC).timestamp()
    except ValueError:
        text = f"must be an instant like 2026-01-31T08:00:00, is {cut(values[name])!r}"
        raise BadLine(f"{name} {text}") from None


def duration_s(text: str) -> float | None:
    """`1-02:03:04`, `02:03:04` or `03:04`; None for `UNLIMITED` and `Partition_Limit`."""
    if text in ("", "UNLIMITED", "Partition_Limit"):
        return None
    found = re.fullmatch(
        r"(?:([0-9]{1,6})-)?(?:([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{1,6})(?:\.[0-9]+)?", text
    )
    if found is None:
        raise BadLine(f"Timelimit must be like 1-02:03:04 or 02:03:04, is {cut(text)!r}")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(days * 86400 + hours * 3600 + minutes * 60 + seconds)
