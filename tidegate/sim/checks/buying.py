"""Invariants of what is bought: recorded, once, within limits, and where EC2 may have it."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from tidegate.core.buy.dealing import shares
from tidegate.core.demand.demand import Need, demand
from tidegate.core.demand.fit import lacks, satisfies
from tidegate.core.fleet.resume import is_failed
from tidegate.core.model.cluster import Pool
from tidegate.core.model.digest import Digest
from tidegate.core.model.ec2 import FleetRequest, Instance, InstanceType, Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Launch, LaunchRecord, LaunchStatus, NodeRecord, Phase
from tidegate.core.model.mig import devices
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.slurm import Association, Job, Reading, Shape
from tidegate.core.offers.loss import Losses
from tidegate.service.control import Looked
from tidegate.sim.checks.leaving import replaced
from tidegate.sim.checks.lossy import as_known
from tidegate.sim.checks.moves import may_go
from tidegate.sim.checks.witness import Check
from tidegate.sim.kept import most_kept, most_to_check, of_another_kind


@frozen
class _Place:
    """One node that boots; one of several offerings, as long as nobody knows what came.

    `gang`: whose alone it is; "": anybody's. `layout`: what its GPUs are cut into.
    """

    pool: Pool
    offerings: tuple[Offering, ...]
    gang: str = ""
    layout: str = ""


class RecordedFirst(Check):
    """EC2 is asked only for what the ledger holds word for word, and never under an old token."""

    def requested(self, request: FleetRequest) -> None:
        record = self.witness.record_of(request)
        if record is None or record.request != request:
            raise self.broken(f"token {request.client_token} is not in the ledger as it was sent")
        is_repeated = request.client_token in self.witness.tokens
        if record.status is not LaunchStatus.RECORDED and not is_repeated:
            raise self.broken(f"launch {record.launch.launch_id} is {record.status} already")

    def looked(self, looked: Looked) -> None:
        for done in looked.rounds:
            for trouble in done.outcome.trouble:
                if "came with another request" in trouble:
                    raise self.broken(trouble)


class NoDoubleBuy(Check):
    """Nothing is bought for a job while more nodes that could hold it boot than jobs wait."""

    _needs: Mapping[str, Need]
    _losses: Losses

    def requested(self, request: FleetRequest) -> None:
        record = self.witness.record_of(request)
        digest = self.witness.digests.get(self.witness.depth)
        if record is None or digest is None or not self.witness.is_new(request):
            return
        launch, jobs = record.launch, digest.reading.jobs
        if not launch.for_jobs:
            self._keep(record, sum(self._wanted(job, digest) for job in jobs), digest)
            return
        asking = [job for job in jobs if job.job_id in launch.for_jobs]
        zones = {each.zone for each in request.overrides}
        self._spare(digest)
        booting = self._booting(record, zones)
        places = [place for place in booting if any(self._fits(job, place) for job in asking)]
        wanted = sum(
            self._wanted(job, digest)
            for job in jobs
            if job in asking or any(self._fits(job, place, any) for place in places)
        )
        if launch.gated_for and any(map(self._moves, _gangs(launch))):
            wanted += sum(job.nodes for job in asking)
        if len(places) + request.count > wanted:
            raise self.broken(
                f"launch {launch.launch_id} for job {', '.join(launch.for_jobs)} makes "
                f"{len(places) + request.count} nodes that boot, {wanted} are waited for"
            )

    def _keep(self, record: LaunchRecord, waited_for: int, digest: Digest) -> None:
        """Nodes for no job: as many as the pool keeps, and what jobs may take meanwhile."""
        launch, jobs, nodes = record.launch, digest.reading.jobs, digest.reading.nodes
        pool = self.world.cluster.pool(launch.pool)
        kept = sum(job.nodes for job in jobs if may_go(self.world, job.job_id))
        if pool:
            kept += most_kept(self.world, pool) + of_another_kind(self.world, pool, jobs)
            kept += len(replaced(self.witness, pool)) + most_to_check(self.world, pool, nodes)
            # Where a zone has no more, a job's room is bought elsewhere beside what is left of it.
            refused = {each.offering.zone for each in self.world.ledger.all_resting.values()}
            beside = sum(each.jobs * (each.nodes - 1) for each in pool.headroom)
            kept += max(len(refused), 1) * beside
        boot = sum(each.pool == pool for each in self._booting(record, set())) + launch.count
        if boot > kept + waited_for:
            said = f"launch {launch.launch_id} for no job makes {boot} nodes that boot in pool"
            raise self.broken(f"{said} {launch.pool}, which keeps {kept}")

    def _moves(self, gang: str) -> bool:
        """A gang that EC2 took nodes from may be bought whole again beside what is left of it."""
        everything = self.world.compute.everything
        taken = (everything.get(name) for name in self.witness.chaos.announced)
        launches = (self.witness.launch_of(one) for one in taken if one)
        is_hit = any(gang in (each.gated_for, *each.for_jobs) for each in launches if each)
        return is_hit or may_go(self.world, gang)

    def _wanted(self, job: Job, digest: Digest) -> int:
        if job.is_pending:
            return job.count * job.nodes
        lost = self._lost(digest)
        return job.nodes if job.is_running and not lost.isdisjoint(job.node_names) else 0

    def _lost(self, digest: Digest) -> set[str]:
        """Nodes that are no more, and those that had failed when the planner read the queue: the
        job may have ended since then, and the node have left Slurm.
        """
        reading = digest.reading
        used = {name for job in reading.jobs for name in job.node_names}
        failed = {node.name for node in reading.nodes if is_failed(node)}
        gone = {name for name in used if not self.world.compute.is_live(name)}
        return gone | (used & (failed | self.witness.chaos.announced.keys()))

    def _booting(self, asked: LaunchRecord, zones: set[str]) -> list[_Place]:
        """The nodes on their way that the new ones may double.

        A gang looks only at its own, and is bought whole in another place when it cannot get
        the rest where it began. What was recorded later had to reckon with these.
        """
        new, doubted = asked.launch, self._doubted()
        places: list[_Place] = []
        for record in self.world.ledger.all_launches.values():
            launch = record.launch
            pool = self.world.cluster.pool(launch.pool)
            is_others = _gangs(launch).isdisjoint(_gangs(new))
            is_others |= bool(launch.for_jobs) and not new.for_jobs
            # What one plan buys for nobody it buys beside what it buys for jobs.
            is_beside = bool(new.for_jobs) and not launch.for_jobs
            is_later = record.created_at_s + (0.1 if is_beside else 0.0) > asked.created_at_s
            is_later |= _epoch(launch) > _epoch(new)  # at the same moment
            if launch is new or is_others or is_later or pool is None:
                continue
            mine = _gangs(new)
            came = self._booting_of(launch, mine)
            choices: list[tuple[Offering, ...]] = [(one.offering,) for one in came]
            if record.status is LaunchStatus.RECORDED or launch.launch_id in doubted:
                count = sum(n for g, n in shares(launch) if g in mine)
                choices = [launch.offerings] * max(count - self._num_ended(launch), 0)
            for choice in choices:
                is_elsewhere = launch.pool != new.pool or {one.zone for one in choice} != zones
                if not (new.gated_for and is_elsewhere):
                    places.append(_Place(pool, choice, launch.gated_for, launch.layout))
        return places

    def _num_ended(self, launch: Launch) -> int:
        """Of a launch in doubt, the nodes that came and have ended: EC2 answers its token with
        them again, and with no others. Which of several gangs they were for nobody knows.

        Source: EC2 API, "Ensuring idempotency in Amazon EC2 API requests".
        """
        if launch.gangs:
            return 0
        compute = self.world.compute
        ours = (one for one in compute.everything.values() if one.launch_id == launch.launch_id)
        return sum(not compute.is_live(one.instance_id) for one in ours)

    def _doubted(self) -> set[str]:
        """Launches of which nobody knew what came as this plan was made: it may finish them."""
        view = self.witness.view()
        launches = view.launches if view else ()
        return {one.launch.launch_id for one in launches if one.status is LaunchStatus.RECORDED}

    def _fits(self, job: Job, place: _Place, are: Callable[[Iterable[bool]], bool] = all) -> bool:
        """Whether the node does for the job; where it is in doubt what it is, surely or maybe."""
        partitions = [self.world.cluster.partition(name) for name in job.partitions]
        is_open = any(part and place.pool.name in part.pools for part in partitions)
        return is_open and are(self._fits_on(job, place, one) for one in place.offerings)

    def _fits_on(self, job: Job, place: _Place, offering: Offering) -> bool:
        kind = self.world.cluster.instance_type(offering.instance_type)
        features = place.pool.features(offering.instance_type, offering.market)
        is_wide = kind is not None and _holds(job.shape, kind, place.layout)
        is_fit = is_wide and satisfies(job.constraint, features)
        return is_fit and not self._is_spared(job, place, offering)

    def _spare(self, digest: Digest) -> None:
        """Note what the planner knew of jobs that would lose too much on spot."""
        cluster, reading = as_known(self.witness), digest.reading
        head_now_s = self.witness.head_s.get(self.witness.depth, digest.written_at_s)
        needs, _ = demand(reading, cluster, frozenset(self._lost(digest)), head_now_s)
        self._needs = {need.job_id: need for need in needs}
        self._losses = Losses(cluster)

    def _is_spared(self, job: Job, place: _Place, offering: Offering) -> bool:
        """What was bought for its own gang it takes all the same."""
        need = self._needs.get(job.job_id)
        if need is None or (place.gang and place.gang == need.gang):
            return False
        return self._losses.is_lossy(place.pool, offering, need)

    def _booting_of(self, launch: Launch, gangs: set[str]) -> list[Instance]:
        bound_s = self.world.cluster.timings.given_up_s
        nodes = self.world.ledger.all_nodes
        return [
            one
            for one in self.world.compute.live()
            if one.launch_id == launch.launch_id
            and one.instance_id not in self.witness.registered
            and self.witness.now_s - one.launched_at_s <= bound_s
            and one.instance_id in nodes
            and nodes[one.instance_id].phase is Phase.LAUNCHED
            and nodes[one.instance_id].gated_for in gangs
            and nodes[one.instance_id].cordon is None
            and not self._joins_closed(nodes[one.instance_id])
        ]

    def _joins_closed(self, node: NodeRecord) -> bool:
        """It was told to take no small job once it has booted: nobody needs it any more."""
        return node.order is not None and node.order.kind is OrderKind.DRAIN


def _holds(shape: Shape, kind: InstanceType, layout: str) -> bool:
    """Whether Slurm would start it on a node of this type, as its GPUs are cut: who names no type
    gets any part, although none is cut for it.
    """
    cut = dict(devices(layout, kind.profiles))
    if cut and shape.gpus and shape.gres == "gpu":
        there = cut.get(shape.gpu_type, 0) if shape.gpu_type else sum(cut.values())
        return there >= shape.gpus and not lacks(replace(shape, gpus=0), kind)
    return not lacks(shape, kind)


class NothingWhileBlind(Check):
    """On a digest that is too old only what AWS takes from running jobs is bought, and once."""

    def requested(self, request: FleetRequest) -> None:
        record = self.witness.record_of(request)
        if record is None or not self.witness.is_new(request):
            return
        blind_at_s = self.world.bus.put_at_s + self.world.cluster.timings.digest_stale_s
        if self.witness.digest_age_s <= self.world.cluster.timings.digest_stale_s:
            return
        lost = self._lost_places()
        bought = record.launch.count + self._bought_since(blind_at_s)
        if not lost.keys() >= set(record.launch.for_jobs) or bought > lost.total():
            age_s = record.created_at_s - self.world.bus.put_at_s
            raise self.broken(
                f"{request.client_token}: the head was last heard {age_s:.0f} s ago, {bought} "
                f"nodes since for {lost.total()} that AWS took from running jobs"
            )

    def _lost_places(self) -> Counter[str]:
        """Of each job that ran when the head was last heard, how many nodes AWS has taken."""
        nodes, digest = self.world.ledger.all_nodes, self.world.bus.digest
        taken = {name for name, node in nodes.items() if node.phase is Phase.INTERRUPTED}
        jobs = digest.reading.jobs if digest else ()
        lost = {j.job_id: len(taken & set(j.node_names)) for j in jobs if j.is_running}
        return Counter({job_id: count for job_id, count in lost.items() if count})

    def _bought_since(self, at_s: float) -> int:
        nodes = self.world.ledger.all_nodes
        launches = self.world.ledger.all_launches.values()
        since = {each.launch.launch_id for each in launches if each.created_at_s > at_s}
        return sum(
            each.launch_id in since and nodes[each.instance_id].phase is Phase.LAUNCHED
            for each in self.world.compute.live()
            if each.instance_id in nodes
        )


class CapsKept(Check):
    """No node is bought for a job that a cap of accounting keeps from starting."""

    def looked(self, looked: Looked) -> None:
        for done in looked.rounds:
            digest = done.snapshot.digest
            for launch in done.plan.actions:
                if isinstance(launch, Launch) and digest is not None:
                    for cap in digest.reading.associations:
                        self._keep(cap, launch, digest.reading)

    def _keep(self, cap: Association, launch: Launch, reading: Reading) -> None:
        jobs, caps = reading.jobs, reading.associations
        mine = [j for j in jobs if j.is_pending and j.job_id in launch.for_jobs and _under(cap, j)]
        mine = [j for j in mine if not any(_replaces(other, cap, j) for other in caps)]
        held = [j for j in jobs if not j.is_pending and _under(cap, j)]
        for job in mine:
            gpus = job.nodes * job.shape.gpus
            if cap.per_job is not None and gpus > cap.per_job:
                raise self.broken(f"{cap.scope}: {launch.launch_id} is for job {job.job_id}")
        for most, users in (
            (cap.in_all, {""}),
            (cap.per_user, {job.user for job in mine}),
        ):
            for user in sorted(users) if most is not None else ():
                asked = [j for j in (*mine, *held) if user in ("", j.user)]
                gpus = sum(j.nodes * j.shape.gpus for j in asked)
                if mine and most is not None and gpus > most:
                    said = f"{gpus} GPUs where {most} are allowed {user or 'in all'}"
                    raise self.broken(f"{cap.scope}: {launch.launch_id} would make it {said}")


def _gangs(launch: Launch) -> set[str]:
    """Those that it is for; one of "" when it is for none."""
    return {gang for gang, _ in shares(launch)}


def _epoch(launch: Launch) -> int:
    """Of the ledger when it was planned: at each epoch one plan alone is recorded."""
    return int(launch.launch_id.split("-")[1])


def _under(cap: Association, job: Job) -> bool:
    in_account = not cap.account or job.account in (cap.account, *cap.accounts_below)
    is_kind = cap.tres in ((gres := f"gres/{job.shape.gres}"), f"{gres}:{job.shape.gpu_type}")
    is_theirs = cap.user in ("", job.user) and cap.qos in ("", job.qos)
    return bool(job.shape.gpus) and in_account and is_kind and is_theirs


def _replaces(other: Association, cap: Association, job: Job) -> bool:
    """GrpTRES of a job's QOS stands in for that of its account."""
    is_both = other.tres == cap.tres and None not in (other.in_all, cap.in_all)
    return is_both and bool(other.qos) and not cap.qos and _under(other, job)


def _offerings(request: FleetRequest) -> list[Offering]:
    return [Offering(each.instance_type, each.zone, request.market) for each in request.overrides]
