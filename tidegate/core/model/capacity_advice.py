"""What an offer of capacity would do for a cluster's own queue, and what is known of its market."""

from tidegate.core.model.capacity import BlockOffer, ExtensionOffer, Holding, Score
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.frozen import frozen


@frozen
class Sooner:
    """By how much jobs start sooner, on average, than without the offer.

    `is_at_least`: some of them would not start before the block has ended, and count until then.
    """

    mean_s: float
    is_at_least: bool = False


@frozen
class Offered:
    """An offer, played by the planner on this queue.

    `jobs`: that wait now and would start in the block, `later`: jobs of the history that would.
    `if_refused`, `if_sold`: against EC2 going on to refuse what it refuses now, and against it
    selling all of it at once. `idle_share`: of its GPU-hours. `spot_usd`, `on_demand_usd`: what
    the work of the block would cost that way; None: not known, or not all of it would end.
    """

    offer: BlockOffer
    jobs: tuple[str, ...]
    later: int
    if_refused: Sooner | None
    if_sold: Sooner | None
    idle_share: float
    spot_usd: float | None
    on_demand_usd: float | None

    def times(self, usd: float | None) -> float | None:
        """What it costs as a multiple of that; None: one of both is not known."""
        return self.offer.usd / usd if usd and self.offer.usd is not None else None


@frozen
class TypeMarket:
    """What is known of an instance type of a pool that waiting jobs could use.

    Prices are USD per hour of a node, the cheapest zone's; None: not sold to the pool that way.
    `interrupted`: Spot Advisor's class, like "5-10 %", "": not known. `refused`: what EC2 refused
    to the pool and rests now, by market. `spot_quota_nodes`, `on_demand_quota_nodes`: how many
    nodes the account's quotas allow; None: not known.
    """

    pool: str
    instance_type: str
    jobs: int
    spot_usd_per_hour: float | None
    on_demand_usd_per_hour: float | None
    spot_score: Score
    interrupted: str
    refused: tuple[str, ...]
    spot_quota_nodes: int | None
    on_demand_quota_nodes: int | None


@frozen
class IdlePlaces:
    """Places of a reservation that nobody has now, and what they cost all the same.

    `usd_per_hour` None: the price is not known, or all of it was paid before. Source: EC2 user
    guide, "Capacity Reservation pricing and billing": unused places cost what on demand costs.
    """

    reservation: Reservation
    free: int
    usd_per_hour: float | None


@frozen
class ExtensionOffered:
    """A later end for a block of the cluster, and the work that needs one.

    `running`: jobs on the block that may run past its present end. `waiting`: how many jobs wait
    that nothing else would serve now. `on_demand_usd`: what the same instances cost on demand for
    as long; None: not known.
    """

    offer: ExtensionOffer
    running: tuple[str, ...]
    waiting: int
    on_demand_usd: float | None


@frozen
class Advice:
    """`waiting`: jobs that wait for capacity and were played, `left_out`: those that were not, by
    reason. `unlisted`: blocks that were bought for this cluster and that its file does not name.
    `troubles`: of the file's own blocks and groups. `idle`: what is paid for and unused.
    `extensions`: of blocks that end with work on them. `unknown`: what could not be learnt.
    """

    cluster: str
    at_s: float
    waiting: int
    left_out: tuple[tuple[str, int], ...]
    markets: tuple[TypeMarket, ...]
    offers: tuple[Offered, ...]
    unlisted: tuple[Holding, ...]
    troubles: tuple[str, ...]
    idle: tuple[IdlePlaces, ...]
    extensions: tuple[ExtensionOffered, ...]
    unknown: tuple[str, ...]
