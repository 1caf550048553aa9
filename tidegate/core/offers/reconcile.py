"""Our bill of nodes beside AWS's: what each says of a day and a pool, and what only one knows."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Bill
from tidegate.core.offers.allocation import Share


@frozen
class AwsCharge:
    """What AWS charges for a resource on a day. `is_tagged`: its tags name the cluster; `pool`: and
    this pool of it, "" where they do not.
    """

    day: str
    resource_id: str
    pool: str
    is_tagged: bool
    usd: float

    @property
    def is_instance(self) -> bool:
        return self.resource_id.startswith("i-")


@frozen
class Compared:
    """USD of a pool's nodes on a day, by our bill and by AWS's."""

    day: str
    pool: str
    ours_usd: float
    aws_usd: float

    @property
    def difference_usd(self) -> float:
        """How much more AWS asks."""
        return self.aws_usd - self.ours_usd


@frozen
class OneSided:
    """An instance that is on one bill alone, since a day."""

    instance_id: str
    pool: str
    since: str
    usd: float


@frozen
class Reconciled:
    """`only_aws`: AWS charges them as nodes of the cluster. `only_ours`: AWS has no charge for
    them. `is_tagged`: some charge names the cluster; else AWS's bill does not show our tags, and
    nobody can tell what it has beside the nodes that we know.
    """

    rows: tuple[Compared, ...]
    only_aws: tuple[OneSided, ...]
    only_ours: tuple[OneSided, ...]
    is_tagged: bool

    @property
    def ours_usd(self) -> float:
        return sum(row.ours_usd for row in self.rows)

    @property
    def aws_usd(self) -> float:
        return sum(row.aws_usd for row in self.rows)


def reconciled(
    charges: Sequence[AwsCharge], bills: Iterable[Bill], shares: Iterable[Share]
) -> Reconciled:
    """`shares`: of the bills, of the time that the charges are for.

    A charge is for a node when we know its instance, or when its tags name the cluster and a pool:
    disks and addresses of nodes have those too, the head has no pool.
    """
    pools = {bill.instance_id: bill.pool for bill in bills}
    ours: defaultdict[tuple[str, str], float] = defaultdict(float)
    of_ours: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for share in shares:
        ours[share.day, share.bill.pool] += share.usd
        days = of_ours[share.bill.instance_id]
        days[share.day] = days.get(share.day, 0.0) + share.usd
    aws: defaultdict[tuple[str, str], float] = defaultdict(float)
    of_aws: defaultdict[str, dict[str, float]] = defaultdict(dict)
    tagged_as: dict[str, str] = {}
    for charge in charges:
        pool = pools.get(charge.resource_id) or charge.pool
        if not pool:
            continue
        aws[charge.day, pool] += charge.usd
        if charge.is_instance:
            days = of_aws[charge.resource_id]
            days[charge.day] = days.get(charge.day, 0.0) + charge.usd
            tagged_as[charge.resource_id] = pool
    rows = (Compared(*key, ours[key], aws[key]) for key in sorted(ours.keys() | aws.keys()))
    return Reconciled(
        tuple(rows),
        _one_sided(of_aws, pools.keys(), tagged_as),
        _one_sided(of_ours, of_aws.keys(), pools),
        any(charge.is_tagged for charge in charges),
    )


def _one_sided(
    found: Mapping[str, Mapping[str, float]], known: Iterable[str], pools: Mapping[str, str]
) -> tuple[OneSided, ...]:
    """Those that the other bill does not know, the dearest first."""
    those = (
        OneSided(name, pools[name], min(found[name]), sum(found[name].values()))
        for name in found.keys() - set(known)
    )
    return tuple(sorted(those, key=lambda each: (-each.usd, each.instance_id)))
