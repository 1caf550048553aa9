"""From a planned launch to the exact CreateFleet request that goes into the ledger."""

from collections.abc import Collection, Mapping
from dataclasses import field

from tidegate.core.model.cluster import group_key, named_key
from tidegate.core.model.ec2 import (
    ACCOUNT_TAG,
    CLUSTER_TAG,
    DATA_TAG,
    GATE_TAG,
    JOB_TAG,
    LAUNCH_TAG,
    MIG_TAG,
    POOL_TAG,
    TAG_VALUE_MAX,
    TEMPLATE_TAG,
    USER_TAG,
    FleetRequest,
    Offering,
    Override,
    Template,
    client_token,
)
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Launch
from tidegate.core.model.resting import Resting


@frozen
class Placement:
    """Where nodes are launched from and into: template by pool, subnet by zone.

    Capacity that is paid for has templates of its own, by `named_key` and `reserved_key`: EC2
    takes from there alone where an instance may go. `groups`: placement group by `group_key`.
    `pool_subnets`: those of pools that name some, by `group_key` too.
    """

    templates: Mapping[str, Template]
    subnets: Mapping[str, str]
    groups: Mapping[str, str] = field(default_factory=dict)
    pool_subnets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def subnets_of(self, pool: str, zone: str) -> tuple[str, ...]:
        """Each is filled before the next; (): the zone has none that is deployed."""
        own = self.pool_subnets.get(group_key(pool, zone))
        return own or tuple(filter(None, [self.subnets.get(zone)]))


def fleet_request(
    launch: Launch, cluster: str, placement: Placement, full: Collection[Resting] = ()
) -> FleetRequest:
    """The request for `launch`; per-launch facts travel as tags that the node reads in IMDS.

    `full`: which subnets have no free address now, and for what.
    """
    key = template_key(launch)
    own = launch.template if key == launch.pool else None
    template = own or placement.templates[key]
    tags = {CLUSTER_TAG: cluster, LAUNCH_TAG: launch.launch_id, POOL_TAG: launch.pool}
    if launch.gated_for:
        tags[GATE_TAG] = "drain"
    if launch.layout:
        tags[MIG_TAG] = launch.layout
    if launch.data:
        tags[DATA_TAG] = launch.data
    job = launch.for_jobs[0] if launch.for_jobs else ""
    owner = {ACCOUNT_TAG: launch.account, USER_TAG: launch.user, JOB_TAG: job}
    tags |= {key: value[:TAG_VALUE_MAX] for key, value in owner.items() if value}
    if template.digest:
        tags[TEMPLATE_TAG] = template.digest
    if launch.starts:  # it has the tags of its former launch
        tags = dict.fromkeys((GATE_TAG, MIG_TAG, DATA_TAG, *owner), "") | tags
    return FleetRequest(
        client_token=client_token(cluster, launch.launch_id),
        launch_template_id=template.template_id,
        launch_template_version=template.version,
        market=launch.offerings[0].market,
        count=launch.count,
        min_count=launch.min_count,
        overrides=tuple(
            Override(
                each.instance_type,
                each.zone,
                _subnet(launch, each, placement, full),
                priority,
                _group(launch, each.zone, placement),
            )
            for priority, each in enumerate(launch.offerings)
        ),
        tags=tuple(sorted(tags.items())),
        starts=launch.starts,
    )


def _subnet(
    launch: Launch, offering: Offering, placement: Placement, full: Collection[Resting]
) -> str:
    """The first that may have room. EC2 takes a type only once in each zone of a fleet ("duplicate
    instance pools"), so the next one is asked for when this one is full.

    Source: github-aws-runners/terraform-aws-github-runner#5297.
    """
    there = placement.subnets_of(launch.pool, offering.zone)
    resting = {each.subnet for each in full if each.offering == offering}
    return next((each for each in there if each not in resting), there[0])


def template_key(launch: Launch) -> str:
    """Which of the pool's templates a launch is made from."""
    return named_key(launch.pool, launch.reservation) if launch.reservation else launch.pool


def _group(launch: Launch, zone: str, placement: Placement) -> str:
    """Members of a gang are close together where their pool has placement groups.

    Not where places are paid for: those of a block are close together, and EC2 takes no group
    beside it; a group in which a reservation was not made may have no room where that has.
    Source: ParallelCluster's validators, which refuse the first and warn of the second.
    """
    if not launch.gated_for or launch.offerings[0].market.is_prepaid:
        return ""
    return placement.groups.get(group_key(launch.pool, zone), "")
