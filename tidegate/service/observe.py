"""Gathering one snapshot from ledger, digest and EC2."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tidegate.core.fleet.templates import in_force, in_use, refused
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.digest import supersedes
from tidegate.core.model.ec2 import Template
from tidegate.core.model.errors import BadEvent
from tidegate.core.model.resting import STARTS
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.market import at_market
from tidegate.ports import Bus, Calendar, Clock, Compute, Ledger, LedgerView, ReceivedDigest

NEVER_HEARD_S = float("inf")


def observe(
    cluster: Cluster,
    *,
    compute: Compute,
    ledger: Ledger,
    bus: Bus,
    clock: Clock,
    calendar: Calendar,
    templates: Mapping[str, Template] = MappingProxyType({}),
) -> tuple[Snapshot, tuple[str, ...]]:
    """What the planner may know now, and notes on what had to be dropped.

    The ledger is read first: its epoch fences everything that is read after it.
    `templates`: as the stack deployed them.
    Errors: Throttled, NotAuthorized of the ports.
    """
    view = ledger.view()
    received, notes = _digest(cluster, bus, view)
    now_s = clock.now_s()
    snapshot = Snapshot(
        now_s=now_s,
        cluster=at_market(cluster, view.seen_market, now_s),
        epoch=view.epoch,
        digest=received.digest if received else None,
        digest_age_s=received.age_s if received else NEVER_HEARD_S,
        instances=compute.instances(),
        nodes=view.nodes,
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
    rests, pool_history = in_force(snapshot, templates), in_use(snapshot)
    found = replace(
        snapshot,
        resting=rests,
        pool_history=pool_history,
        refused_templates=refused(snapshot),
        denied_starts=tuple(each for each in view.resting if each.template == STARTS),
    )
    return found, notes


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
