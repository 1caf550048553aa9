"""Invariants of nodes that software finds unhealthy."""

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import replace

from tidegate.core.demand.demand import demand
from tidegate.core.fleet.drains import Hand, hand
from tidegate.core.fleet.templates import with_lessons
from tidegate.core.model.cluster import Pool
from tidegate.core.model.digest import Digest
from tidegate.core.model.drain_reason import DrainCode, code_of
from tidegate.core.model.ec2 import FleetRequest, Offering
from tidegate.core.model.finding import believed
from tidegate.core.model.ledger import Launch
from tidegate.core.model.orders import Order
from tidegate.core.model.plan import Learn
from tidegate.core.model.slurm import Node
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.loss import Losses
from tidegate.core.offers.places import sick_places
from tidegate.core.offers.ranges import is_dear
from tidegate.core.passes.futile import BACK_OFF_S
from tidegate.core.passes.sickness import SICK_LAUNCHES_MAX
from tidegate.service.control import Looked
from tidegate.sim.checks.witness import Check, Witness
from tidegate.sim.sickness import CHECK
from tidegate.sim.slurm_parts import SimJob

# What a plan decided when the back-off was over may be carried out by a planner that stood still.
SLACK_S = 60.0


class SickNeedsWait(Check):
    """A need whose nodes became unhealthy twice buys no others until its back-off is over."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        # By job, the launches, and when a look had seen each.
        self.sick: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self.sick_s: dict[str, float] = {}  # since when each node is sick
        self.since_s: dict[str, float] = {}  # when the first node of a launch was sick
        self.until_s: dict[str, float] = {}
        self.known_s: dict[str, float] = {}  # since when a plan may know of both launches
        self.started_s: dict[str, float] = {}  # nodes from before were no use or served a run

    def started(self, job: SimJob) -> None:
        for name in (job.job_id, job.array_job_id):
            self.sick.pop(name, None)
            self.until_s.pop(name, None)
            self.started_s[name] = self.witness.now_s

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
            seen: defaultdict[str, set[str]] = defaultdict(set)
            by_launch: defaultdict[str, set[str]] = defaultdict(set)
            for record in done.snapshot.nodes:
                by_launch[record.launch_id].add(record.instance_id)
            for launch_id, names in by_launch.items():
                launch = self.world.ledger.all_launches.get(launch_id)
                jobs = launch.launch.for_jobs if launch else ()
                if launch and any(launch.created_at_s < self.started_s.get(j, 0.0) for j in jobs):
                    continue
                if ill := names & sick:
                    began_s = min(self.sick_s.get(name, self.witness.now_s) for name in ill)
                    self.since_s.setdefault(launch_id, began_s)
                if names <= sick and len(jobs) == 1 and jobs[0] in pending:
                    self._note(jobs[0], launch_id)
                    seen[jobs[0]].add(launch_id)
            for action in done.plan.actions:
                if isinstance(action, Launch) and len(action.for_jobs) == 1:
                    noted = self.sick.get(action.for_jobs[0], {}).items()
                    known = {each for each, at_s in noted if at_s < done.snapshot.now_s}
                    if len(known | seen[action.for_jobs[0]]) >= SICK_LAUNCHES_MAX:
                        self._judge(action)

    def _judge(self, launch: Launch) -> None:
        """A launch for one job, by a plan that knew of all those before it."""
        [job_id] = launch.for_jobs
        if self.witness.now_s < self.until_s.get(job_id, 0.0):
            raise self.broken(
                f"{launch.launch_id} is for job {job_id}, of which the nodes of "
                f"{len(self.sick[job_id])} launches were unhealthy"
            )

    def _is_sick(self, node: Node) -> bool:
        chaos = self.witness.chaos
        for leaving in (chaos.cordoned, chaos.announced, chaos.left_out):
            if node.name in leaving:
                return False  # for another reason
        if node.state.is_rebooting:
            return False  # whether that has mended it is not known yet
        whose = hand(node, self.world.cluster.health_reasons)
        return node.state.is_drain and whose is Hand.SOFTWARE

    def _note(self, job_id: str, launch_id: str) -> None:
        if launch_id in self.sick[job_id]:
            return
        self.sick[job_id][launch_id] = self.witness.now_s
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
        if not is_old:
            self._judge(record.launch)


class LiarsCostTheirShare(Check):
    """A check that errs costs no more than its share of a pool until a person believes it again."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.drained: set[str] = set()  # by the check that errs
        self.excused: set[str] = set()  # of them those that a person's word let go
        self.most: Counter[str] = Counter()  # nodes that each pool had at once
        self.let_go: defaultdict[str, set[str]] = defaultdict(set)
        self.words = 0
        self.unheard: set[str] = set()  # pools of which no plan has heard the word yet
        self.known: dict[str, set[str]] = {}  # what was drained when a planner last read of it

    def passed(self, seconds: float) -> None:
        if self.witness.chaos.sickened:
            self._see()
            self._hear()

    def _see(self) -> None:
        now: Counter[str] = Counter()
        for name, node in self.world.slurm.nodes.items():
            now[self.world.compute.everything[name].pool] += 1
            if node.is_drain and node.reason.startswith(CHECK):
                self.drained.add(name)
        for pool, count in now.items():
            self.most[pool] = max(self.most[pool], count)

    def read(self, digest: Digest) -> None:
        """What a planner reads now may be what its plan knows when it hears of the word."""
        self._hear()
        if self.unheard:
            self._see()
            self.known.update((pool, self._drained_of(pool)) for pool in self.unheard)

    def _hear(self) -> None:
        """What is drained when a plan hears that a person believes the check again goes, and the
        check counts anew. The plan hears it when it is no more in the ledger.
        """
        words = self.witness.chaos.words
        for _, pool in words[self.words :]:
            self.let_go[pool].clear()
            self.excused |= self._drained_of(pool)
            self.unheard.add(pool)
        self.words = len(words)
        for pool in sorted(self.unheard):
            history = self.world.ledger.all_pool_history[pool]
            if not any(each.is_lifted for each in history.stopped_checks):
                self.excused |= self.known.pop(pool, set())
                self.unheard.discard(pool)

    def _drained_of(self, pool: str) -> set[str]:
        everything = self.world.compute.everything
        return {name for name in self.drained if everything[name].pool == pool}

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        if verb != "delete" or not self.world.in_hand or not self.drained:
            return
        self._hear()
        orders, _ = self.world.in_hand[-1]
        # What another finding has condemned meanwhile goes by that one's word.
        found = [one for one in orders if code_of(one.text) is DrainCode.UNHEALTHY]
        unhealthy = [one for one in found if CHECK in one.text]
        # In the evening all nodes go.
        sick = {name for one in unhealthy if self._was_up(one) for name in one.names}
        for name in (self.drained - self.excused) & sick & set(names):
            if self.world.slurm.nodes[name].is_down:
                continue
            pool = self.world.compute.everything[name].pool
            if self._was_found_before(pool, name):
                continue
            self.let_go[pool].add(name)
            if len(self.let_go[pool]) > believed(self.most[pool], is_check=True):
                raise self.broken(
                    f"{name} is let go, the {len(self.let_go[pool])}th of pool {pool} that "
                    f"`{CHECK}` drained, of {self.most[pool]} nodes"
                )

    def _was_found_before(self, pool: str, name: str) -> bool:
        """Another check had condemned it, before this one drained it as well."""
        history = self.world.ledger.all_pool_history.get(pool)
        found = {each.instance_id: each.check for each in history.findings} if history else {}
        return not CHECK.startswith(found.get(name, CHECK))

    def _was_up(self, order: Order) -> bool:
        """Whether the cluster was wanted when the order was decided."""
        decided_at_s = order.not_after_s - self.world.cluster.timings.order_ttl_s
        overrides = tuple(self.world.ledger.all_overrides.values())
        return self.world.calendar.wanted(decided_at_s, overrides).is_up


