"""Capacity that is paid for in advance: what a world has of it, and what EC2 keeps of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from tidegate.core.model.cluster import Cluster, Pool, Reservation, reserved_key
from tidegate.core.model.ec2 import FleetRequest, Market, Offering
from tidegate.core.model.ultraservers import is_in_ultraserver
from tidegate.core.offers.reservations import BLOCK_DRAIN_S
from tidegate.sim.clock import START_S
from tidegate.sim.options import Arrival

# EC2 begins to end the instances of a capacity block that long before its end.
BLOCK_ENDS_EARLY_S, ULTRASERVER_ENDS_EARLY_S = 1800.0, 3600.0
# Of small worlds, and of the others, which have room for what else may meet it.
SHARE_OF_SMALL, SHARE_OF_LARGER = 0.09, 0.3
BOOT_S = 300.0
# What some of the reservations are in.
GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/gpus"


def with_prepaid(
    chance: Random, cluster: Cluster, size: str, safety_s: float, on_demand_usd: Mapping[str, float]
) -> Cluster:
    """Now and then a pool has an open reservation or a capacity block, or up to three.

    `on_demand_usd`: by instance type, what EC2 bills for what runs on after a reservation.
    """
    if chance.random() >= (SHARE_OF_SMALL if size == "small" else SHARE_OF_LARGER):
        return cluster
    number = chance.randrange(len(cluster.pools))
    pool = cluster.pools[number]
    found = tuple(
        _drawn(chance, pool, f"cr-0000000{each}", safety_s)
        for each in range(chance.choice((1, 1, 2, 3)))
    )
    if len(found) > 1 and chance.random() < 0.7:
        first = found[0].offering  # of one offering, with an end each
        found = tuple(_at(each, first) for each in found)
    found = tuple(_aimed(chance, each) for each in found)
    kinds = tuple(dict.fromkeys(each.market for each in found))
    pools = list(cluster.pools)
    pools[number] = replace(pool, markets=(*kinds, *pool.markets))
    prices = {each.offering: 0.0 for each in found}
    prices |= {
        replace(each.offering, market=Market.ON_DEMAND): on_demand_usd[each.instance_type]
        for each in found
        if each.market is Market.RESERVED
    }
    prices |= cluster.prices
    return replace(cluster, pools=tuple(pools), reservations=found, prices=prices)


def with_limit(chance: Random, cluster: Cluster) -> Cluster:
    """Half the clusters with an open reservation may spend about what its node costs on demand."""
    on_demand = [
        cluster.prices[replace(each.offering, market=Market.ON_DEMAND)]
        for each in cluster.reservations
        if each.market is Market.RESERVED
    ]
    if not on_demand or chance.random() < 0.5:
        return cluster
    usd_per_hour = round(chance.uniform(0.3, 2.5) * max(on_demand), 2)
    return replace(cluster, limits=replace(cluster.limits, usd_per_hour=usd_per_hour))


def _drawn(chance: Random, pool: Pool, name: str, safety_s: float) -> Reservation:
    """It begins before the story or in it, and most end in it."""
    starts_at_s = START_S + chance.choice((-600.0, -60.0, chance.uniform(0.0, safety_s / 2)))
    market = chance.choice((Market.RESERVED, Market.CAPACITY_BLOCK))
    ends_at_s: float | None = max(starts_at_s, START_S) + chance.uniform(60.0, 2 * safety_s)
    if market is Market.CAPACITY_BLOCK:
        ends_at_s = (ends_at_s or 0.0) + 2 * BOOT_S + BLOCK_DRAIN_S
    elif chance.random() < 0.4:
        ends_at_s = None
    return Reservation(
        name,
        chance.choice(pool.instance_types).name,
        chance.choice(pool.zones),
        chance.choice((1, 1, 2, 4)),
        market,
        starts_at_s,
        ends_at_s,
    )


def _at(each: Reservation, on: Offering) -> Reservation:
    return replace(each, instance_type=on.instance_type, zone=on.zone, market=on.market)


def _aimed(chance: Random, each: Reservation) -> Reservation:
    """A third of the reservations take only what names them, half of these by their group; a block
    always does.
    """
    if each.market is not Market.RESERVED:
        return each
    drawn = chance.random()
    return replace(each, is_targeted=drawn < 0.33, group=GROUP if drawn < 0.16 else "")


def with_time_limits(
    chance: Random, arrivals: Iterable[Arrival], cluster: Cluster
) -> tuple[Arrival, ...]:
    """Where there is a block most users say how long their jobs take: no others come into it."""
    if all(each.market is not Market.CAPACITY_BLOCK for each in cluster.reservations):
        return tuple(arrivals)
    found: list[Arrival] = []
    for each in arrivals:
        parts = (each.submit, *each.submit.beside)
        if chance.random() < 0.8:
            parts = tuple(replace(one, time_limit_s=2 * one.duration_s + 60.0) for one in parts)
        found.append(replace(each, submit=replace(parts[0], beside=parts[1:])))
    return tuple(found)


@dataclass(slots=True)
class Prepaid:
    """EC2's own account of reservations and blocks.

    `held`: instance -> what it is in; `strangers`: id of an open reservation -> how many places
    other instances of the account fill, which nobody tells us of.
    """

    reservations: tuple[Reservation, ...] = ()
    held: dict[str, Reservation] = field(default_factory=dict)
    strangers: dict[str, int] = field(default_factory=dict)

    def free(self, offering: Offering, now_s: float, template_id: str = "") -> list[Reservation]:
        """A place each: what names one, or a group, goes there alone; else an open reservation
        takes what fits it, a block and a targeted one take nothing.
        """
        found: list[Reservation] = []
        named = [each.id for each in self.reservations if template_id.endswith(each.target)]
        for each in self.reservations:
            is_meant = each.id in named if named else not each.is_named
            if each.offering == offering and is_meant and is_open(each, now_s):
                taken = sum(one is each for one in self.held.values())
                taken += self.strangers.get(each.id, 0)
                found += [each] * (each.count - taken)
        return found

    def room(self, request: FleetRequest, offering: Offering, now_s: float) -> int:
        """How many of the request's instances are paid for already."""
        return len(self.free(offering, now_s, request.launch_template_id))

    def take(
        self, instance_id: str, offering: Offering, now_s: float, template_id: str
    ) -> Offering:
        """Where EC2 really puts an instance: it fills open reservations first."""
        open_one = replace(offering, market=Market.RESERVED)
        meant = offering if offering.market.is_named else open_one
        places = [] if offering.market is Market.SPOT else self.free(meant, now_s, template_id)
        if places:
            self.held[instance_id] = places[0]
            return places[0].offering
        is_paid = offering.market is Market.RESERVED
        return replace(offering, market=Market.ON_DEMAND) if is_paid else offering

    def change(self, changed: Reservation) -> None:
        """Its owner has made it, or changed it; what is in it stays."""
        known = {each.id: each for each in self.reservations} | {changed.id: changed}
        self.reservations = tuple(known.values())
        for name, each in self.held.items():
            if each.id == changed.id:
                self.held[name] = changed

    def held_in(self, reservation: Reservation) -> list[str]:
        return [name for name, each in self.held.items() if each is reservation]

    def is_only_reserved(self, request: FleetRequest) -> bool:
        """Its template says `capacity-reservations-only`, or names a reservation.

        Source: EC2 user guide, "Launch instances into an existing Capacity Reservation".
        """
        template_id = request.launch_template_id
        names = any(template_id.endswith(each.target) for each in self.reservations)
        return names or template_id.endswith(reserved_key(""))


def is_open(each: Reservation, now_s: float) -> bool:
    """Whether EC2 puts instances into it."""
    ends_at_s = ec2_ends_at_s(each)
    return each.starts_at_s <= now_s and (ends_at_s is None or now_s < ends_at_s)


def ec2_ends_at_s(each: Reservation) -> float | None:
    """When EC2 takes its instances out of it; None: never."""
    if each.ends_at_s is None or each.market is not Market.CAPACITY_BLOCK:
        return each.ends_at_s
    if is_in_ultraserver(each.instance_type):
        return each.ends_at_s - ULTRASERVER_ENDS_EARLY_S
    return each.ends_at_s - BLOCK_ENDS_EARLY_S
