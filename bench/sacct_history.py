"""Histories as `sacct -P` prints them, with steps and what they used."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from tidegate.sim.advise.usage import COLUMNS
from tidegate.sim.replay.trace import TraceJob

MONDAY_S = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
DAY_S = 86400.0


def row(job_id: str, **values: str) -> str:
    return "|".join({"JobID": job_id, **values}.get(name, "") for name in COLUMNS)


def text(rows: Iterable[str]) -> str:
    return "\n".join(["|".join(COLUMNS), *rows, ""])


def when(at_s: float) -> str:
    return datetime.fromtimestamp(MONDAY_S + at_s, UTC).strftime("%FT%T")


def clock(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def tres(
    memory_gib: float = 4.0,
    cpus: float = 1.0,
    lasts_s: float = 3600.0,
    gpus: float | None = None,
    gpu_gib: float = 0.0,
) -> str:
    """TRESUsageInTot as 24.11 prints it."""
    gpu = (
        "" if gpus is None else f"gres/gpumem={gpu_gib * 1024:.0f}M,gres/gpuutil={gpus * 100:.0f},"
    )
    mem = f"mem={memory_gib * 1024 * 1024:.0f}K"
    return f"cpu={clock(cpus * lasts_s)},energy=0,fs/disk=87613,{gpu}{mem},pages=0,vmem=0"


def ran(
    job_id: str,
    at_s: float = 0.0,
    lasts_s: float = 3600.0,
    *,
    gpus: int = 1,
    cpus: int = 8,
    memory_gib: float = 32,
    nodes: int = 1,
    state: str = "COMPLETED",
    limit: str = "12:00:00",
    user: str = "ada",
    name: str = "train-1",
    partition: str = "gpu",
    used: str | None = None,
    most: str = "",
    steps: Sequence[str] = (),
) -> list[str]:
    """A job and its batch step; `steps`: other steps instead."""
    moments = {"Start": when(at_s), "End": when(at_s + lasts_s), "Submit": when(at_s)}
    gres = f"gres/gpu={gpus}," if gpus else ""
    asked = f"billing={cpus},cpu={cpus},{gres}mem={memory_gib:g}G,node={nodes}"
    used = tres(lasts_s=lasts_s) if used is None else used
    job = row(
        job_id,
        **moments,
        State=state,
        Partition=partition,
        NNodes=str(nodes),
        ReqTRES=asked,
        Timelimit=limit,
        User=user,
        Account="lab",
        JobName=name,
    )
    batch = row(
        f"{job_id}.batch",
        **moments,
        State=state,
        NNodes=str(nodes),
        TRESUsageInTot=used,
        TRESUsageInMax=most or used,
        JobName="batch",
    )
    return [job, *(steps or [batch])]


def step(job_id: str, at_s: float, lasts_s: float, used: str, state: str = "COMPLETED") -> str:
    moments = {"Start": when(at_s), "End": when(at_s + lasts_s), "Submit": when(at_s)}
    return row(job_id, **moments, State=state, NNodes="1", TRESUsageInTot=used, JobName="python")


@dataclass(frozen=True, slots=True)
class Habit:
    """How somebody's jobs ask and use; `memory` and `cpus` for each GPU, uses as parts of it."""

    user: str
    name: str
    memory_gib: int
    memory_used: float
    cpus: int
    cpus_used: float
    gpus_used: float
    limit: float


def habits(count: int, seed: int) -> list[Habit]:
    """Half of them ask far more memory than they use, a fifth uses a part of its GPUs."""
    chance = random.Random(f"habits {seed}")
    return [
        Habit(
            user=f"user{number}",
            name=chance.choice(["train", "tune", "eval"]),
            memory_gib=chance.choice([12, 40, 100]),
            memory_used=chance.choice([0.06, 0.1, 0.2, 0.7]),
            cpus=chance.choice([3, 4]),
            cpus_used=chance.uniform(0.2, 0.8),
            gpus_used=0.15 if chance.random() < 0.2 else 0.9,
            limit=chance.choice([1.3, 4.0, 12.0]),
        )
        for number in range(count)
    ]


def dressed(jobs: Iterable[TraceJob], count: int = 24, seed: int = 0) -> Iterator[str]:
    """A public history, which tells of no user and no use, as if people with habits had sent it.

    The same person's uses differ by a lognormal factor of sigma 0.25 from job to job.
    """
    people, chance = habits(count, seed), random.Random(f"jobs {seed}")
    for number, job in enumerate(jobs):
        one = people[min(int(chance.expovariate(5 / count)), count - 1)]
        gpus, noise = max(job.gpus_total, 1), chance.lognormvariate(0.0, 0.25)
        memory_gib, cpus = min(one.memory_gib * gpus, 180 * job.nodes), one.cpus * gpus
        used = tres(
            memory_gib=min(memory_gib * one.memory_used * noise, memory_gib),
            cpus=min(cpus * one.cpus_used * noise, cpus),
            lasts_s=job.duration_s,
            gpus=min(gpus * one.gpus_used * noise, gpus),
            gpu_gib=gpus * one.gpus_used * 8,
        )
        limit_s = max(job.duration_s * one.limit, 600)
        yield from ran(
            str(1000 + number),
            job.submit_s,
            job.duration_s,
            gpus=job.gpus_total,
            cpus=cpus,
            memory_gib=memory_gib,
            nodes=job.nodes,
            limit=clock(limit_s),
            user=one.user,
            name=f"{one.name}-{number}",
            used=used,
        )
