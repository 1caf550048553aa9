"""Limits of associations, QOS and licences, applied before Slurm gets to look at them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tidegate.core.slurm import Association, Job, Reading

WORDS = {"cpu": "CPUs", "mem": "MiB of memory", "node": "nodes", "job": "jobs"}


class Caps:
    """What accounting will let start, counted from the jobs that hold nodes now.

    Slurm tests these limits only after it has selected nodes: with no node up the pending
    reason hides them, and nodes bought over a cap would stand idle. CPUs are counted as asked
    for, nodes as if no job shared one: Slurm may count more of the first, fewer of the second.
    """

    def __init__(self, reading: Reading) -> None:
        self._used: Counter[tuple[str, str, str]] = Counter()
        # Of two caps that allow the same, always the same one is named.
        self._caps = [*reading.associations, *_of_licences(reading)]
        if len(self._caps) > 1:
            self._caps.sort(key=repr)
        self._applicable: dict[tuple[object, ...], tuple[Association, ...]] = {}
        for job in reading.jobs if self._caps else ():
            if not job.is_pending:
                self._take(job, 1)

    def admit(self, job: Job) -> tuple[int, str]:
        """How many of the job's `count` may start, and which cap stops the rest."""
        admitted, stopped_by = job.count, ""
        if not self._caps:
            return admitted, stopped_by
        uses = usage(job)
        for cap in self._caps_of(job, uses):
            room, sentence = self._room(cap, job, uses[cap.tres])
            if room < admitted:
                admitted, stopped_by = max(room, 0), sentence
        self._count(job, uses, admitted)
        return admitted, stopped_by

    def admit_together(self, jobs: Sequence[Job]) -> str:
        """Which cap stops one of these jobs, which start together or not; "" when none does."""
        taken: list[Job] = []
        for job in jobs:
            admitted, sentence = self.admit(replace(job, count=1))
            if not admitted:
                for one in taken:
                    self._take(one, -1)
                return sentence
            taken.append(job)
        return ""

    def _caps_of(self, job: Job, uses: Mapping[str, int]) -> tuple[Association, ...]:
        key = (job.account, job.user, job.qos, *uses)
        if key not in self._applicable:
            found = (cap for cap in self._caps if cap.tres in uses and covers(cap, job))
            self._applicable[key] = tuple(found)
        return self._applicable[key]

    def _room(self, cap: Association, job: Job, amount: int) -> tuple[int, str]:
        kind = _kind(cap.tres)
        if cap.per_job is not None and amount > cap.per_job:
            return 0, f"{cap.scope} allows {cap.per_job} {kind} per job, it asks {amount}"
        room, sentence = job.count, ""
        for limit, of, whose in (
            (cap.in_all, "", "in all"),
            (cap.per_user, f"user {job.user}", "per user"),
            (cap.per_account, f"account {job.account}", "per account"),
        ):
            used = self._used[cap.scope, cap.tres, of]
            if limit is not None and (limit - used) // amount < room:
                room = (limit - used) // amount
                sentence = f"{cap.scope} allows {limit} {kind} {whose}, {used} are used or promised"
        return room, sentence

    def _take(self, job: Job, count: int) -> None:
        self._count(job, usage(job), count)

    def _count(self, job: Job, uses: Mapping[str, int], count: int) -> None:
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
    return (
        (not cap.account or job.account in (cap.account, *cap.accounts_below))
        and (not cap.user or cap.user == job.user)
        and (not cap.qos or cap.qos == job.qos)
    )


def _of_licences(reading: Reading) -> Iterator[Association]:
    """Licences as caps: what is free besides what the jobs seen here hold."""
    held: Counter[str] = Counter()
    for job in reading.jobs if reading.licences else ():
        if not job.is_pending:
            held.update(dict(job.licences))
    for each in reading.licences:
        yield Association(
            f"the cluster's count of licence {each.name}",
            tres=f"license/{each.name}",
            in_all=each.free + held[each.name],
        )


def _kind(tres: str) -> str:
    if tres.startswith("license/"):
        return "licences"
    if tres.startswith("gres/"):
        name, _, model = tres.removeprefix("gres/").partition(":")
        return f"{model} {_devices(name)}".strip()
    return WORDS.get(tres, tres)


def _devices(gres: str) -> str:
    return "GPUs" if gres == "gpu" else f"{gres} devices"
