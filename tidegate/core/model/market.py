"""What EC2 asks for instances now, as it was read last."""

from tidegate.core.model.frozen import frozen
from tidegate.core.model.seen_reservations import NONE_SEEN, SeenReservations

# Spot prices move by hours, list prices by months. What was read longer ago counts no more: the
# cluster file's price holds then.
SPOT_HOLDS_S = 6 * 3600.0
ON_DEMAND_HOLDS_S = 14 * 86400.0


@frozen
class Quote:
    """What EC2 asks for an instance."""

    instance_type: str  #: instance type
    usd_per_hour: float  #: USD per hour of the instance alone
    zone: str = ""  #: its zone; empty: of every zone, as on-demand prices are


@frozen
class SeenMarket:
    """Prices, and when EC2 said them; and the reservations that are paid for."""

    spot: tuple[Quote, ...] = ()  #: spot prices
    spot_at_s: float | None = None  #: when they were read, epoch seconds; null: never
    on_demand: tuple[Quote, ...] = ()  #: on-demand prices
    on_demand_at_s: float | None = None  #: when they were read, epoch seconds; null: never
    #: what of the spot prices could not be read the last time, or was not believed; empty: nothing
    spot_trouble: str = ""
    on_demand_trouble: str = ""  #: the same of on-demand prices
    reservations: SeenReservations = NONE_SEEN  #: those of groups, and the ends of blocks

    def has_spot(self, now_s: float) -> bool:
        """Whether the spot prices still hold."""
        return self.spot_at_s is not None and now_s - self.spot_at_s < SPOT_HOLDS_S

    def has_on_demand(self, now_s: float) -> bool:
        """Whether the on-demand prices still hold."""
        return self.on_demand_at_s is not None and now_s - self.on_demand_at_s < ON_DEMAND_HOLDS_S


NEVER_SEEN = SeenMarket()
