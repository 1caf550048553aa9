"""Whether EC2 would take launches of each pool, asked with the rights of whoever runs this."""

from collections.abc import Iterator

from tidegate.core.model.cluster import OPEN, Cluster
from tidegate.core.model.ec2 import Market
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Launch
from tidegate.ports.dry_runs import DryRuns
from tidegate.service.requests import Placement, fleet_request

# What is paid for in advance has templates of its own, and a time in which it can be had.
MARKETS = (Market.ON_DEMAND, Market.SPOT)


@frozen
class DryRun:
    """EC2's answers for one pool in one market: why not, "" when it would.

    `fleet`: CreateFleet. `instance`: RunInstances with the same template; None: not asked.
    """

    pool: str
    market: str
    fleet: str
    instance: str | None


def dry_runs(cluster: Cluster, placement: Placement, ec2: DryRuns) -> Iterator[DryRun]:
    """Both calls, since a DryRun of CreateFleet is documented to ask for the rights to that action
    alone, and the fleet then launches with RunInstances as its caller.

    Sources: EC2 API reference, CreateFleet and RunInstances, DryRun; so does Karpenter's validation
    (aws/karpenter-provider-aws#7624). Errors: Throttled.
    """
    for pool in cluster.pools:
        for market in (each for each in MARKETS if each in pool.markets):
            offerings = tuple(each for _, each in pool.offerings() if each.market is market)
            launch = Launch(
                launch_id="probe",
                pool=pool.name,
                offerings=offerings[:1],
                count=1,
                min_count=1,
                for_jobs=(),
                usd_per_hour_each=0.0,
                gated_for="",
                reason="a dry run",
                reservation=OPEN if market is Market.RESERVED else "",
            )
            request = fleet_request(launch, cluster.name, placement)
            yield DryRun(pool.name, market, ec2.dry_run(request), ec2.dry_run_instance(request))
