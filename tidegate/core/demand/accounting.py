"""Limits of associations, QOS and licences, applied before Slurm gets to look at them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from tidegate.core.model.slurm import Association, Job, Reading

WORDS = {
    "cpu": "CPUs",
    "mem": "MiB of memory",
    "node": "nodes",
    "job": "jobs",
    "wall": "wall time",
}
LIMITS = ("in_all", "per_user", "per_account", "per_job", "per_node")

# TRES of ours that are about time.
MINUTES, LEFT, WALL = "minutes/", "left/", "wall"

# What a job without a time limit may take.
ENDLESS_MIN = 10**9


class Caps:
    """What accounting will let start, counted from the jobs that hold nodes now.

    Slurm tests these limits only after it has selected nodes: with no node up the pending
    reason hides them, and nodes bought over a cap would stand idle. CPUs are counted as asked
    for, nodes as if no job shared one: Slurm may count more of the first, fewer of the second.
    """

    def __init__(self, reading: Reading) -> None:
        self._used: Counter[tuple[str, str, str]] = Counter()
        self._caps = [*reading.associations, *_of_licences(reading)]
        if len(self._caps) > 1:  # of two that allow the same, always the same one is named
            self._caps.sort(key=repr)
        self._timed = [cap.tres for cap in self._caps if _is_timed(cap.tres)]
        self._has_per_node = any(cap.per_node is not None for cap in self._caps)
        self._applicable: dict[tuple[object, ...], tuple[Association, ...]] = {}
        self._in_force: dict[tuple[object, ...], tuple[Association, ...]] = {}
        for job in reading.jobs if self._caps else ():
            if not job.is_pending:
                self._take(job, 1)

    def spread(self, job: Job) -> Job:
        """The job on so many nodes that none gives more than a cap per node allows."""
        if not self._has_per_node or not self._over_per_node(job):
            return job
        for number, each in enumerate(job.spreads):
            rest = job.spreads[number + 1 :]
            wider = replace(job, nodes=each.nodes, shape=each.shape, spreads=rest)
            if not self._over_per_node(wider):
                return wider
        return job

    def admit(self, job: Job) -> tuple[int, str]:
        """How many of the job's `count` may start, and which cap stops the rest."""
        if not self._caps:
            return job.count, ""
        found = [(*self._admitted(each), each) for each in _with_licences(job)]
        admitted, stopped_by, chosen = max(found, key=lambda each: each[0])
        self._take(chosen, admitted)
        return admitted, stopped_by

    def admit_together(self, jobs: Sequence[Job]) -> str:
        """Which cap stops one of these jobs, which start together or not; "" when none does."""
        taken: list[Job] = []
        for job in jobs:
            admitted, sentence = self.admit(job if job.count == 1 else replace(job, count=1))
            if not admitted:
                for one in taken:
                    self._take(one, -1)
                return sentence
            taken.append(job)
        return ""

    def _admitted(self, job: Job) -> tuple[int, str]:
        admitted, stopped_by = job.count, ""
        uses = self._uses(job)
        for cap in self._caps_in_force(job, uses):
            room, sentence = self._room(cap, job, uses[cap.tres])
            if room < admitted:
                admitted, stopped_by = max(room, 0), sentence
        return admitted, stopped_by

    def _uses(self, job: Job) -> dict[str, int]:
        found = usage(job)
        if self._timed and job.is_pending:
            found |= {tres: amount for tres in self._timed if (amount := _timed(tres, job, found))}
        return found

    def _caps_of(self, job: Job, uses: Mapping[str, int]) -> tuple[Association, ...]:
        key = (job.account, job.user, job.qos, job.partitions, *uses)
        if key not in self._applicable:
            found = (cap for cap in self._caps if cap.tres in uses and covers(cap, job))
            self._applicable[key] = tuple(found)
        return self._applicable[key]

    def _caps_in_force(self, job: Job, uses: Mapping[str, int]) -> tuple[Association, ...]:
        key = (job.account, job.user, job.qos, job.partitions, *uses)
        if key not in self._in_force:
            self._in_force[key] = in_force(self._caps_of(job, uses), job)
        return self._in_force[key]

    def _over_per_node(self, job: Job) -> bool:
        uses = usage(job)
        return any(
            cap.per_node is not None and uses[cap.tres] > cap.per_node * job.nodes
            for cap in self._caps_in_force(job, uses)
        )

    def _room(self, cap: Association, job: Job, amount: int) -> tuple[int, str]:
        kind = _kind(cap.tres)
        if cap.tres.startswith(LEFT) and cap.in_all is not None:
            return 0, f"{cap.scope} has used up its minutes of {kind}"
        if cap.per_job is not None and amount > cap.per_job:
            asks = "sets no limit" if amount >= ENDLESS_MIN else f"asks {amount}"
            return 0, f"{cap.scope} allows {cap.per_job} {kind} per job, it {asks}"
        if cap.per_node is not None and amount > cap.per_node * job.nodes:
            asks = f"asks {ceil(amount / job.nodes)}"
            return 0, f"{cap.scope} allows {cap.per_node} {kind} per node, it {asks}"
        room, sentence = job.count, ""
        in_all = "beside what runs" if cap.tres.startswith(MINUTES) else "in all"
        for limit, of, whose in (
            (cap.in_all, "", in_all),
            (cap.per_user, f"user {job.user}", "per user"),
            (cap.per_account, f"account {job.account}", "per account"),
        ):
            used = self._used[cap.scope, cap.tres, of]
            if limit is not None and (limit - used) // amount < room:
                room = (limit - used) // amount
                sentence = f"{cap.scope} allows {limit} {kind} {whose}, {used} are used or promised"
        return room, sentence

    def _take(self, job: Job, count: int) -> None:
        uses = self._uses(job)
        for cap in self._caps_of(job, uses):
            for of in ("", f"user {job.user}", f"account {job.account}"):
                self._used[cap.scope, cap.tres, of] += uses[cap.tres] * count


