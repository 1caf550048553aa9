"""Invariants of reservations and capacity blocks."""

from collections.abc import Iterator
from math import inf

from tidegate.core.demand.fit import satisfies
from tidegate.core.model.cluster import Pool, Reservation
from tidegate.core.model.ec2 import FleetRequest, Instance, Market, Offering
from tidegate.core.model.ledger import LaunchRecord, LaunchStatus
from tidegate.core.model.slurm import Job
from tidegate.core.offers.reservations import drains_at_s
from tidegate.service.control import Looked
from tidegate.sim.chaos import PAUSE_MAX_S
from tidegate.sim.checks.ending import UNREACHABLE
from tidegate.sim.checks.witness import Check, Witness
from tidegate.sim.slurm_parts import SimJob, SimNode

# What has ended counts until a look has seen that it has.
COUNTED_LATE_S = 300.0
# A look that asks for the drain, and the order's way to the head.
DRAINED_SOON_S = 360.0
HIDES = ("lag", "kill", "lost", "throttle", "twice")


class ReservationsNotOverrun(Check):
    """No more is asked of a reservation or a block than is left in it."""

    def requested(self, request: FleetRequest) -> None:
        prepaid, now_s = self.world.compute.prepaid, self.witness.now_s
        if not request.market.is_prepaid or not self.witness.is_new(request):
            return
        for each in request.overrides:
            offering = Offering(each.instance_type, each.zone, request.market)
            left = prepaid.room(request, offering, now_s) + self._by_itself(offering)
            held = [name for name, one in prepaid.held.items() if one.offering == offering]
            left += sum(map(self.witness.is_unheard_of, held))
            these = [r for r in prepaid.reservations if r.offering == offering]
            # What others fill EC2 tells by its refusal alone, after which the offering rests.
            left += sum(prepaid.strangers.get(each.id, 0) for each in these)
            is_sure = not any(self._is_turning(each) for each in these)
            if is_sure and request.count > left:
                raise self.broken(
                    f"{request.client_token} asks for {request.count} of {offering}, {left} left"
                )

    def _by_itself(self, offering: Offering) -> int:
        """What EC2 has put into an open reservation although it was bought by the hour, or for
        another one, which is over.
        """
        everything, found = self.world.compute.everything, 0
        for name, held in self.world.compute.prepaid.held.items():
            launch = self.witness.launch_of(everything[name])
            if launch and held.offering == offering:
                found += offering not in launch.offerings or launch.reservation != held.target
        return found

    def _is_turning(self, each: Reservation) -> bool:
        """It begins or ends while a planner may stand still."""
        times = (each.starts_at_s, each.ends_at_s)
        return any(t is not None and abs(t - self.witness.now_s) <= PAUSE_MAX_S for t in times)


