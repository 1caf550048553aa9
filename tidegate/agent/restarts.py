"""Requeued jobs, until they start again."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tidegate.core.model.slurm import Job, Reading

# How long a requeued job is looked after: its old run may take KillWait and an epilog to end.
CARE_S = 300.0

# Slurm lets a requeued job begin 121 s after the end of its old run (tried on 22.05); what begins
# later, or much sooner, somebody has said.
DELAY_S, DELAY_MIN_S = 130.0, 90.0

# A job that Slurm requeues twice within so long may be launched in vain wherever it comes; after
# `MaxBatchRequeue` of them it is held.
AGAIN_S = 600.0


@dataclass(slots=True)
class _Requeued:
    """`by_slurm`: without a word of ours, its nodes being up. `waiting_at_s`: when it was first
    seen to wait, its old run over; None: not since it was last started.
    """

    since_s: float
    by_slurm: bool = False
    waiting_at_s: float | None = None


@dataclass(slots=True)
class Restarts:
    """Which requeued jobs are still kept waiting by Slurm, and from when on they may start.

    Slurm sets two minutes when the old run has ended, so they are cancelled then and not with
    the requeue. Not within the same second: a node takes no start whose credential is of the
    second in which it had to end the old run, and slurmctld then fails the job for good, "Job
    credential revoked" (docs/real-slurm.md; Slurm's slurm_cred.c and batch_requeue_fini).
    """

    _jobs: dict[str, _Requeued] = field(default_factory=dict)
    _by_slurm_at_s: dict[str, float] = field(default_factory=dict)

    def add(self, job_ids: Iterable[str], now_s: float) -> None:
        """`now_s`: when they had been requeued."""
        self._jobs |= {job_id: _Requeued(now_s) for job_id in job_ids}

    def add_new(self, job_ids: Iterable[str], now_s: float) -> None:
        """Those that are not looked after yet."""
        self.add((job_id for job_id in job_ids if job_id not in self._jobs), now_s)

    def add_relaunched(self, job_ids: Iterable[str], now_s: float) -> None:
        """Those that Slurm requeued by itself, as where their nodes gave no answer in time."""
        lately = {j: at_s for j, at_s in self._by_slurm_at_s.items() if now_s - at_s < AGAIN_S}
        new = [job_id for job_id in job_ids if job_id not in self._jobs]
        self._jobs |= {each: _Requeued(now_s, by_slurm=True) for each in new if each not in lately}
        self._by_slurm_at_s = lately | dict.fromkeys(new, now_s)

    @property
    def are_left(self) -> bool:
        return bool(self._jobs)

    def due(self, reading: Reading, *, read_at_s: float, now_s: float) -> list[str]:
        """The jobs whose delay may be cancelled now.

        A reading from before a requeue does not show yet what that did. One that is named here has
        to be seen waiting anew: it may start, and end as its node goes, between two readings.
        """
        if not self._jobs:
            return []
        queue = {job.job_id: job for job in reading.jobs}
        found: list[str] = []
        for job_id, ours in list(self._jobs.items()):
            job = queue.get(job_id)
            # A clock that was put back: Slurm's own delay is the safe one.
            is_over = not 0.0 <= now_s - ours.since_s <= CARE_S
            if ours.since_s > read_at_s and not is_over:
                continue
            if is_over or job is None or _has_settled(job) or _is_to_begin_then(job, ours, now_s):
                del self._jobs[job_id]
            elif job.is_pending and job.reason.startswith("BeginTime"):
                if ours.waiting_at_s is None:
                    ours.waiting_at_s = now_s
                elif int(now_s) > int(ours.waiting_at_s):
                    ours.waiting_at_s = None
                    found.append(job_id)
        return sorted(found)


def _is_to_begin_then(job: Job, ours: _Requeued, now_s: float) -> bool:
    """Its time is not Slurm's two minutes, but somebody's wish (StartTime)."""
    if not (job.is_pending and job.reason.startswith("BeginTime") and job.begins_at_s):
        return False
    wait_s = job.begins_at_s - now_s
    is_first = ours.by_slurm and ours.waiting_at_s is None
    return wait_s > DELAY_S or (is_first and wait_s < DELAY_MIN_S)


def _has_settled(job: Job) -> bool:
    """Its delay is over: it runs, or Slurm has looked at it and said something else."""
    has_reason = job.reason not in ("", "None")
    is_delayed = job.reason.startswith(("BeginTime", "NodeDown"))
    return job.is_running or (job.is_pending and has_reason and not is_delayed)
