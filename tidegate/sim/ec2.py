"""EC2 with a market that a test can script: shortages, quotas, full subnets, slow answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tidegate.core.ec2 import (
    LAUNCH_TAG,
    POOL_TAG,
    FleetRequest,
    FleetResult,
    Instance,
    InstanceState,
    Market,
    Offering,
    Override,
    Refusal,
    RefusalKind,
)
from tidegate.core.errors import RequestMismatch
from tidegate.ports import Clock
from tidegate.sim.faults import Faults, effect, no_faults

PLENTY = 1_000_000

QUOTA_CODES = {
    Market.ON_DEMAND: "VcpuLimitExceeded",
    Market.SPOT: "MaxSpotInstanceCountExceeded",
}


@dataclass(slots=True)
class SimCompute:
    """The instances of one cluster, and what EC2 would still sell.

    `shortages`: how many more of an offering EC2 gives (0: none); others are unlimited.
    `quotas`: how many live instances of a market the account may have.
    `full_subnets`: subnets without a free address.
    `describe_lag_s`: how long a fresh instance is missing from `instances()`.
    `on_launch`, `on_end`: called with each instance that starts or ends.
    """

    clock: Clock
    shortages: dict[Offering, int] = field(default_factory=dict)
    quotas: dict[Market, int] = field(default_factory=dict)
    full_subnets: set[str] = field(default_factory=set)
    describe_lag_s: float = 0.0
    faults: Faults = no_faults
    on_launch: list[Callable[[Instance], None]] = field(default_factory=list)
    on_end: list[Callable[[Instance], None]] = field(default_factory=list)
    requests: list[FleetRequest] = field(default_factory=list)
    terminated: list[tuple[str, ...]] = field(default_factory=list)
    everything: dict[str, Instance] = field(default_factory=dict)
    _answers: dict[str, tuple[FleetRequest, FleetResult]] = field(default_factory=dict)

    def create_fleet(self, request: FleetRequest) -> FleetResult:
        with effect(self.faults, "create_fleet"):
            self.requests.append(request)
            answered = self._answers.get(request.client_token)
            if answered and answered[0] != request:
                raise RequestMismatch(f"token {request.client_token} came with another request")
            result = answered[1] if answered else self._buy(request)
            self._answers[request.client_token] = (request, result)
        return result

    def instances(self) -> tuple[Instance, ...]:
        with effect(self.faults, "instances"):
            visible_from_s = self.clock.now_s() - self.describe_lag_s
            seen = tuple(one for one in self.live() if one.launched_at_s <= visible_from_s)
        return seen

    def terminate(self, instance_ids: Sequence[str]) -> None:
        with effect(self.faults, "terminate"):
            self.terminated.append(tuple(instance_ids))
            for instance_id in instance_ids:
                self.end(instance_id)

    def live(self) -> tuple[Instance, ...]:
        """What really exists, whatever `instances()` shows yet."""
        return tuple(
            one for one in self.everything.values() if one.state is not InstanceState.TERMINATED
        )

    def end(self, instance_id: str) -> None:
        """End an instance as EC2 does on a reclaim; unknown and ended ones are no error."""
        instance = self.everything.get(instance_id)
        if instance is None or instance.state is InstanceState.TERMINATED:
            return
        ended = replace(instance, state=InstanceState.TERMINATED)
        self.everything[instance_id] = ended
        for tell in self.on_end:
            tell(ended)

    def _buy(self, request: FleetRequest) -> FleetResult:
        taken, refusals = self._choose(request)
        tags = dict(request.tags)
        instances = tuple(self._launch(offering, tags) for offering in taken)
        unique = {refusal.offering: refusal for refusal in refusals}
        return FleetResult(instances, tuple(unique.values()))

    def _choose(self, request: FleetRequest) -> tuple[list[Offering], list[Refusal]]:
        """One offering per instance to launch, and what was refused, in priority order.

        With a minimum EC2 is told to use one zone: the first that can give the minimum.
        """
        ranked = sorted(request.overrides, key=lambda override: override.priority)
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
            room = self.shortages.get(offering, PLENTY) - taken.count(offering)
            room = 0 if override.subnet_id in self.full_subnets else room
            count = min(wanted, room, allowed - len(taken))
            taken += [offering] * count
            if count < wanted:
                refusals.append(self._refusal(offering, override, is_quota=count < room))
        return taken, refusals

    def _allowed(self, market: Market) -> int:
        quota = self.quotas.get(market, PLENTY)
        return max(0, quota - sum(one.offering.market is market for one in self.live()))

    def _refusal(self, offering: Offering, override: Override, *, is_quota: bool) -> Refusal:
        if override.subnet_id in self.full_subnets:
            code = "InsufficientFreeAddressesInSubnet"
            words = f"There are not enough free addresses in subnet '{override.subnet_id}'."
            return Refusal(offering, RefusalKind.SUBNET, code, words)
        if is_quota:
            words = "You have requested more than your current limit allows."
            return Refusal(offering, RefusalKind.QUOTA, QUOTA_CODES[offering.market], words)
        words = (
            f"We currently do not have sufficient {offering.instance_type} capacity in the "
            f"Availability Zone you requested ({offering.zone})."
        )
        return Refusal(offering, RefusalKind.CAPACITY, "InsufficientInstanceCapacity", words)

    def _launch(self, offering: Offering, tags: dict[str, str]) -> Instance:
        if offering in self.shortages:
            self.shortages[offering] -= 1
        instance = Instance(
            instance_id=f"i-{len(self.everything) + 1:017x}",
            offering=offering,
            state=InstanceState.PENDING,
            launched_at_s=self.clock.now_s(),
            launch_id=tags.get(LAUNCH_TAG, ""),
            pool=tags.get(POOL_TAG, ""),
        )
        self.everything[instance.instance_id] = replace(instance, state=InstanceState.RUNNING)
        for tell in self.on_launch:
            tell(instance)
        return instance
