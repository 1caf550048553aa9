"""Invariants of nodes that software finds unhealthy."""

from collections import defaultdict

from tidegate.core.fleet.drains import Hand, hand
from tidegate.core.model.ec2 import FleetRequest
from tidegate.core.model.slurm import Node
from tidegate.core.passes.futile import BACK_OFF_S
from tidegate.core.passes.sickness import SICK_LAUNCHES_MAX
from tidegate.service.control import Looked
from tidegate.sim.checks.witness import Check, Witness
from tidegate.sim.slurm_parts import SimJob

# What a plan decided when the back-off was over may be carried out by a planner that stood still.
SLACK_S = 60.0


class SickNeedsWait(Check):
    """A need whose nodes became unhealthy twice buys no others until its back-off is over."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.sick: defaultdict[str, set[str]] = defaultdict(set)  # launches, by job
        self.sick_s: dict[str, float] = {}  # since when each node is sick
        self.since_s: dict[str, float] = {}  # when the first node of a launch was sick
        self.until_s: dict[str, float] = {}
        self.known_s: dict[str, float] = {}  # since when a plan may know of both launches

    def started(self, job: SimJob) -> None:
        for name in (job.job_id, job.array_job_id):
            self.sick.pop(name, None)
            self.until_s.pop(name, None)

    def passed(self, seconds: float) -> None:
        """A planner may write its back-off down and die before anybody hears of its look."""
        if len(self.witness.chaos.sickened) > len(self.sick_s):
            for name in self.witness.chaos.sickened:
                self.sick_s.setdefault(name, self.witness.now_s)

    def looked(self, looked: Looked) -> None:
        """Launches for one job whose nodes were all sick as a plan saw it that counted."""
        if not self.witness.chaos.sickened:
            return
        for done in looked.rounds:
            digest = done.snapshot.digest
            if done.outcome.is_stale or digest is None or done.snapshot.staleness:
                continue
            # What EC2 has ended or leaves out counts as dead, whatever Slurm says of it since.
            alive = {one.instance_id for one in done.snapshot.instances if one.is_alive}
            nodes = [node for node in digest.reading.nodes if node.name in alive]
            sick = {node.name for node in nodes if self._is_sick(node)}
            # The tasks of an array are one row: each that starts makes it another need.
            rows = [job for job in digest.reading.jobs if not job.array_job_id]
            pending = {job.job_id for job in rows if job.is_pending}
            by_launch: defaultdict[str, set[str]] = defaultdict(set)
            for record in done.snapshot.nodes:
                by_launch[record.launch_id].add(record.instance_id)
            for launch_id, names in by_launch.items():
                launch = self.world.ledger.all_launches.get(launch_id)
                jobs = launch.launch.for_jobs if launch else ()
                if ill := names & sick:
                    began_s = min(self.sick_s.get(name, self.witness.now_s) for name in ill)
                    self.since_s.setdefault(launch_id, began_s)
                if names <= sick and len(jobs) == 1 and jobs[0] in pending:
                    self._note(jobs[0], launch_id)

    def _is_sick(self, node: Node) -> bool:
        chaos = self.witness.chaos
        for leaving in (chaos.cordoned, chaos.announced, chaos.left_out):
            if node.name in leaving:
                return False  # for another reason
        whose = hand(node, self.world.cluster.health_reasons)
        return node.state.is_drain and whose is Hand.SOFTWARE

    def _note(self, job_id: str, launch_id: str) -> None:
        if launch_id in self.sick[job_id]:
            return
        self.sick[job_id].add(launch_id)
        if len(self.sick[job_id]) >= SICK_LAUNCHES_MAX:
            # The planner counts nodes that have left as well, so that it may have begun before.
            began_s = max(self.since_s[each] for each in self.sick[job_id])
            self.until_s[job_id] = began_s + BACK_OFF_S[0] - SLACK_S
            self.known_s[job_id] = self.witness.now_s

    def requested(self, request: FleetRequest) -> None:
        record = self.witness.record_of(request)
        if record is None or not self.witness.is_new(request) or len(record.launch.for_jobs) != 1:
            return
        job_id = record.launch.for_jobs[0]
        # What a look had decided before the one that saw it, which EC2 answers later, is no loop.
        is_old = record.created_at_s <= self.known_s.get(job_id, 0.0)
        if self.witness.now_s < self.until_s.get(job_id, 0.0) and not is_old:
            raise self.broken(
                f"{record.launch.launch_id} is for job {job_id}, of which the nodes of "
                f"{len(self.sick[job_id])} launches were unhealthy"
            )
