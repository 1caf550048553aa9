"""Jobs whose GPUs idle: which they are, since when, and what the cluster file says of them."""

from collections.abc import Iterable

from tidegate.core.interruption.gpu_use import LOADING_S, is_exempt
from tidegate.core.model.frozen import frozen
from tidegate.core.model.gpu_use import IdleGpus, IdleRule
from tidegate.core.model.slurm import Job


@frozen
class GpuJob:
    """A running job with GPUs, or all components of a heterogeneous one, its first before others.

    What ends one component ends all: so all idle, or none does.
    """

    job: Job
    components: tuple[Job, ...]

    @property
    def gpus(self) -> int:
        """How many it holds, as it asked for them."""
        return sum(each.nodes * each.shape.gpus for each in self.components)

    @property
    def called(self) -> str:
        """What its owner calls one of them."""
        kinds = {each.shape.gres for each in self.components if each.shape.gpus}
        return "Neuron device" if kinds == {"neuron"} else "GPU"

    @property
    def many(self) -> str:
        return f"{self.gpus} {self.called}{'s' * (self.gpus != 1)}"

    def idle_since_s(self, percent: int) -> float | None:
        """Since when its GPUs have been used for less than `percent`, on the head's clock. None:
        somebody uses them, or nobody knows. The first minutes of a run do not count.
        """
        found = [
            max(use.below_since_s(percent), (each.started_at_s or use.since_s) + LOADING_S)
            for each in self.components
            if (use := each.gpu_use) is not None
        ]
        return max(found) if len(found) == len(self.components) else None


def gpu_jobs(jobs: Iterable[Job]) -> tuple[GpuJob, ...]:
    """Those that run and hold GPUs, in the order of their ids. One that is suspended uses none."""
    whole: dict[str, list[Job]] = {}
    for job in jobs:
        if job.state == "RUNNING":
            whole.setdefault(job.het_job_id or job.job_id, []).append(job)
    found: list[GpuJob] = []
    for leader in sorted(whole):
        parts = sorted(whole[leader], key=lambda job: (job.job_id != leader, job.job_id))
        has_gpus = any(each.shape.gpus or each.gpu_use for each in parts)
        if has_gpus and parts[0].job_id == leader:
            found.append(GpuJob(parts[0], tuple(parts)))
    return tuple(found)


def rule_of(policy: IdleGpus, job: Job) -> IdleRule | None:
    """The rule for a running job; None: there is none for it, by the file or its owner's word."""
    is_left_out = (
        job.account in policy.exempt_accounts
        or job.qos in policy.exempt_qos
        or not set(policy.exempt_partitions).isdisjoint(job.partitions)
    )
    if is_left_out or is_exempt(job):
        return None
    named = (policy.partitions.get(each) for each in job.partitions)
    return next((each for each in named if each), policy.rule)
