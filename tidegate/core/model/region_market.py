"""What the same work would cost in another region, and what stands in the way."""

from tidegate.core.model.frozen import frozen


@frozen
class QuotaUse:
    """A quota of a region and what the play used of it at most, in vCPUs."""

    name: str
    used_vcpus: int
    allowed_vcpus: float

    @property
    def is_enough(self) -> bool:
        return self.used_vcpus <= self.allowed_vcpus


@frozen
class Played:
    """The history, played by the planner at a region's prices. `never_ran`: jobs, by reason.

    `wait_p50_s`, `wait_p95_s`: from submission to the first start.
    """

    usd: float
    jobs: int
    jobs_ended: int
    never_ran: tuple[tuple[str, int], ...]
    wait_p50_s: float
    wait_p95_s: float
    interruptions: int


@frozen
class RegionCost:
    """`played` None: it could not be played there, for the reasons in `not_possible`.

    `zones`: by pool. `unsold`: instance types of the pools that nobody sells there. `usd_per_gb`:
    of data that is moved there from the cluster's region, None: not known; `move_usd`: of all of
    it, once. `quotas`: None where they could not be asked. `unknown`: what could not be learnt.
    """

    region: str
    name: str
    is_own: bool
    played: Played | None
    zones: tuple[tuple[str, tuple[str, ...]], ...]
    unsold: tuple[str, ...]
    usd_per_gb: float | None
    move_usd: float | None
    quotas: tuple[QuotaUse, ...] | None
    not_possible: tuple[str, ...]
    unknown: tuple[str, ...]


@frozen
class RegionMarket:
    """The cluster's own region first. `data_gb`: what would be moved once; `notes`: what no figure
    of it says.
    """

    cluster: str
    history: str
    data_gb: float
    regions: tuple[RegionCost, ...]
    notes: tuple[str, ...]