def usage(job: Job) -> dict[str, int]:
    """What one such job takes of each TRES, zero left out."""
    shape = job.shape
    devices = job.nodes * shape.gpus
    found = {
        "job": 1,
        "node": job.nodes,
        "cpu": job.nodes * shape.cpus,
        "mem": job.nodes * shape.memory_mib,
        f"gres/{shape.gres}": devices,
        **({f"gres/{shape.gres}:{shape.gpu_type}": devices} if shape.gpu_type else {}),
        **{f"license/{name}": number for name, number in job.licences},
    }
    return {tres: amount for tres, amount in found.items() if amount}


def covers(cap: Association, job: Job) -> bool:
    """Whether the job counts against this cap.

    A cap on one GPU type does not stop a job that asks GPUs of any type (seen on 22.05), which
    is why `usage` has the typed TRES for typed requests alone.
    """
    if cap.qos:
        return cap.qos == job.qos or not set(cap.partitions).isdisjoint(job.partitions)
    return (
        (not cap.account or job.account in (cap.account, *cap.accounts_below))
        and (not cap.user or cap.user == job.user)
        and (not cap.partitions or not set(cap.partitions).isdisjoint(job.partitions))
        and (not cap.but_partitions or not set(cap.but_partitions).issuperset(job.partitions))
    )


def in_force(caps: Iterable[Association], job: Job) -> tuple[Association, ...]:
    """Of the caps that cover a job what Slurm holds against it.

    A limit of its partition's QOS is in the place of the same limit of its own QOS, and that in
    the place of the same limit of its associations. Source: Slurm's "Resource Limits",
    hierarchy; seen on 22.05 for GrpTRES, GrpJobs, MaxTRES and MaxJobs of each.
    """
    ranked = [(_rank(cap, job), cap) for cap in caps]
    first: dict[tuple[str, str], int] = {}
    for rank, cap in ranked:
        for limit in LIMITS if rank else ():
            if getattr(cap, limit) is not None:
                first[cap.tres, limit] = min(first.get((cap.tres, limit), rank), rank)
    return tuple(_without(cap, rank, first) for rank, cap in ranked)


def _without(cap: Association, rank: int, first: Mapping[tuple[str, str], int]) -> Association:
    """The cap without the limits that a better rank has set as well."""
    over = [limit for limit in LIMITS if rank > first.get((cap.tres, limit), rank)]
    kept: dict[str, Any] = dict.fromkeys(over)
    return replace(cap, **kept) if over else cap


def _rank(cap: Association, job: Job) -> int:
    """0: of the cluster's licences, never replaced; then the first of Slurm's hierarchy."""
    if cap.qos:
        return 2 if set(cap.partitions).isdisjoint(job.partitions) else 1
    return 3 if cap.account or cap.user else 0


def _is_timed(tres: str) -> bool:
    return tres == WALL or tres.startswith((MINUTES, LEFT))


def _timed(tres: str, job: Job, uses: Mapping[str, int]) -> int:
    """What a pending job takes of a TRES that is about time; 0: nothing."""
    minutes = ENDLESS_MIN if job.time_limit_s is None else ceil(job.time_limit_s / 60)
    if tres == WALL:
        return minutes
    if tres.startswith(MINUTES):
        return minutes * uses.get(tres.removeprefix(MINUTES), 0)
    return int(tres == LEFT + WALL or tres.removeprefix(LEFT) in uses)


def _with_licences(job: Job) -> list[Job]:
    """The job with each of the licences that it may choose from."""
    if not job.licence_choices:
        return [job]
    return [replace(job, licences=(*job.licences, each)) for each in job.licence_choices]


def _of_licences(reading: Reading) -> Iterator[Association]:
    """Licences as caps: what is free besides what the jobs seen here hold."""
    held: Counter[str] = Counter()
    for job in reading.jobs if reading.licences else ():
        if job.licences and not job.is_pending:
            held.update(dict(job.licences))
    for each in reading.licences:
        yield Association(
            f"the cluster's count of licence {each.name}",
            tres=f"license/{each.name}",
            in_all=each.free + held[each.name],
        )


def _kind(tres: str) -> str:
    if tres == WALL or tres.startswith(MINUTES):
        return f"minutes of {_kind(LEFT + tres.removeprefix(MINUTES))}"
    tres = tres.removeprefix(LEFT)
    if tres.startswith("license/"):
        return "licences"
    if tres.startswith("gres/"):
        name, _, model = tres.removeprefix("gres/").partition(":")
        return f"{model} {_devices(name)}".strip()
    return WORDS.get(tres, tres)


def _devices(gres: str) -> str:
    return "GPUs" if gres == "gpu" else f"{gres} devices"
