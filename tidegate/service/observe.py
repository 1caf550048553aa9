"""Gathering one snapshot from ledger, digest and EC2."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from tidegate.core.fleet.rests import outweighed
from tidegate.core.fleet.templates import in_force, in_use, refused, rollout_of
from tidegate.core.model.alarms import SeenAlarm, SeenAlarms
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.digest import supersedes
from tidegate.core.model.ec2 import Instance, Template
from tidegate.core.model.errors import BadEvent, NotAuthorized, Throttled, TidegateError
from tidegate.core.model.ledger import NOT_TAKEN, NodeRecord
from tidegate.core.model.resting import STARTS
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.market import at_market
from tidegate.core.offers.subnets import SubnetsOf, stopped_by
from tidegate.ports import Bus, Calendar, Clock, Compute, Ledger, LedgerView, ReceivedDigest
from tidegate.ports.alarms import Alarms

NEVER_HEARD_S = float("inf")


@dataclass(slots=True)
class AskedOnce:
    """Alarms as they were when a look asked first: it may plan several times within seconds."""

    alarms: Alarms
    _seen: tuple[SeenAlarm, ...] | None = None

    def states(self, names: Sequence[str]) -> tuple[SeenAlarm, ...]:
        """Errors: as `Alarms`; then the next plan asks again."""
        if self._seen is None:
            self._seen = self.alarms.states(names)
        return self._seen


def observe(
    cluster: Cluster,
    *,
    compute: Compute,
    ledger: Ledger,
    bus: Bus,
    clock: Clock,
    calendar: Calendar,
    alarms: Alarms | None = None,
    templates: Mapping[str, Template] = MappingProxyType({}),
    subnets_of: SubnetsOf = lambda pool, zone: (),
) -> tuple[Snapshot, tuple[str, ...]]:
    """What the planner may know now, and notes on what had to be dropped.

    The ledger is read first: its epoch fences everything that is read after it.
    `templates`, `subnets_of`: as the stack deployed them. `alarms`: asked only where the file names
    some and a pool is on its way to a new template.
    Errors: Throttled, NotAuthorized of the ports.
    """
    view = ledger.view()
    received, notes = _digest(cluster, bus, view)
    now_s = clock.now_s()
    instances = _instances(compute, view.nodes)
    snapshot = Snapshot(
        now_s=now_s,
        cluster=at_market(cluster, view.seen_market, now_s),
        epoch=view.epoch,
        digest=received.digest if received else None,
        digest_age_s=received.age_s if received else NEVER_HEARD_S,
        instances=instances,
        nodes=_as_they_ended(view.nodes, instances),
        launches=view.launches,
        resting=view.resting,
        stuck=view.stuck,
        spent=view.spent,
        losses=view.losses,
        templates=tuple(
            (pool.name, templates[pool.name]) for pool in cluster.pools if pool.name in templates
        ),
        pool_history=view.pool_history,
        seen_market=view.seen_market,
        wanted=calendar.wanted(now_s, view.overrides),
    )
    used, pool_history = in_force(snapshot, templates), in_use(snapshot)
    spared = outweighed(used, view.nodes, view.pool_history)
    rests = tuple(each for each in used if each.key not in spared)
    full = tuple(each for each in rests if each.subnet)
    found = replace(
        snapshot,
        resting=(
            *(each for each in rests if not each.subnet),
            *stopped_by(full, cluster.pools, subnets_of),
        ),
        full_subnets=full,
        outweighed=tuple(each for each in used if each.key in spared),
        pool_history=pool_history,
        refused_templates=refused(snapshot),
        denied_starts=tuple(each for each in view.resting if each.template == STARTS),
    )
    return replace(found, alarms=_alarms(found, alarms)), notes


def _instances(compute: Compute, nodes: Sequence[NodeRecord]) -> tuple[Instance, ...]:
    """What EC2 lists, and what it says of those that it leaves out. Whether a node has ended its
    event would tell too, which may be lost: else a gang waits until Slurm misses the node.
    """
    listed = compute.instances()
    names = {one.instance_id for one in listed}
    told = {each.instance_id for each in nodes if each.phase.is_alive or each.had_ended}
    missing = sorted(told - names)
    try:
        return (*listed, *compute.by_id(missing)) if missing else listed
    except Throttled:  # what is known is enough to buy for jobs, and the next look asks again
        return listed


def _as_they_ended(
    nodes: Sequence[NodeRecord], instances: Sequence[Instance]
) -> tuple[NodeRecord, ...]:
    """A node that ended itself says so, which may be lost, and the event of its end is that of any
    other: EC2 knows that AWS has taken nothing back.
    """
    own = {one.instance_id for one in instances if one.has_ended_itself}
    return tuple(
        replace(each, interruption_loss=NOT_TAKEN) if each.instance_id in own else each
        for each in nodes
    )


def _alarms(snapshot: Snapshot, alarms: Alarms | None) -> SeenAlarms | None:
    """None: nobody has to ask. A plan is made without an answer too, for jobs wait: what it rolls
    out then waits.
    """
    wanted = snapshot.cluster.alarms
    under_way = (rollout_of(snapshot, pool.name) for pool in snapshot.cluster.pools)
    if alarms is None or wanted is None or all(r is None or r.given_up for r in under_way):
        return None
    try:
        return SeenAlarms(alarms.states(wanted.names))
    except NotAuthorized as denied:
        return SeenAlarms(trouble=f"the planner may not: {denied}")
    except TidegateError as trouble:
        return SeenAlarms(trouble=f"CloudWatch does not answer ({type(trouble).__name__})")


def _digest(
    cluster: Cluster, bus: Bus, view: LedgerView
) -> tuple[ReceivedDigest | None, tuple[str, ...]]:
    try:
        received = bus.newest_digest()
    except BadEvent as bad:
        return None, (f"dropped a digest that cannot be read: {bad}",)
    if received is None:
        return None, ()
    if received.digest.cluster != cluster.name:
        return None, (f"dropped a digest of another cluster, {received.digest.cluster!r}",)
    if not supersedes(received.digest.stamp, view.digest_seen):
        stamp, seen = received.digest.stamp, view.digest_seen
        return None, (f"ignored digest {stamp.sequence}: {seen} was seen before it",)
    return received, ()
