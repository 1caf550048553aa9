"""GPU limits of associations and QOS, applied before Slurm gets to look at them."""

from collections import Counter
from collections.abc import Iterator

from tidegate.core.slurm import Association, Job, Reading


class Caps:
    """What accounting will let start, counted from the jobs that hold nodes now.

    Slurm tests these limits only after it has selected nodes: with no node up the pending
    reason hides them, and nodes bought over a cap would stand idle.
    """

    def __init__(self, reading: Reading) -> None:
        self._associations = reading.associations
        self._used: Counter[tuple[str, str, str]] = Counter()
        for job in reading.jobs:
            if not job.is_pending:
                self._take(job, 1)

    def admit(self, job: Job) -> tuple[int, str]:
        """How many of the job's `count` may start, and which cap stops the rest."""
        admitted, stopped_by = job.count, ""
        for cap in self._caps(job):
            room, sentence = self._room(cap, job)
            if room < admitted:
                admitted, stopped_by = max(room, 0), sentence
        self._take(job, admitted)
        return admitted, stopped_by

    def _caps(self, job: Job) -> Iterator[Association]:
        if job.shape.gpus:
            yield from (cap for cap in self._associations if covers(cap, job))

    def _room(self, cap: Association, job: Job) -> tuple[int, str]:
        gpus = job.nodes * job.shape.gpus
        kind = f"{cap.gpu_type} GPUs" if cap.gpu_type else "GPUs"
        if cap.max_gpus_per_job is not None and gpus > cap.max_gpus_per_job:
            return 0, f"{cap.scope} allows {cap.max_gpus_per_job} {kind} per job, it asks {gpus}"
        room, sentence = job.count, ""
        for limit, user, whose in (
            (cap.max_gpus, "", "in all"),
            (cap.max_gpus_per_user, job.user, "per user"),
        ):
            used = self._used[cap.scope, cap.gpu_type, user]
            if limit is not None and (limit - used) // gpus < room:
                room = (limit - used) // gpus
                sentence = f"{cap.scope} allows {limit} {kind} {whose}, {used} are used or promised"
        return room, sentence

    def _take(self, job: Job, count: int) -> None:
        gpus = job.nodes * job.shape.gpus * count
        for cap in self._caps(job):
            self._used[cap.scope, cap.gpu_type, ""] += gpus
            self._used[cap.scope, cap.gpu_type, job.user] += gpus


def covers(cap: Association, job: Job) -> bool:
    """Whether the job's GPUs count against this cap.

    A cap on one GPU type does not stop a job that asks GPUs of any type (seen on 22.05).
    """
    return (
        (not cap.account or job.account in (cap.account, *cap.accounts_below))
        and (not cap.user or cap.user == job.user)
        and (not cap.qos or cap.qos == job.qos)
        and (not cap.gpu_type or cap.gpu_type == job.shape.gpu_type)
    )
