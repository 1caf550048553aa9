"""Jobs of a site's checks on the simulated slurmctld."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.idle_check import IdleCheck, is_idle_check_name, is_pair_check_name
from tidegate.core.model.site_check import REFUSED, CheckJob
from tidegate.core.model.slurm import Shape
from tidegate.sim.slurm_parts import SimJob, Submit, SubmitRefused

# The highest that Slurm takes.
PRIORITY = 4_294_967_290
# That of --nice, where nothing else is lower.
LOWEST = 1
DURATION_S = 60.0


@dataclass(slots=True)
class SimChecks:
    """By name: the job, or why none was taken."""

    jobs: dict[str, SimJob] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def submit(
        self, asked: Submit, submit: Callable[[Submit], str], jobs: Mapping[str, SimJob]
    ) -> str:
        """What the head's program does: a job that is there is not submitted again."""
        if asked.name not in self.jobs:
            try:
                self.jobs[asked.name] = jobs[submit(asked)]
            except SubmitRefused as refused:
                self.refused[asked.name] = str(refused)
        return self.refused.get(asked.name, "")

    def told(self) -> Iterator[CheckJob]:
        for name, job in self.jobs.items():
            exit_code = 1 if job.state == "FAILED" else 0
            yield CheckJob(name, job.state, job.job_id, job.submit.user, exit_code)
        for name, said in self.refused.items():
            yield CheckJob(name, REFUSED, said=said)

    def next_due_s(self) -> float:
        return min(map(_deadline_s, self._waiting()), default=float("inf"))

    def step(self, now_s: float, end: Callable[[SimJob, str], None]) -> None:
        """What could not begin in time Slurm takes out of the queue."""
        for job in self._waiting():
            if _deadline_s(job) <= now_s:
                end(job, "DEADLINE")

    def _waiting(self) -> list[SimJob]:
        return [job for job in self.jobs.values() if job.state == "PENDING"]


def _deadline_s(job: SimJob) -> float:
    return job.eligible_at_s + job.submit.deadline_in_s


def submit_of(cluster: Cluster, name: str, node_names: tuple[str, ...]) -> Submit:
    """What the head's program submits."""
    is_idle = is_idle_check_name(name)
    check = cluster.idle_check if is_idle else cluster.check
    assert check, "a check is asked for where there is one"
    limit_s = check.time_limit_s
    if isinstance(check, IdleCheck):
        limit_s = check.limit_s(is_pair=is_pair_check_name(name))
    return Submit(
        check.user,
        Shape(is_exclusive=True),
        DURATION_S,
        nodes=len(node_names),
        priority=LOWEST if is_idle else PRIORITY,
        is_requeueable=False,
        time_limit_s=limit_s,
        node_name=",".join(node_names),
        name=name,
        deadline_in_s=check.wait_s,
    )
