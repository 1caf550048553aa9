"""How often EC2 takes nodes of a spot offering back, by what this cluster has seen over weeks.

The cluster file's word is where it begins: a gamma distribution of interruptions per node-hour, as
if one interruption had been seen in as many node-hours as that says. What was seen since is added,
and counts half as much two weeks later. Against interruptions that were seen the file's word counts
for `PRIOR_HOURS` at most: where it says next to none, it would outweigh them for months.

Nodes that go together are no independent events, so a storm counts as one interruption, and
node-hours count by the mean size of a storm. Where none was seen yet, one is taken to be as large
as half of the nodes.

The estimate moves away from the file's word only as far as it would with one interruption more or
less. So a single one refuses no spot (`tidegate.core.offers.loss`) to a job that it suits by the
file, and a lucky week sends no long job there.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import exp2, inf, log

from tidegate.core.model.cluster import DEFAULT_HAZARD_PER_HOUR, HAZARD_MAX_PER_HOUR, Cluster
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.pool_history import SpotSeen
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.cost import SECONDS_PER_HOUR

HALF_LIFE_S = 14 * 86400.0

PRIOR_EVENTS, PRIOR_HOURS = 1.0, 200.0

# What goes within so long after another node of the offering goes with it.
STORM_S = 600.0
# The part of the nodes that a storm takes, where none was seen.
STORM_SHARE = 0.5

# Estimates are rounded, as factors beside the file's word: plans share what they have found for
# equal hazards, and every node-hour would make another one.
STEP = 1.5


@frozen
class SeenHazard:
    """What was seen of a spot offering, in all pools, and what follows from it.

    `node_hours`, `taken`: as they count now; `file_per_hour`: what the cluster file says.
    """

    node_hours: float
    taken: float
    per_hour: float
    file_per_hour: float


def with_seen_hazards(snapshot: Snapshot) -> Snapshot:
    """The snapshot with the hazards that were learnt in place of the cluster file's."""
    seen, cluster = seen_hazards(snapshot), snapshot.cluster
    learnt = {on: each.per_hour for on, each in seen.items() if each.per_hour != each.file_per_hour}
    if not learnt:
        return snapshot
    hazards = {**cluster.hazards, **learnt}
    known = replace(cluster, hazards=hazards, seen_hazards=frozenset(learnt))
    return replace(snapshot, cluster=known)


def seen_hazards(snapshot: Snapshot) -> Mapping[Offering, SeenHazard]:
    """Of each offering of which nodes run on spot or ran in the last weeks."""
    known: dict[Offering, list[SpotSeen]] = {}
    for _, offering, each in _until_now(snapshot):
        known.setdefault(offering, []).append(each)
    return {offering: _judged(snapshot.cluster, offering, known[offering]) for offering in known}


def _until_now(snapshot: Snapshot) -> Iterable[tuple[str, Offering, SpotSeen]]:
    """Pool by pool, with the nodes that the ledger has open."""
    running: dict[tuple[str, Offering], list[NodeRecord]] = {}
    for record in snapshot.nodes:
        if record.offering.market is Market.SPOT:
            running.setdefault((record.pool, record.offering), []).append(record)
    before = {
        (history.pool, offering_of(each)): each
        for history in snapshot.pool_history
        for each in history.spot
    }
    for pool, offering in sorted(running.keys() | before.keys()):
        seen = before.get((pool, offering), SpotSeen(offering.instance_type, offering.zone))
        yield pool, offering, until(seen, running.get((pool, offering), ()), snapshot.now_s)


def offering_of(seen: SpotSeen) -> Offering:
    return Offering(seen.instance_type, seen.zone, Market.SPOT)


def until(seen: SpotSeen, nodes: Iterable[NodeRecord], now_s: float) -> SpotSeen:
    """With how long these nodes of the offering have run since, and which of them AWS takes."""
    return counted(seen, nodes, now_s, taken_at_s=_taken(nodes))


def settled(
    seen: SpotSeen, nodes: Sequence[NodeRecord], now_s: float, gone: Collection[str]
) -> SpotSeen:
    """The same, to be remembered. `gone`: whose records this look closes; another that AWS takes is
    counted when its time is over.
    """
    at_s = dict(_taken(nodes))
    known = {each.instance_id for each in nodes} & set(seen.counted)
    for each in nodes:
        name = each.instance_id
        is_unexplained = each.ended_at_s is None and each.interruption_loss is None
        if name in gone and each.phase is Phase.JOINED and is_unexplained:
            at_s.setdefault(name, now_s)  # nobody has announced it
        elif name not in gone and at_s.get(name, now_s) > now_s:
            del at_s[name]
    found = _rounded(counted(seen, nodes, now_s, taken_at_s=at_s))
    return replace(found, counted=tuple(sorted(known | at_s.keys())))