class PrepaidFirst(Check):
    """Nothing is paid by the hour that a reservation of its pool holds ready, of the same type and
    in the same zone, however many there are beside it.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.left_s: dict[Offering, float] = {}
        self.unseen: set[Offering] = set()
        self.lacked_s: dict[Offering, float] = {}

    def joined(self, node: SimNode) -> None:
        """One that is no good lets its offering rest, already in the plan that finds it."""
        if instance := self.world.compute.everything.get(node.name):
            kind = self.world.cluster.instance_type(instance.offering.instance_type)
            if node.is_down or (kind is not None and node.gpus < kind.gpus):
                self.lacked_s[instance.offering] = self.witness.now_s

    def ended(self, instance: Instance) -> None:
        if instance.offering.market.is_prepaid:
            at_s = self.witness.now_s
            if instance.instance_id not in self.witness.registered:
                # One that Describe leaves out may boot all the same, as far as a planner can tell.
                bound_s = self.world.cluster.timings.given_up_s
                at_s = max(at_s, instance.launched_at_s + bound_s)
            self.left_s[instance.offering] = max(at_s, self.left_s.get(instance.offering, 0.0))
            self.unseen.add(instance.offering)

    def looked(self, looked: Looked) -> None:
        """What ended counts until a look has come to its end that could find it so."""
        if self.unseen and looked.rounds and not looked.trouble:
            snapshot = looked.rounds[-1].snapshot
            seen_at_s = 0.0 if snapshot.staleness else snapshot.now_s - snapshot.digest_age_s
            self.unseen = {each for each in self.unseen if self.left_s[each] > seen_at_s}

    def requested(self, request: FleetRequest) -> None:
        record = self.witness.record_of(request)
        if record is None or request.market.is_prepaid or not self.witness.is_new(request):
            return
        pool = self.world.cluster.pool(record.launch.pool)
        asked = {(each.instance_type, each.zone) for each in request.overrides}
        for each in self._ready(record, pool) if pool else ():
            if (each.instance_type, each.zone) in asked:
                raise self.broken(f"{request.client_token} is asked for, {each.id} holds it ready")

    def _ready(self, record: LaunchRecord, pool: Pool) -> Iterator[Reservation]:
        now_s = self.witness.now_s
        for each in self.world.cluster.reservations:
            lately_s = self.left_s.get(each.offering, 0.0) + COUNTED_LATE_S
            is_known = lately_s < record.created_at_s and self._is_calm()
            is_known = is_known and self._counts(each, record)
            places = self.world.compute.prepaid.free(each.offering, now_s, each.target)
            free = [place for place in places if self._counts(place, record)]
            needs = self._least(record) + self._in_doubt(each)
            is_ready = pool.may_have(each.offering) and is_known and len(free) >= needs
            is_ready = is_ready and each.offering not in self.unseen
            lacked_s = self.lacked_s.get(each.offering, -inf)
            is_ready = is_ready and now_s > lacked_s + COUNTED_LATE_S
            is_ready = is_ready and not self._rests(each, pool)
            is_ready = is_ready and not self._is_given_up(pool)
            if is_ready and self._takes(each, record, pool):
                yield each

    def _least(self, record: LaunchRecord) -> int:
        """How many nodes must come together; of those that are started each is a launch."""
        launch, launches = record.launch, self.world.ledger.all_launches.values()
        if not launch.gated_for:
            return 1
        if not launch.starts:
            return launch.min_count
        alike = [one.launch for one in launches if one.created_at_s == record.created_at_s]
        return sum(one.count for one in alike if one.gated_for == launch.gated_for)

    def _counts(self, each: Reservation, record: LaunchRecord) -> bool:
        """It had begun when that was planned; an open one that ends while a planner still acts pays
        for nothing new, and gives no place beside those of another one.
        """
        until_s = record.created_at_s + self.world.cluster.timings.apply_lease_s
        is_open_one = each.market is Market.RESERVED
        ends_soon = is_open_one and each.ends_at_s is not None and each.ends_at_s <= until_s
        return each.starts_at_s < record.created_at_s and not ends_soon

    def _is_calm(self) -> bool:
        return self.witness.chaos.was_calm_since(self.witness.now_s - COUNTED_LATE_S, *HIDES)

    def _in_doubt(self, of: Reservation) -> int:
        return sum(
            record.launch.count
            for record in self.world.ledger.all_launches.values()
            if record.status is LaunchStatus.RECORDED
            and of.offering in record.launch.offerings
            and record.launch.reservation == of.target
        )

    def _rests(self, of: Reservation, pool: Pool) -> bool:
        until_s = self.witness.now_s - PAUSE_MAX_S
        return any(
            each.offering == of.offering
            and each.stops(pool.name)
            and each.reservation in ("", of.target)
            and each.until_s > until_s
            for each in self.world.ledger.all_resting.values()
        )

    def _is_given_up(self, pool: Pool) -> bool:
        """Of what is paid for only the deployed template is known, and it is no good here."""
        history = self.world.ledger.all_pool_history.get(pool.name)
        rollout = history.rollout if history else None
        newest = self.world.control.placement.templates[pool.name].digest
        return bool(rollout and rollout.given_up and rollout.template.digest == newest)

    def _takes(self, each: Reservation, record: LaunchRecord, pool: Pool) -> bool:
        """The jobs want no other market, and a block lasts until they have ended."""
        is_block = each.market is Market.CAPACITY_BLOCK
        market = Market.CAPACITY_BLOCK if is_block else Market.ON_DEMAND
        features = pool.features(each.instance_type, market)
        ends_s = (drains_at_s(each) or 0.0) - record.created_at_s - pool.boot_s
        jobs = self._jobs(record)
        return bool(jobs) and all(
            satisfies(job.constraint, features)
            and (not is_block or (job.time_limit_s is not None and job.time_limit_s <= ends_s))
            for job in jobs
        )

    def _jobs(self, record: LaunchRecord) -> list[Job]:
        digest = self.witness.digests.get(self.witness.depth)
        jobs = digest.reading.jobs if digest else ()
        return [job for job in jobs if job.job_id in record.launch.for_jobs]


class BlocksLeftInTime(Check):
    """A node of a capacity block is closed once the block's end is near, well before EC2 warns of
    it.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        of = self.world.cluster.reservations
        self.has_blocks = any(each.market is Market.CAPACITY_BLOCK for each in of)

    def passed(self, seconds: float) -> None:
        if not self.has_blocks:
            return
        for name in self.world.compute.prepaid.held:
            node = self.world.slurm.nodes.get(name)
            is_open = node and not node.is_drain and not self.witness.is_machine_dead(node)
            if is_open and self._must_be_left(name):
                raise self.broken(f"{name} is open still, its block ends")

    def started(self, job: SimJob) -> None:
        for name in job.node_names:
            if self._must_be_left(name):
                raise self.broken(f"job {job.job_id} starts on {name}, the block of which ends")

    def _must_be_left(self, name: str) -> bool:
        witness = self.witness
        block = self.world.compute.prepaid.held.get(name)
        if block is None or block.market is not Market.CAPACITY_BLOCK or not block.ends_at_s:
            return False
        drains_s = drains_at_s(block) or 0.0
        since_s = max(drains_s, witness.registered.get(name, witness.now_s))
        is_calm = witness.chaos.was_calm_since(since_s, *UNREACHABLE) and witness.is_head_well
        is_theirs = name in witness.chaos.touched
        return is_calm and not is_theirs and witness.now_s - since_s > DRAINED_SOON_S
