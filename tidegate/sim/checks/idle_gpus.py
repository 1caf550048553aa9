"""The invariants of idle GPUs: who is ended for them, and when."""

from tidegate.core.interruption.gpu_use import LOADING_S, SILENT_S, is_exempt
from tidegate.core.interruption.idle_gpus import rule_of
from tidegate.core.model.digest import Digest
from tidegate.core.model.gpu_use import IdleAction
from tidegate.core.model.slurm import Job
from tidegate.sim.checks.witness import Check, Witness
from tidegate.sim.sensors import LOOK_S, Run, Sensors, run_of
from tidegate.sim.slurm_parts import SimJob

HOUR_S = 3600.0
JOBS_PER_END = 5


class IdleJobsEndByTheRule(Check):
    """A job is ended for its GPUs only where the file says so, after they have idled for as long as
    it says and this run was told, and of five such jobs one within an hour, or a single one.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self._rows: dict[str, Job] = {}
        self._most = 0
        self._told_s: dict[Run, float] = {}
        self._ended_s: dict[str, float] = {}

    def read(self, digest: Digest) -> None:
        if self.world.cluster.idle_gpus is None:
            return
        jobs = digest.reading.jobs
        running = [each for each in jobs if each.state == "RUNNING" and each.shape.gpus]
        self._rows |= {each.job_id: each for each in running}
        self._most = max(self._most, len({each.het_job_id or each.job_id for each in running}))

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        if self.world.cluster.idle_gpus is None or verb not in ("tell", "scancel"):
            return
        for name in names:
            job, row = self.world.slurm.jobs.get(name), self._rows.get(name)
            if job is None or row is None or job.state != "RUNNING":
                continue
            if verb == "tell":
                self._told_s.setdefault(run_of(row), self.witness.now_s)
            else:
                self._ends(job, row)

    def _ends(self, job: SimJob, row: Job) -> None:
        policy, now_s = self.world.cluster.idle_gpus, self.witness.now_s
        rule = rule_of(policy, row) if policy else None
        if rule is None or rule.action is not IdleAction.CANCEL or is_exempt(row):
            raise self.broken(f"job {job.job_id} is cancelled, and no rule says so")
        told_s = self._told_s.get(run_of(row))
        if told_s is None or now_s - told_s < rule.warning_s:
            raise self.broken(f"job {job.job_id} is cancelled and was told at {told_s}")
        if (quiet_s := quiet_for_s(self.witness, job.job_id)) < rule.after_s + rule.warning_s:
            raise self.broken(f"job {job.job_id} is cancelled after {quiet_s:.0f} s of idleness")
        # As Slurm says it: a head whose clock was wrong then cannot know better.
        started_s = job.started_at_s if row.started_at_s is None else row.started_at_s
        if now_s - min(job.started_at_s, started_s) < LOADING_S:
            raise self.broken(f"job {job.job_id} is cancelled within its first minutes")
        self._ended_s[job.job_id] = now_s
        lately = [at_s for at_s in self._ended_s.values() if at_s > now_s - HOUR_S]
        there = self._most + len(lately)
        if len(lately) > max(1, there // JOBS_PER_END):
            raise self.broken(f"{len(lately)} jobs of {there} were cancelled within an hour")


def may_be_requeued(witness: Witness, job_id: str) -> bool:
    """Whether the file lets a job be requeued for its GPUs, and they have idled for long enough."""
    policy = witness.world.cluster.idle_gpus
    rule = policy.rule if policy else None
    if rule is None or rule.action is not IdleAction.REQUEUE:
        return False
    return quiet_for_s(witness, job_id) >= rule.after_s + rule.warning_s


def quiet_for_s(witness: Witness, job_id: str) -> float:
    """For how long the GPUs of its run have done nothing, at the most that a plan could know."""
    sensors = witness.world.gpu_uses
    known = (sensors.lately_since_s, sensors.quiet_since_s) if isinstance(sensors, Sensors) else ()
    runs = (at_s for each in known for run, at_s in each.items() if run[0] == job_id)
    since_s = min(runs, default=witness.now_s)
    # A look comes once a minute, and a clock that is stepped by less than that counts as time.
    slack_s = LOOK_S + SILENT_S * ("clock" in witness.chaos.options.faults)
    return witness.now_s - since_s + slack_s