def _taken(nodes: Iterable[NodeRecord]) -> Mapping[str, float]:
    """When AWS takes nodes, of those that it takes: by its notice or by the news of their end."""
    return {
        each.instance_id: each.reclaim_at_s
        for each in nodes
        if each.reclaim_at_s is not None and not each.is_orphan
        if each.interruption_loss is None or each.interruption_loss.is_taken
    }


def counted(
    seen: SpotSeen, nodes: Iterable[NodeRecord], now_s: float, *, taken_at_s: Mapping[str, float]
) -> SpotSeen:
    """With what has happened to these nodes since. A clock that was set back counts from now.

    Each word of EC2 about a node's end (the notice, shutting-down, terminated) may move the end: so
    it is by name that one counts once.
    """
    since_s, fade = min(seen.until_s, now_s), _fade(now_s - seen.until_s)
    spans = sorted(_span(each, since_s, now_s) for each in nodes)
    node_hours = seen.node_hours * fade + sum(_hours(*span, now_s) for span in spans)
    hours, covered_s = seen.hours * fade, since_s
    for begin_s, end_s in spans:
        hours += _hours(max(begin_s, covered_s), end_s, now_s)
        covered_s = max(covered_s, end_s)
    taken, storms, newest_s = seen.taken * fade, seen.storms * fade, min(seen.newest_s, now_s)
    before = frozenset(seen.counted)
    for at_s in sorted(at_s for name, at_s in taken_at_s.items() if name not in before):
        taken += 1
        storms += at_s - newest_s > STORM_S
        newest_s = max(newest_s, at_s)
    return replace(
        seen,
        until_s=now_s,
        node_hours=node_hours,
        hours=hours,
        taken=taken,
        storms=storms,
        newest_s=newest_s,
    )


def estimate(seen: SpotSeen, file_per_hour: float) -> float:
    """Interruptions of a node per hour: the file's word, as far as nothing seen is against it."""
    at_once = seen.node_hours / seen.hours if seen.hours > 0 else 1.0
    size = (max(at_once * STORM_SHARE, 1.0) + seen.taken) / (1.0 + seen.storms)
    hours = seen.node_hours / max(size, 1.0)
    prior_hours = PRIOR_EVENTS / file_per_hour if file_per_hour else inf
    most = (PRIOR_EVENTS + seen.storms + 1.0) / (prior_hours + hours)
    if most < file_per_hour:
        return most
    prior_hours = min(prior_hours, PRIOR_HOURS)
    more = (seen.storms - 1.0 - file_per_hour * hours) / (prior_hours + hours)
    return min(file_per_hour + max(more, 0.0), HAZARD_MAX_PER_HOUR)


def stepped(per_hour: float, file_per_hour: float) -> float:
    """The same in steps beside the file's word, which itself is one of them."""
    about = file_per_hour or DEFAULT_HAZARD_PER_HOUR
    if per_hour <= 0 or per_hour == file_per_hour:
        return per_hour
    steps = round(log(per_hour / about, STEP))
    found = about * STEP**steps if steps or not file_per_hour else file_per_hour
    return min(found, HAZARD_MAX_PER_HOUR)


def _judged(cluster: Cluster, offering: Offering, seen: Sequence[SpotSeen]) -> SeenHazard:
    """By what all pools have seen of it."""
    all_seen = SpotSeen(
        offering.instance_type,
        offering.zone,
        node_hours=sum(each.node_hours for each in seen),
        hours=sum(each.hours for each in seen),
        taken=sum(each.taken for each in seen),
        storms=sum(each.storms for each in seen),
    )
    file_per_hour = cluster.hazard_per_hour(offering)
    per_hour = stepped(estimate(all_seen, file_per_hour), file_per_hour)
    return SeenHazard(all_seen.node_hours, all_seen.taken, per_hour, file_per_hour)


def _span(record: NodeRecord, since_s: float, now_s: float) -> tuple[float, float]:
    """When it ran, as far as that was not counted yet."""
    ends = (now_s, record.ended_at_s, record.reclaim_at_s)
    end_s = min(each for each in ends if each is not None)
    return max(record.launched_at_s, since_s), end_s


def _hours(begin_s: float, end_s: float, now_s: float) -> float:
    """So many hours, each as much as it counts now."""
    if begin_s >= end_s:
        return 0.0
    most = HALF_LIFE_S / log(2) / SECONDS_PER_HOUR
    return most * (_fade(now_s - end_s) - _fade(now_s - begin_s))


def _fade(age_s: float) -> float:
    return exp2(-max(age_s, 0.0) / HALF_LIFE_S)


def _rounded(seen: SpotSeen) -> SpotSeen:
    return replace(
        seen,
        until_s=round(seen.until_s, 3),
        node_hours=round(seen.node_hours, 3),
        hours=round(seen.hours, 3),
        taken=round(seen.taken, 3),
        storms=round(seen.storms, 3),
        newest_s=round(seen.newest_s, 3),
    )
