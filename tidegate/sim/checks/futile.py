"""Money that is spent again and again on what Slurm does not start."""

from collections import Counter, defaultdict

from tidegate.core.model.ec2 import Instance
from tidegate.core.model.ledger import Launch
from tidegate.sim.checks.witness import Check, Witness
from tidegate.sim.slurm_parts import SimJob, SimNode

FUTILE_MAX = 6


class NoFutileLaunches(Check):
    """Money is not spent in a loop on a job that Slurm does not start."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.used: set[str] = set()
        self.lacking: set[str] = set()
        self.futile: Counter[str] = Counter()
        self.launches: defaultdict[str, set[str]] = defaultdict(set)

    def joined(self, node: SimNode) -> None:
        """One without its GPUs is no good, and its offering rests: what each pool loses to a bad
        image is bounded elsewhere (BadImagesTouchTwo, BootFailuresRestTheirPool).
        """
        instance = self.world.compute.everything.get(node.name)
        kind = (
            self.world.cluster.instance_type(instance.offering.instance_type) if instance else None
        )
        if kind is not None and node.gpus < kind.gpus:
            self.lacking.add(node.name)

    def started(self, job: SimJob) -> None:
        self.used.update(job.node_names)
        self.futile.pop(_whole(job), None)
        self.launches.pop(_whole(job), None)

    def ended(self, instance: Instance) -> None:
        """A node that came well and left without having run anything."""
        name, launch = instance.instance_id, self.witness.launch_of(instance)
        chaos, noticed = self.witness.chaos, self.witness.noticed
        is_left_out = any(name in of for of in (chaos.left_out, chaos.cordoned, chaos.sickened))
        is_left_out |= name in noticed or name in self.lacking
        is_left_out |= launch is not None and self._lost_another(launch)
        is_plain = name in self.witness.registered and not is_left_out
        if launch is None or name in self.used or not is_plain or self._is_stopped():
            return
        active = self.world.slurm.table.active.values()
        for job in active:
            if job.state != "PENDING" or not {job.job_id, job.array_job_id} & set(launch.for_jobs):
                continue
            whole = _whole(job)
            self.futile[whole] += 1
            self.launches[whole].add(launch.launch_id)
            nodes = job.submit.nodes
            if job.het_job_id:  # its components start together or not
                nodes = sum(each.submit.nodes for each in active if _whole(each) == whole)
            # Of one launch for many jobs more may go than its last job asks for: that is no loop.
            is_loop = len(self.launches[whole]) > FUTILE_MAX
            if is_loop and self.futile[whole] > FUTILE_MAX * nodes:
                raise self.broken(
                    f"{self.futile[whole]} nodes came and went for job {whole}, which did not start"
                )
            return

    def _lost_another(self, launch: Launch) -> bool:
        """AWS took a node of the same gang, which the others were of no use without."""
        every, noticed = self.world.compute.everything, self.witness.noticed
        of = (every[name].launch_id for name in noticed if name in every)
        return bool(launch.gated_for) and launch.launch_id in of

    def _is_stopped(self) -> bool:
        """A stop of the cluster lets go of whatever boots, once: that is no loop."""
        overrides = tuple(self.world.ledger.all_overrides.values())
        return not self.world.calendar.wanted(self.witness.now_s, overrides).is_up


def _whole(job: SimJob) -> str:
    return job.het_job_id or job.array_job_id or job.job_id
