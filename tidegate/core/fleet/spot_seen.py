"""What a pool remembers of its spot nodes: noted when the record of one of them is closed.

Until then the ledger itself tells how long it has run.
"""

from collections.abc import Sequence
from dataclasses import replace

from tidegate.core.fleet.judge import judge
from tidegate.core.fleet.members import Member
from tidegate.core.model.ec2 import Market
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.plan import Mark
from tidegate.core.model.pool_history import PoolHistory, SpotSeen
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.seen_hazards import counted, offering_of, settled

# What is less says nothing any more.
LEAST_HOURS, LEAST_TAKEN = 0.5, 0.05

# DynamoDB takes 400 KB in an item, and a pool's has more in it.
OFFERINGS_MAX = 200


def with_spot_seen(before: PoolHistory, ours: Sequence[Member], snapshot: Snapshot) -> PoolHistory:
    """`ours`: all nodes of the pool. As it was where none of them is seen for the last time."""
    spot = [each for each in ours if each.record and each.record.offering.market is Market.SPOT]
    gone = {each.instance_id for each in spot if _is_closed(each, snapshot)}
    if not gone:
        return before
    records = [each.record for each in spot if each.record]
    ended = {each.offering for each in records if each.instance_id in gone}
    known = {offering_of(each): each for each in before.spot}
    found: list[SpotSeen] = []
    for offering in known.keys() | ended:
        seen = known.get(offering, SpotSeen(offering.instance_type, offering.zone))
        if offering in ended:
            nodes = [each for each in records if each.offering == offering]
            found.append(settled(seen, nodes, snapshot.now_s, gone))
        elif _counts(seen, snapshot.now_s):
            found.append(seen)
    newest = sorted(found, key=lambda each: (-each.until_s, each.instance_type, each.zone))
    by_name = sorted(newest[:OFFERINGS_MAX], key=lambda each: (each.instance_type, each.zone))
    return replace(before, spot=tuple(by_name))


def _is_closed(member: Member, snapshot: Snapshot) -> bool:
    if member.instance is not None and member.instance.is_alive:
        return False
    actions = judge(member, snapshot, snapshot.doubted).actions
    return any(isinstance(each, Mark) and each.phase is Phase.TERMINATED for each in actions)


def _counts(seen: SpotSeen, now_s: float) -> bool:
    nodes: tuple[NodeRecord, ...] = ()
    now = counted(seen, nodes, now_s, taken_at_s={})
    return now.node_hours >= LEAST_HOURS or now.taken >= LEAST_TAKEN