class SickPlacesLast(Check):
    """What nodes become sick of is bought only where the same is not to be had in another zone."""

    def looked(self, looked: Looked) -> None:
        for done in looked.rounds:
            learns = [each for each in done.plan.actions if isinstance(each, Learn)]
            snapshot = with_lessons(done.snapshot, learns)
            places = {} if done.outcome.is_stale else sick_places(snapshot)
            for action in done.plan.actions if places else ():
                if isinstance(action, Launch) and action.offerings[0] in places:
                    self._judge(action, snapshot, places)

    def _judge(self, launch: Launch, snapshot: Snapshot, places: Collection[Offering]) -> None:
        """A gang may have nodes in that zone already, headroom for one too, and a limit in USD may
        allow the cheapest alone.
        """
        pool, first = snapshot.cluster.pool(launch.pool), launch.offerings[0]
        if pool is None or launch.gated_for:
            return
        if not launch.for_jobs and any(each.nodes > 1 for each in pool.headroom):
            return
        if any(of.usd_per_hour is not None for of in (pool.limits, snapshot.cluster.limits)):
            return
        resting = {e.offering for e in snapshot.resting if e.until_s > snapshot.now_s}
        for zone in pool.zones:
            other = replace(first, zone=zone)
            usd = snapshot.cluster.prices.get(other, 0.0)
            is_sold = usd > 0 and not is_dear(snapshot.cluster, other)
            is_sold = is_sold and not _is_lossy(pool, other, launch, snapshot)
            if is_sold and other not in resting and other not in places:
                raise self.broken(f"{launch.launch_id} buys {first}, and {other} is to be had")


def _is_lossy(pool: Pool, offering: Offering, launch: Launch, snapshot: Snapshot) -> bool:
    """Whether a job that it is for would lose more there than it is worth."""
    cluster = snapshot.cluster
    needs, _ = demand(snapshot.heard.reading, cluster, frozenset(), snapshot.head_now_s)
    losses, jobs = Losses(cluster), set(launch.for_jobs)
    return any(losses.is_lossy(pool, offering, each) for each in needs if each.job_id in jobs)
