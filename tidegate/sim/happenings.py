"""What happens in a drawn world at its own times: users and operators, EC2, the head, machines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tidegate.core.interruption.save import NEAR_S
from tidegate.core.model.calendar import OnRunningJobs, OverrideKind, ScheduleOverride
from tidegate.core.model.cluster import Rebalance, Reservation
from tidegate.core.model.ec2 import Instance, Market
from tidegate.core.model.events import (
    HealthCategory,
    HealthNotice,
    RebalanceRecommendation,
    ReservationInterruption,
)
from tidegate.core.model.orders import Order
from tidegate.core.model.slurm import SetBy
from tidegate.sim.chaos import Chaos
from tidegate.sim.clock import START_S
from tidegate.sim.draw import stream
from tidegate.sim.image import DEPLOYED, MENDED, spoil_image
from tidegate.sim.market import move_market
from tidegate.sim.options import Arrival, Happening, Quota, Shortage
from tidegate.sim.people import People
from tidegate.sim.prepaid import ec2_ends_at_s
from tidegate.sim.sickness import believe_again, fall_ill, lose_gpu, spoil_a_place
from tidegate.sim.slurm_parts import SimNode, SubmitRefused
from tidegate.sim.stops import spoil_stops

RECONCILE_S = 300.0
# Nothing keeps a person from beginning like us.
OPERATORS = ("ada: looking at a fan", "tidegate: leave it to me, ada")
NOTICE_S = 120.0  # of the end of a capacity block
WAVE_S = 3.0  # between the notices of one storm
SPOILERS = {"places": spoil_a_place, "image": spoil_image}
SPOILERS |= {"prices": move_market, "starts": spoil_stops}
HINTED_AGAIN_S = 120.0  # from a word of AWS Health to EC2's own at the latest


@dataclass(slots=True)
class Happenings:
    """Puts the drawn story on the world's clock. `job_ids`: submission -> Slurm's job id.

    A user who finds no slurmctld tries again every half minute.
    """

    chaos: Chaos
    job_ids: dict[int, str] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)
    _num_heads: int = 0

    def begin(self) -> None:
        """Everything that the options say, and the five-minute event of reconcile."""
        options = self.chaos.options
        for arrival in options.arrivals:
            self._at(arrival.at_s, self._submit, arrival)
        for short in options.shortages:
            self._at(short.from_s, self._shorten, short)
            self._at(short.to_s, self._restock, short)
        for quota in options.quotas:
            self._at(quota.from_s, self._ration, quota)
            self._at(quota.to_s, self._unration, quota)
        for each in options.happenings:
            self._at(each.at_s, self._happen, each)
        people = People(self.chaos)
        persons = {
            "drain": self._drain,
            "pin": people.pin,
            "meddle": self._meddle,
            "override": self._override,
            "suspend": people.suspend,
            "reserve": people.reserve,
            "exclude": people.exclude,
            "hold": people.hold,
        }
        for each in options.operator:
            self._at(each.at_s, persons[each.kind], each)
        if options.deploys_at_s is not None:
            self._at(options.deploys_at_s, self.chaos.world.deploy, DEPLOYED)
        for reservation in options.cluster.reservations:
            if reservation.starts_at_s > START_S:
                of = self.chaos.world.compute
                self._at(reservation.starts_at_s - START_S, of.fill_reservation, reservation)
            if (ends_at_s := ec2_ends_at_s(reservation)) is not None:
                self._at(ends_at_s - START_S, self._end_reservation, reservation)
                if reservation.market is Market.CAPACITY_BLOCK:
                    self._at(ends_at_s - START_S - NOTICE_S, self._warn_of_end, reservation)
        self._reconcile()
        for fault, begin in SPOILERS.items():
            if fault in options.faults:
                begin(self.chaos)
        if options.faults & {"sick", "places", "gpu", "tests"}:
            believe_again(self.chaos)
        if options.calendar:
            self._turn_of_the_day()

    def stop(self) -> None:
        """Faults end: EC2 has everything, head and Slurm answer."""
        world = self.chaos.world
        self.chaos.stop()
        world.compute.shortages.clear()
        world.compute.quotas.clear()
        world.compute.full_subnets.clear()
        world.compute.describe_lag_s = world.compute.ending_s = 0.0
        world.head.crashed_until_s = min(world.head.crashed_until_s, world.clock.now_s())
        self._slurm_returns()
        self._right_clock()
        if "image" in self.chaos.options.faults:
            world.deploy(MENDED)

    def _at[T](self, after_s: float, happen: Callable[[T], None], what: T) -> None:
        self.chaos.world.at(START_S + after_s, lambda: happen(what))

    def _after(self, wait_s: float, happen: Callable[[], None]) -> None:
        self.chaos.world.at(self.chaos.world.clock.now_s() + wait_s, happen)

    # -- clockwork -------------------------------------------------------------------------

    def _reconcile(self) -> None:
        self._after(RECONCILE_S, self._reconcile)
        self.chaos.world.keep_hours("reconcile")

    def _turn_of_the_day(self) -> None:
        world, calendar = self.chaos.world, self.chaos.options.calendar
        assert calendar is not None
        until_s = calendar.wanted(world.clock.now_s()).until_s
        assert until_s is not None
        world.at(until_s, self._turn_of_the_day)
        world.keep_hours("schedule")

    # -- people ----------------------------------------------------------------------------

    def _submit(self, arrival: Arrival) -> None:
        slurm = self.chaos.world.slurm
        if not slurm.is_up:
            self._after(30.0, lambda: self._submit(arrival))
            return
        try:
            job_id = slurm.submit(arrival.submit)
        except SubmitRefused:
            self.refused.add(arrival.number)
            return
        self.job_ids[arrival.number] = job_id
        if arrival.cancel_after_s is not None:
            self._after(arrival.cancel_after_s, lambda: self._while_up(slurm.cancel, job_id))
        if arrival.release_after_s is not None:
            self._after(arrival.release_after_s, lambda: self._while_up(slurm.let_go, job_id))

    def _while_up(self, do: Callable[[str], None], job_id: str) -> None:
        if self.chaos.world.slurm.is_up:
            do(job_id)
        else:
            self._after(30.0, lambda: self._while_up(do, job_id))

    def _drain(self, happening: Happening) -> None:
        world = self.chaos.world
        nodes = [node for node in world.slurm.nodes.values() if not node.is_down]
        if nodes and world.slurm.is_up:
            node = stream(self.chaos.options.seed, "operator's choice").choice(nodes)
            self._drain_one(node, happening.for_s)

    def _drain_one(self, node: SimNode, for_s: float) -> None:
        self.chaos.touched.add(node.name)
        chance = stream(self.chaos.options.seed, f"words about {node.name}")
        who = chance.choice((SetBy.ROOT, SetBy.USER))
        self.chaos.world.slurm.is_drained_by(who, node.name, chance.choice(OPERATORS))
        self._after(for_s, lambda: self._resume(node.name))

    def _meddle(self, happening: Happening) -> None:
        """From now on a person is sometimes faster than an order."""
        world, chance = self.chaos.world, stream(self.chaos.options.seed, "meddling")

        def sent(order: Order) -> None:
            node = world.slurm.nodes.get(chance.choice(order.names))
            is_well = node is not None and not node.is_down and not self.chaos.is_over
            if node is not None and is_well and chance.random() < 0.3 and world.slurm.is_up:
                self._drain_one(node, happening.for_s)

        world.bus.on_order.append(sent)

    def _override(self, happening: Happening) -> None:
        """`tidegate stop` or `keep-up` for a while; what becomes of running jobs may be said."""
        world = self.chaos.world
        kind, _, policy = happening.what.partition(" ")
        now_s = world.clock.now_s()
        override = ScheduleOverride(
            f"override-{now_s:.0f}",
            OverrideKind(kind),
            now_s,
            now_s + happening.for_s,
            now_s,
            "ada",
            on_running_jobs=OnRunningJobs(policy) if policy else None,
        )
        world.ledger.override_hours(override)

    def _resume(self, name: str) -> None:
        world = self.chaos.world
        node = world.slurm.nodes.get(name)
        if not world.slurm.is_up:
            self._after(30.0, lambda: self._resume(name))
        elif node is not None and node.reason in OPERATORS:
            node.is_drain = False
            self.chaos.unwell.discard(name)
            world.slurm.table.ask(node)
            world.slurm.table.changed()

    # -- EC2's market ----------------------------------------------------------------------

    def _shorten(self, short: Shortage) -> None:
        if not self.chaos.is_over:
            self.chaos.note("shortage")
            self.chaos.world.compute.shortages[short.offering] = short.left

    def _restock(self, short: Shortage) -> None:
        self.chaos.world.compute.shortages.pop(short.offering, None)

    def _warn_of_end(self, block: Reservation) -> None:
        """To each instance in it."""
        now_s = self.chaos.world.clock.now_s()
        for name in self.chaos.world.compute.prepaid.held_in(block):
            self.chaos.announced.setdefault(name, now_s + NOTICE_S)
            self.chaos.world.announce(ReservationInterruption(name, now_s, now_s + NOTICE_S))

    def _end_reservation(self, reservation: Reservation) -> None:
        """No fault: it stands in the cluster file."""
        for name in self.chaos.world.compute.prepaid.held_in(reservation):
            for tell in self.chaos.on_reclaim:
                tell(name)
        self.chaos.world.compute.end_reservation(reservation)

    def _ration(self, quota: Quota) -> None:
        if not self.chaos.is_over:
            self.chaos.note("quota")
            self.chaos.world.compute.quotas[quota.market] = quota.count

    def _unration(self, quota: Quota) -> None:
        self.chaos.world.compute.quotas.pop(quota.market, None)

    # -- the rest --------------------------------------------------------------------------

    def _happen(self, it: Happening) -> None:
        if self.chaos.is_over:
            return
        match it.kind:
            case "subnet":
                self.chaos.note("subnet")
                subnet, full = f"subnet-{it.what}", self.chaos.world.compute.full_subnets
                full.add(subnet)
                self._after(it.for_s, lambda: full.discard(subnet))
            case "spot":
                self._storm(it)
            case "hints":
                self._hint(it)
            case "death":
                self._death(it)
            case "slurm":
                self._slurm_is_silent(it)
            case "head":
                self._head(it)
            case "clock":
                self._step_clock(it)
            case "lag":
                self.chaos.flicker(it.for_s)
            case "strangers":
                self._crowd(it)
            case "sick":
                fall_ill(self.chaos, it)
            case "gpu":
                lose_gpu(self.chaos, it)
            case _:
                raise AssertionError(it.kind)

    def _storm(self, it: Happening) -> None:
        """EC2 reclaims every spot instance of one kind, with two minutes' notice or less."""
        world = self.chaos.world
        spot = [one for one in world.compute.live() if one.offering.market is Market.SPOT]
        struck = [one for one in spot if one.offering == spot[0].offering]
        for number, one in enumerate(struck):
            lead_s = 120.0 if it.for_s > 15 else it.for_s
            at_s = world.clock.now_s() + lead_s + number * WAVE_S
            self.chaos.reclaim(one.instance_id, at_s, lead_s)

    def _hint(self, it: Happening) -> None:
        """AWS says something of an instance that may end some time, or not."""
        world, chaos = self.chaos.world, self.chaos
        alive = [
            one
            for one in world.compute.live()
            if it.what != "rebalance" or one.offering.market is Market.SPOT
        ]
        if not alive:
            return
        chance = stream(chaos.options.seed, f"hint at {it.at_s}")
        one = chance.choice(alive)
        name, now_s = one.instance_id, world.clock.now_s()
        chaos.note("hints")
        if it.what == "rebalance":
            self._recommend(one)
            return
        if one.offering.market is Market.SPOT:
            # Capacity runs short where machines fail, and many pools heed only one of the two.
            again_s = now_s + chance.uniform(0.0, HINTED_AGAIN_S)
            world.at(again_s, lambda: self._recommend(one))
        chaos.cordoned.add(name)
        if it.what == "issue":
            world.announce(HealthNotice((name,), HealthCategory.ISSUE, "AWS_EC2_TROUBLE"))
            return
        ends_at_s = now_s + it.for_s
        change = HealthCategory.SCHEDULED_CHANGE
        has_begun = stream(chaos.options.seed, f"begun at {it.at_s}").random() < 0.3
        says_s = now_s - it.for_s if has_begun else ends_at_s
        world.announce(HealthNotice((name,), change, "AWS_EC2_RETIREMENT", says_s))

        def comes_near() -> None:
            chaos.announced.setdefault(name, ends_at_s)

        world.at(max(now_s, says_s - NEAR_S), comes_near)
        world.at(ends_at_s, lambda: world.compute.retire(name))

    def _recommend(self, one: Instance) -> None:
        """EC2 recommends to leave a spot instance; what that means its pool says."""
        world, chaos, name = self.chaos.world, self.chaos, one.instance_id
        pool = world.cluster.pool(one.pool)
        if chaos.is_over or not world.compute.is_live(name):
            return
        world.announce(RebalanceRecommendation(name))
        if pool and pool.rebalance is Rebalance.DRAIN:
            reclaim_at_s = world.clock.now_s() + world.cluster.timings.spot_notice_s
            chaos.announced.setdefault(name, reclaim_at_s)
        elif pool and pool.rebalance is Rebalance.CORDON:
            chaos.cordoned.add(name)

    def _crowd(self, it: Happening) -> None:
        """Others' instances take places that an open reservation has left, for a while."""
        world, chance = self.chaos.world, stream(self.chaos.options.seed, f"strangers {it.at_s}")
        prepaid, now_s = world.compute.prepaid, world.clock.now_s()
        kinds = sorted({r.offering for r in prepaid.reservations if r.market is Market.RESERVED})
        left = [place for kind in kinds for place in prepaid.free(kind, now_s)]
        if not left:
            return
        taken = chance.sample(left, chance.choice((1, len(left), len(left))))
        self.chaos.note("strangers")
        for each in taken:
            prepaid.strangers[each.id] = prepaid.strangers.get(each.id, 0) + 1
        self._after(it.for_s, lambda: self._uncrowd(taken))

    def _uncrowd(self, taken: Sequence[Reservation]) -> None:
        prepaid = self.chaos.world.compute.prepaid
        for each in taken:
            prepaid.strangers[each.id] -= 1
            self.chaos.world.compute.fill_reservation(each)

    def _death(self, it: Happening) -> None:
        world = self.chaos.world
        alive = [one.instance_id for one in world.compute.live()]
        if not alive:
            return
        name = stream(self.chaos.options.seed, f"death at {it.at_s}").choice(alive)
        self.chaos.note("death")
        if it.what == "instance":
            self.chaos.doomed.add(name)
            world.compute.end(name)
            # EC2 tells of it by an event, which may get lost.
            if it.for_s > 15:
                self._after(it.for_s, lambda: world.tell_of_change(name))
        else:
            world.slurm.die(name)

    def _slurm_is_silent(self, it: Happening) -> None:
        world = self.chaos.world
        if world.slurm.is_up:
            self.chaos.note("slurm", world.clock.now_s() + it.for_s)
            world.slurm.is_up = False
            self._after(it.for_s, self._slurm_returns)

    def _slurm_returns(self) -> None:
        world = self.chaos.world
        if world.head.is_up and not world.slurm.is_up:
            world.slurm.is_up = True
            world.slurm.restart()

    def _head(self, it: Happening) -> None:
        """A replaced head takes over the volume with slurmctld's state; its agent is new."""
        world = self.chaos.world
        self.chaos.note("head", world.clock.now_s() + it.for_s)
        world.head.crashed_until_s = world.clock.now_s() + it.for_s
        if it.what == "replaced":
            self._num_heads += 1
            world.head_instance_id = f"i-{self._num_heads:013d}head"

    def _step_clock(self, it: Happening) -> None:
        """The head's clock is wrong for a while; then somebody puts it right."""
        world = self.chaos.world
        self.chaos.note("clock", world.clock.now_s() + it.for_s)
        world.head_clock.offset_s = float(it.what)
        self._after(it.for_s, self._right_clock)

    def _right_clock(self) -> None:
        self.chaos.world.head_clock.offset_s = 0.0
