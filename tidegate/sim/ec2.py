"""EC2 with a market that a test can script: shortages, quotas, full subnets, slow answers."""

from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace

from tidegate.core.model.cluster import Reservation
from tidegate.core.model.ec2 import (
    LAUNCH_TAG,
    POOL_TAG,
    RECLAIMED,
    TEMPLATE_TAG,
    FleetRequest,
    FleetResult,
    Instance,
    InstanceState,
    Market,
    Offering,
    Override,
    Refusal,
    template_name,
)
from tidegate.core.model.errors import RequestMismatch, TidegateError
from tidegate.ports import Answered, Clock
from tidegate.sim import ec2_refusals
from tidegate.sim.faults import Faults, calls, effect, no_faults
from tidegate.sim.placement import by_priority
from tidegate.sim.prepaid import Prepaid

PLENTY, IDS_MAX = 1_000_000, 200

# How often an answer is read before EC2 has the next request, and how often one whose planner is
# dead does not reach it.
ANSWERED, LOST = 0.4, 0.5

ENDED_SHOWN_S = 3600.0  # how long EC2 shows what has ended to whoever asks for it


@dataclass(slots=True)
class SimCompute:
    """The instances of one cluster, and what EC2 would still sell.

    `shortages`: how many more of an offering EC2 gives (0: none); others are unlimited.
    `quotas`: how many live instances of a market the account may have.
    `full_subnets`: subnets without a free address. `prepaid`: reservations and blocks.
    `throttled`: what EC2 is too busy to judge. `missing`: templates that are gone, by name.
    `describe_lag_s`: how long a fresh instance is missing from `instances()`.
    `ending_s`: how long an ended one still shows there as shutting down.
    `repeats_answers`: whether a request that is repeated under its token brings its first answer
    again; else EC2 does nothing and says nothing, which its documents leave open for fleets.
    `ranked`: the order in which EC2 tries the overrides; on spot it weighs capacity above ours.
    `billed`: since when each instance is billed as what it is billed as now.
    `stopped`: since when, of what EC2 or a planner has stopped and nobody has ended or started;
    for `stopping_s` it stops still, and is not started.
    `luck`: 0 to 1, for the order of what is asked side by side, 0: one after the other.
    `in_flight` hears how many requests are on their way, before EC2 has any.
    `on_request`, `on_terminate`: called before EC2 acts; `on_launch`, `on_end`: with each
    instance that starts or ends; `on_answer`: with what reaches the caller.
    """

    clock: Clock
    shortages: dict[Offering, int] = field(default_factory=dict)
    quotas: dict[Market, int] = field(default_factory=dict)
    full_subnets: set[str] = field(default_factory=set)
    throttled: set[Offering] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    prepaid: Prepaid = field(default_factory=Prepaid)
    describe_lag_s: float = 0.0
    ending_s: float = 0.0
    stopping_s: float = 0.0
    repeats_answers: bool = True
    ranked: Callable[[FleetRequest], Sequence[Override]] = by_priority
    luck: Callable[[], float] = lambda: 0.0
    in_flight: Callable[[int], None] = lambda number: None
    faults: Faults = no_faults
    on_request: list[Callable[[FleetRequest], None]] = field(default_factory=list)
    on_answer: list[Callable[[FleetRequest, FleetResult], None]] = field(default_factory=list)
    on_terminate: list[Callable[[tuple[str, ...]], None]] = field(default_factory=list)
    on_launch: list[Callable[[Instance], None]] = field(default_factory=list)
    on_end: list[Callable[[Instance], None]] = field(default_factory=list)
    requests: list[FleetRequest] = field(default_factory=list)
    terminated: list[tuple[str, ...]] = field(default_factory=list)
    everything: dict[str, Instance] = field(default_factory=dict)
    billed: dict[str, float] = field(default_factory=dict)
    stopped: dict[str, float] = field(default_factory=dict)
    _living: dict[str, Instance] = field(default_factory=dict)
    _shown_stopped_until_s: dict[str, float] = field(default_factory=dict)
    _hidden_until_s: dict[str, float] = field(default_factory=dict)
    ended_at_s: dict[str, float] = field(default_factory=dict)
    _answers: dict[str, tuple[FleetRequest, FleetResult]] = field(default_factory=dict)

    def create_fleets(self, requests: Sequence[FleetRequest]) -> Generator[tuple[Answered, ...]]:
        """All are on their way at once: they reach EC2 in one drawn order, their answers come in
        another. Of what is still on its way when the caller dies some reaches EC2.
        """
        for request in requests:
            for tell in self.on_request:
                tell(request)
        self.in_flight(len(requests))
        under_way, answered = list(requests), list[Answered]()
        try:
            while under_way or answered:
                if under_way and (not answered or self.luck() > ANSWERED):
                    asked = under_way.pop(int(self.luck() * len(under_way)))
                    answered.append(Answered(asked, self._asked(asked)))
                else:
                    came = answered.pop(int(self.luck() * len(answered)))
                    if isinstance(came.result, FleetResult):
                        for hear in self.on_answer:
                            hear(came.request, came.result)
                    yield (came,)
        finally:
            for request in under_way:
                if self.luck() > LOST:
                    self._take(request)

    def create_fleet(self, request: FleetRequest) -> FleetResult:
        """One alone. Errors: as `create_fleets` answers."""
        ((answered,),) = self.create_fleets([request])
        if isinstance(answered.result, TidegateError):
            raise answered.result
        return answered.result

    def _asked(self, request: FleetRequest) -> FleetResult | TidegateError:
        try:
            with effect(self.faults, "create_fleet"):
                return self._take(request)
        except TidegateError as trouble:
            return trouble

    def _take(self, request: FleetRequest) -> FleetResult:
        """EC2 has the request; it knows what it answered under this token."""
        self.requests.append(request)
        if request.starts:
            return self._start(request)
        answered = self._answers.get(request.client_token)
        if answered and answered[0] != request:
            raise RequestMismatch(f"token {request.client_token} came with another request")
        if answered:
            return answered[1] if self.repeats_answers else FleetResult((), ())
        result = self._buy(request)
        self._answers[request.client_token] = (request, result)
        return result

    def instances(self) -> tuple[Instance, ...]:
        with effect(self.faults, "instances"):
            now_s = self.clock.now_s()
            ended = self.ended_at_s.items() if self.ending_s else ()
            ending = [self.everything[i] for i, at_s in ended if now_s < at_s + self.ending_s]
            going = (replace(one, state=InstanceState.SHUTTING_DOWN) for one in ending)
            there = (self._shown(each) for each in (*self._living, *self.stopped))
            return self._seen((*there, *going))

    def launched_by(self, launch_ids: Collection[str]) -> tuple[Instance, ...]:
        with effect(self.faults, "launched_by"):
            every = self.everything.items()
            return self._told_of(name for name, one in every if one.launch_id in launch_ids)

    def by_id(self, instance_ids: Collection[str]) -> tuple[Instance, ...]:
        chunks = calls(self.faults, "by_id", instance_ids, IDS_MAX)
        return self._told_of(n for chunk in chunks for n in chunk if n in self.everything)

    def _told_of(self, names: Iterable[str]) -> tuple[Instance, ...]:
        since_s = self.clock.now_s() - ENDED_SHOWN_S
        shown = (name for name in names if self.ended_at_s.get(name, since_s) >= since_s)
        return self._seen(self.everything[name] for name in shown)

    def _seen(self, shown: Iterable[Instance]) -> tuple[Instance, ...]:
        now_s, hidden = self.clock.now_s(), self._hidden_until_s
        return tuple(one for one in shown if now_s >= hidden.get(one.instance_id, 0.0))

    def terminate(self, instance_ids: Sequence[str]) -> None:
        for tell in self.on_terminate:
            tell(tuple(instance_ids))
        for chunk in calls(self.faults, "terminate", instance_ids, IDS_MAX):
            self.terminated.append(chunk)
            for instance_id in chunk:
                self.end(instance_id)
                self.forget(instance_id)

    def forget(self, instance_id: str) -> None:
        """End what is stopped, if it is."""
        if self.stopped.pop(instance_id, None) is not None:
            self.put(replace(self.everything[instance_id], state=InstanceState.TERMINATED))

    def stop(self, instance_ids: Sequence[str]) -> None:
        for tell in self.on_terminate:
            tell(tuple(instance_ids))
        for chunk in calls(self.faults, "stop", instance_ids, IDS_MAX):
            for instance_id in chunk:
                self.halt(instance_id, "Client.UserInitiatedShutdown")

    def _start(self, request: FleetRequest) -> FleetResult:
        """Its tags are set whatever comes of it."""
        name, launch_id = request.starts, dict(request.tags).get(LAUNCH_TAG, "")
        one = self.everything.get(name)
        if one is None or not (self.is_live(name) or name in self.stopped):
            return FleetResult((), ())
        one = self.everything[name] = replace(one, launch_id=launch_id)
        if self.is_live(name):
            self._living[name] = one
            return FleetResult((one,), ())
        if self._shown(name).state is InstanceState.STOPPING:
            return FleetResult((), ())
        taken, refusals = self._choose(request)
        if not taken:
            return FleetResult((), tuple(refusals))
        del self.stopped[name]
        self._shown_stopped_until_s[name] = self.clock.now_s() + self.describe_lag_s
        return FleetResult((self._run(one, taken[0], request.launch_template_id),), ())

    def _shown(self, instance_id: str) -> Instance:
        """As Describe has it: it stops for a while, and what was started is shown as it was."""
        one, now_s = self.everything[instance_id], self.clock.now_s()
        stopping_s = now_s - self.stopped.get(instance_id, 0.0)
        if instance_id in self.stopped and stopping_s < self.stopping_s:
            return replace(one, state=InstanceState.STOPPING)
        is_late = now_s < self._shown_stopped_until_s.get(instance_id, 0.0)
        return replace(one, state=InstanceState.STOPPED) if is_late else one

    def live(self) -> tuple[Instance, ...]:
        """What really exists, whatever `instances()` shows yet."""
        return tuple(self._living.values())

    def is_live(self, instance_id: str) -> bool:
        return instance_id in self._living

    def put(self, instance: Instance) -> None:
        """EC2 has this one from now on, in this state, whoever launched it."""
        before = self.everything.get(instance.instance_id)
        if before is None or before.offering != instance.offering:
            self.billed[instance.instance_id] = self.clock.now_s()
        self.everything[instance.instance_id] = instance
        if instance.state is InstanceState.TERMINATED:
            self._living.pop(instance.instance_id, None)
        else:
            self._living[instance.instance_id] = instance

    def hide(self, instance_id: str, seconds: float) -> None:
        """Describe leaves this one out for a while: EC2 is eventually consistent."""
        self._hidden_until_s[instance_id] = self.clock.now_s() + seconds

    def end(self, instance_id: str, why: str = "") -> None:
        """End an instance; unknown and ended ones are no error. `why`: EC2's code, "": none."""
        if not self.is_live(instance_id):
            return
        one = self.everything[instance_id]
        is_told = why != RECLAIMED or one.offering.market is Market.SPOT
        ended = replace(one, state=InstanceState.TERMINATED, state_reason=why if is_told else "")
        self.put(ended)
        left = self.prepaid.held.pop(instance_id, None)
        self.ended_at_s[instance_id] = self.clock.now_s()
        for tell in self.on_end:
            tell(ended)
        if left:
            self.fill_reservation(left)

    def retire(self, instance_id: str) -> None:
        """The host fails as announced: spot is ended, others are stopped: their root is on EBS."""
        self.halt(instance_id)
        self.end(instance_id)

    def halt(self, instance_id: str, why: str = "") -> None:
        """It may be started, and has left its reservation. Not spot, nor what has ended."""
        one = self.everything.get(instance_id)
        if one is None or not self.is_live(instance_id) or one.offering.market is Market.SPOT:
            return
        self.end(instance_id)
        on_demand = replace(one.offering, market=Market.ON_DEMAND)
        one = replace(one, state=InstanceState.STOPPED, offering=on_demand, state_reason=why)
        self.everything[instance_id] = replace(one, capacity_reservation_id="")
        self.stopped[instance_id] = self.clock.now_s()
        del self.ended_at_s[instance_id]

    def fill_reservation(self, reservation: Reservation) -> None:
        """EC2 takes what runs on demand and fits into an open reservation that has room."""
        if reservation.is_named:
            return
        paid = reservation.offering
        on_demand = replace(paid, market=Market.ON_DEMAND)
        fitting = (one for one in self.live() if one.offering == on_demand)
        places = self.prepaid.free(paid, self.clock.now_s())
        for one, place in zip(fitting, places, strict=False):
            self.prepaid.held[one.instance_id] = place
            self.put(replace(one, offering=paid, capacity_reservation_id=place.id))

    def end_reservation(self, reservation: Reservation) -> None:
        """EC2 ends what is in a block, and bills what was in a reservation as on demand."""
        for name in self.prepaid.held_in(reservation):
            if reservation.market is Market.CAPACITY_BLOCK:
                self.end(name)
            else:
                del self.prepaid.held[name]
                one = self.everything[name]
                on_demand = replace(one.offering, market=Market.ON_DEMAND)
                self.put(replace(one, offering=on_demand, capacity_reservation_id=""))

    def _buy(self, request: FleetRequest) -> FleetResult:
        name = template_name(request.launch_template_id, request.launch_template_version)
        if name in self.missing:
            return FleetResult((), ec2_refusals.no_template(request))
        taken, refusals = self._choose(request)
        instances = tuple(self._launch(offering, request) for offering in taken)
        unique = {refusal.offering: refusal for refusal in refusals}
        return FleetResult(instances, tuple(unique.values()))

    def _choose(self, request: FleetRequest) -> tuple[list[Offering], list[Refusal]]:
        """One offering per instance to launch, and what was refused, in priority order.

        With a minimum EC2 is told to use one zone: the first that can give the minimum.
        """
        ranked = self.ranked(request)
        if request.min_count <= 1:
            return self._fill(ranked, request)
        refusals: list[Refusal] = []
        for zone in dict.fromkeys(override.zone for override in ranked):
            here = [override for override in ranked if override.zone == zone]
            taken, refused = self._fill(here, request)
            refusals += refused
            if len(taken) >= request.min_count:
                return taken, refusals
        return [], refusals

    def _fill(
        self, ranked: Sequence[Override], request: FleetRequest
    ) -> tuple[list[Offering], list[Refusal]]:
        taken: list[Offering] = []
        refusals: list[Refusal] = []
        allowed = self._allowed(request.market)
        for override in ranked:
            wanted = request.count - len(taken)
            if wanted == 0:
                break
            offering = Offering(override.instance_type, override.zone, request.market)
            room = self._room(offering, request) - taken.count(offering)
            is_barred = override.subnet_id in self.full_subnets or offering in self.throttled
            room = 0 if is_barred else room
            count = min(wanted, room, allowed - len(taken))
            taken += [offering] * count
            if count < wanted:
                refusals.append(self._refusal(offering, override, is_quota=count < room))
        return taken, refusals

    def _room(self, offering: Offering, request: FleetRequest) -> int:
        """What is paid for first; then what is sold on demand, unless the template forbids it."""
        if not offering.market.is_prepaid:
            return self.shortages.get(offering, PLENTY)
        free = self.prepaid.room(request, offering, self.clock.now_s())
        if offering.market.is_named or self.prepaid.is_only_reserved(request):
            return free
        return free + self.shortages.get(replace(offering, market=Market.ON_DEMAND), PLENTY)

    def _allowed(self, market: Market) -> int:
        quota = self.quotas.get(market, PLENTY)
        return max(0, quota - sum(one.offering.market is market for one in self.live()))

    def _refusal(self, offering: Offering, override: Override, *, is_quota: bool) -> Refusal:
        if offering in self.throttled:
            return ec2_refusals.too_many_requests(offering)
        if override.subnet_id in self.full_subnets:
            return ec2_refusals.no_address(offering, override.subnet_id)
        return ec2_refusals.over_quota(offering) if is_quota else ec2_refusals.no_capacity(offering)

    def _launch(self, asked: Offering, request: FleetRequest) -> Instance:
        """The answer names the market that was asked for, whatever Describe will show."""
        name, tags = f"i-{len(self.everything) + 1:017x}", dict(request.tags)
        groups = {(e.instance_type, e.zone): e.placement_group for e in request.overrides}
        group = groups[asked.instance_type, asked.zone]
        state, now_s = InstanceState.PENDING, self.clock.now_s()
        launch_id, pool = tags.get(LAUNCH_TAG, ""), tags.get(POOL_TAG, "")
        template = tags.get(TEMPLATE_TAG, "")
        one = Instance(
            *(name, asked, state, now_s, launch_id, pool, template), placement_group=group
        )
        launched = self._run(one, asked, request.launch_template_id)
        if self.describe_lag_s:
            self.hide(name, self.describe_lag_s)
        return launched

    def _run(self, one: Instance, asked: Offering, template_id: str) -> Instance:
        """It runs from now on, new or started."""
        name, now_s = one.instance_id, self.clock.now_s()
        offering, place = asked, ""
        if self.prepaid.reservations:
            offering = self.prepaid.take(name, asked, now_s, template_id)
            place = self.prepaid.held[name].id if name in self.prepaid.held else ""
        if offering in self.shortages:
            self.shortages[offering] -= 1
        instance = replace(
            one,
            offering=offering,
            state=InstanceState.PENDING,
            launched_at_s=now_s,
            capacity_reservation_id=place,
            state_reason="",
        )
        self.put(replace(instance, state=InstanceState.RUNNING))
        self.billed[name] = now_s
        for tell in self.on_launch:
            tell(instance)
        return replace(instance, offering=asked, capacity_reservation_id="")
