"""The last instances of an UltraServer end before its block does.

Of p6e-gb200 AWS wants it from its user, an hour before the block's end. Before that nodes are
drained, and jobs signalled and requeued, as in other blocks.
Source: EC2 user guide, "Capacity Blocks for ML", "Considerations".
"""

from collections.abc import Iterable, Iterator

from tidegate.core.fleet.members import Member
from tidegate.core.model.ledger import Phase
from tidegate.core.model.plan import Terminate
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.ultraservers import ULTRASERVER_ENDS_S, is_in_ultraserver

ENDS = "AWS wants the instances of an UltraServer ended an hour before its block ends"


def end_in_ultraservers(snapshot: Snapshot, ours: Iterable[Member]) -> Iterator[Terminate]:
    """Also while the head is silent, and whatever runs there: EC2 would end it a minute later."""
    names = tuple(each.instance_id for each in ours if _must_end(each, snapshot))
    if names:
        yield Terminate(names, ENDS)


def _must_end(member: Member, snapshot: Snapshot) -> bool:
    one, record = member.instance, member.record
    if one is None or not one.is_alive or not is_in_ultraserver(one.offering.instance_type):
        return False
    if record is None or record.phase is Phase.RELEASED:
        return False  # others end these
    # Of which nobody says where it is, EC2 ends it: it may be in a block that goes on for days.
    its_id = one.capacity_reservation_id or record.reservation
    ends = (each.ends_at_s for each in snapshot.cluster.reservations if each.id == its_id)
    ends_at_s = next(ends, None)
    if ends_at_s is None or member.was_just_ended(
        snapshot.now_s, snapshot.cluster.timings.describe_lag_s
    ):
        return False
    return snapshot.now_s >= ends_at_s - ULTRASERVER_ENDS_S
