"""What EC2 asks for instances now, as it was read last."""

from tidegate.core.model.frozen import frozen

# Spot prices move by hours, list prices by months. What was read longer ago counts no more: the
# cluster file's price holds then.
SPOT_HOLDS_S = 6 * 3600.0
ON_DEMAND_HOLDS_S = 14 * 86400.0


@frozen
class Quote:
    """USD per hour of the instance alone. `zone` "": of every zone, as on-demand prices are."""

    instance_type: str
    usd_per_hour: float
    zone: str = ""


@frozen
class SeenMarket:
    """Prices, and when EC2 said them; None: never.

    `spot_trouble`, `on_demand_trouble`: what could not be read the last time, or was not believed;
    "": nothing.
    """

    spot: tuple[Quote, ...] = ()
    spot_at_s: float | None = None
    on_demand: tuple[Quote, ...] = ()
    on_demand_at_s: float | None = None
    spot_trouble: str = ""
    on_demand_trouble: str = ""

    def has_spot(self, now_s: float) -> bool:
        """Whether the spot prices still hold."""
        return self.spot_at_s is not None and now_s - self.spot_at_s < SPOT_HOLDS_S

    def has_on_demand(self, now_s: float) -> bool:
        """Whether the on-demand prices still hold."""
        return self.on_demand_at_s is not None and now_s - self.on_demand_at_s < ON_DEMAND_HOLDS_S


NEVER_SEEN = SeenMarket()
