"""Nodes that a person holds to look into them: until when, what that costs, who may hold how many.

A hold is a person's drain whose reason bears an end (`DrainCode.HELD`). Until then nothing lets
the node go, whatever Slurm finds of it; what AWS takes back it takes. After it the node is let go.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from tidegate.core.fleet.drains import Hand, hand
from tidegate.core.fleet.members import Member
from tidegate.core.model.drain_reason import DrainCode, DrainReason, read
from tidegate.core.model.durations import moment, span
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Phase
from tidegate.core.model.slurm import Node
from tidegate.core.model.snapshot import Snapshot

SECONDS_PER_HOUR = 3600.0


@frozen
class Hold:
    """A node that is held. `says`: by whom and why. `usd`: what it has cost since its launch."""

    instance_id: str
    pool: str
    says: str
    until_s: float
    usd: float
    usd_per_hour: float
    jobs: int = 0

    @property
    def cost(self) -> str:
        return f"it has cost {self.usd:.2f} USD and costs {self.usd_per_hour:.2f} an hour"

    @property
    def sentence(self) -> str:
        """For whoever should see to it."""
        return (
            f"node {self.instance_id} is {self.says}, until {moment(self.until_s)} UTC; "
            f"{self.cost}; end that: tidegate node release {self.instance_id}"
        )


class NoHold(StrEnum):
    """Why a node cannot be held, or let go of."""

    UNKNOWN = "unknown"
    SILENT = "silent"  # nobody hears the head
    ENDING = "ending"
    BOOTING = "booting"
    DRAINED = "drained"  # by another person, whose it is
    HELD = "held"
    NOT_HELD = "not-held"
    TOO_MANY = "too-many"
    TOO_LONG = "too-long"


@frozen
class HoldRefused:
    """Why not, and what to do instead."""

    code: NoHold
    sentence: str


def hold_reason(says: str, until_s: float) -> DrainReason:
    """With which a held node is drained."""
    return DrainReason(DrainCode.HELD, says, until_s=until_s)


def held_by(node: Node | None) -> DrainReason | None:
    """The hold in a node's drain reason, over or not; None: nobody holds it."""
    found = read(node.reason) if node is not None and node.state.is_drain else None
    if node is None or found is None or found.code is not DrainCode.HELD:
        return None
    return found if hand(node) is Hand.PERSON else None


def is_held(node: Node, now_s: float) -> bool:
    """A person holds it, and their time is not over."""
    by = held_by(node)
    return by is not None and now_s < (by.until_s or 0.0)


def is_hold_over(node: Node, now_s: float) -> bool:
    """A person held it until its time was over: it is let go as soon as no job runs there."""
    return held_by(node) is not None and not is_held(node, now_s)


def hold_of(member: Member, now_s: float) -> Hold | None:
    """The hold that lasts; None: there is none, or it is over."""
    reason = held_by(member.node)
    if reason is None or now_s >= (reason.until_s or 0.0):
        return None
    return hold_from(member, reason.sentence, reason.until_s or 0.0, now_s)


def hold_from(member: Member, says: str, until_s: float, now_s: float) -> Hold:
    """A hold of this node, and what the node costs."""
    usd_per_hour = member.record.usd_per_hour if member.record else 0.0
    usd = max(now_s - member.launched_at_s, 0.0) / SECONDS_PER_HOUR * usd_per_hour
    jobs = len(member.jobs)
    return Hold(member.instance_id, member.pool, says, until_s, usd, usd_per_hour, jobs)


def holds(fleet: Sequence[Member], now_s: float) -> Iterator[Hold]:
    """Those that last, by node."""
    for member in fleet:
        if hold := hold_of(member, now_s):
            yield hold


def may_hold(
    name: str, for_s: float, fleet: Sequence[Member], snapshot: Snapshot
) -> Member | HoldRefused:
    """The node, when it may be held for so long."""
    member = _present(name, fleet, snapshot)
    if isinstance(member, HoldRefused):
        return member
    assert member.node is not None, "a node that Slurm does not know is refused"
    pool = snapshot.cluster.pool(member.pool)
    now_s, disruption = snapshot.now_s, pool.disruption if pool else None
    if hold := hold_of(member, now_s):
        said = f"{name} is {hold.says} already, until {moment(hold.until_s)} UTC"
        return HoldRefused(NoHold.HELD, f"{said}; end that first: tidegate node release {name}")
    is_persons = hand(member.node, snapshot.cluster.health_reasons) is Hand.PERSON
    if member.node.state.is_drain and is_persons and not held_by(member.node):
        said = f"a person has drained {name} already, and it stays: {member.node.reason}"
        return HoldRefused(NoHold.DRAINED, said)
    if disruption and for_s > disruption.hold_max_s:
        most = f"pool {member.pool} lets a node be held for {span(disruption.hold_max_s)}"
        return HoldRefused(NoHold.TOO_LONG, f"{most} at most (disruption.hold_max_s)")
    ours = sorted(h.instance_id for h in holds(fleet, now_s) if h.pool == member.pool)
    if disruption and len(ours) >= disruption.hold_max_nodes:
        most = f"pool {member.pool} lets {disruption.hold_max_nodes} nodes be held at once"
        also = f", and {', '.join(ours)} are" if ours else ""
        return HoldRefused(NoHold.TOO_MANY, f"{most} (disruption.hold_max_nodes){also}")
    return member


def may_release(name: str, fleet: Sequence[Member], snapshot: Snapshot) -> Hold | HoldRefused:
    """The hold that a person may end."""
    member = _present(name, fleet, snapshot)
    if isinstance(member, HoldRefused):
        return member
    hold = hold_of(member, snapshot.now_s)
    return hold or HoldRefused(NoHold.NOT_HELD, f"nobody holds {name}")


def _present(name: str, fleet: Sequence[Member], snapshot: Snapshot) -> Member | HoldRefused:
    """The node, if the head has it and it does not end."""
    cluster = snapshot.cluster.name
    member = next((each for each in fleet if each.instance_id == name), None)
    if member is None:
        said = f"cluster {cluster} has no node {name}: tidegate nodes shows those that it has"
        return HoldRefused(NoHold.UNKNOWN, said)
    record, instance = member.record, member.instance
    is_over = instance is not None and not instance.is_alive
    if is_over or (record and record.phase >= Phase.RELEASED):
        return HoldRefused(NoHold.ENDING, f"{name} has been let go, and its instance ends")
    if record and record.phase is Phase.INTERRUPTED:
        return HoldRefused(NoHold.ENDING, f"AWS takes {name} back, whoever holds it")
    if snapshot.digest is None or snapshot.staleness:
        said = snapshot.staleness or "the head has not reported yet"
        return HoldRefused(NoHold.SILENT, f"nobody knows what {name} does now: {said}")
    if member.node is None:
        said = f"{name} still boots: Slurm does not know it yet; tidegate node log {name}"
        return HoldRefused(NoHold.BOOTING, said)
    return member
