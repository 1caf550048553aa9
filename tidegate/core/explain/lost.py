"""Lost capacity: what Slurm, EC2 and the ledger say of a node, and who does something about it.

One table over every combination of the three and of the node's age. What the planner does is in
`reconcile`; tests hold the two against each other, cell by cell. Nothing is left to silence: a
cell in which nobody acts and nothing ends by itself is an alarm.
"""

from collections import Counter
from collections.abc import Iterator
from enum import Enum, StrEnum, auto
from itertools import product
from typing import assert_never

from tidegate.core.fleet.drains import Hand, hand
from tidegate.core.fleet.holds import hold_of, is_hold_over
from tidegate.core.fleet.members import Member, members
from tidegate.core.fleet.stopped import stands
from tidegate.core.model.budgets import DisruptionReason, tightest
from tidegate.core.model.devices import Devices
from tidegate.core.model.drain_reason import sentence_of
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Phase
from tidegate.core.model.mig import SLICES
from tidegate.core.model.slurm import Node
from tidegate.core.model.slurm_names import is_instance_id
from tidegate.core.model.snapshot import Snapshot


class SlurmSays(Enum):
    USABLE = auto()  # jobs run or may start
    OURS = auto()  # drained by us, or at its gate
    THEIRS = auto()  # drained by an operator
    SICK = auto()  # drained by software that found it unhealthy
    DOWN = auto()
    STRANGE = auto()  # a state that no Slurm we know prints
    ABSENT = auto()


class Ec2Says(Enum):
    ALIVE = auto()
    ENDING = auto()
    STOPPED = auto()  # by somebody, or at the end that AWS Health has announced
    ABSENT = auto()


class LedgerSays(Enum):
    LAUNCHED = auto()
    JOINED = auto()
    INTERRUPTED = auto()
    RELEASED = auto()
    ABSENT = auto()


class Age(Enum):
    FRESH = auto()  # younger than the boot bound
    LATE = auto()


class Duty(StrEnum):
    """Who does something about it."""

    WORKS = "works"  # nobody has to
    BOOTS = "boots"
    ACTS = "acts"  # the planner, in this look
    WAITS = "waits"  # it ends by itself: Slurm, EC2 or a notice has a bound
    ALARM = "alarm"  # a person has to look
    NONE = "none"  # there is no such node


@frozen
class Cell:
    slurm: SlurmSays
    ec2: Ec2Says
    ledger: LedgerSays
    age: Age

    @property
    def duty(self) -> Duty:
        match self.ec2:
            case Ec2Says.ALIVE:
                return _alive(self)
            case Ec2Says.ENDING:
                return Duty.WAITS if self.ledger is LedgerSays.ABSENT else Duty.ACTS
            case Ec2Says.STOPPED:
                return Duty.ALARM if self.ledger is LedgerSays.ABSENT else Duty.ACTS
            case Ec2Says.ABSENT:
                return _not_shown(self)
            case _:
                assert_never(self.ec2)

    @property
    def is_lost(self) -> bool:
        """It is paid for and of no use, until somebody has acted."""
        unusable = (SlurmSays.THEIRS, SlurmSays.SICK, SlurmSays.DOWN, SlurmSays.STRANGE)
        is_kept = self.ec2 is Ec2Says.ALIVE and self.slurm in unusable
        return is_kept or self.ec2 is Ec2Says.STOPPED or self.duty is Duty.ALARM


def cells() -> Iterator[Cell]:
    """Every cell of the table."""
    return (Cell(*each) for each in product(SlurmSays, Ec2Says, LedgerSays, Age))


def _alive(cell: Cell) -> Duty:
    match cell.ledger:
        case LedgerSays.ABSENT:
            return Duty.ACTS  # it is taken in
        case LedgerSays.RELEASED:
            # It is terminated, or leaves Slurm first if it joined before that.
            return Duty.ALARM if cell.slurm is SlurmSays.THEIRS else Duty.ACTS
        case LedgerSays.INTERRUPTED:
            return Duty.WAITS if cell.slurm is SlurmSays.ABSENT else Duty.ACTS
        case LedgerSays.LAUNCHED | LedgerSays.JOINED:
            return _ours(cell)
        case _:
            assert_never(cell.ledger)


def _ours(cell: Cell) -> Duty:
    match cell.slurm:
        case SlurmSays.USABLE:
            return Duty.WORKS
        case SlurmSays.OURS | SlurmSays.SICK | SlurmSays.DOWN:
            return Duty.ACTS
        case SlurmSays.THEIRS | SlurmSays.STRANGE:
            return Duty.ALARM
        case SlurmSays.ABSENT:
            is_booting = cell.ledger is LedgerSays.LAUNCHED and cell.age is Age.FRESH
            return Duty.BOOTS if is_booting else Duty.ACTS
        case _:
            assert_never(cell.slurm)


def _not_shown(cell: Cell) -> Duty:
    """EC2 shows no instance; one answer that leaves it out must end no job."""
    if cell.ledger is LedgerSays.ABSENT:
        return _only_in_slurm(cell.slurm)
    is_announced = cell.ledger is LedgerSays.INTERRUPTED
    match cell.slurm:
        case SlurmSays.ABSENT:
            if is_announced:
                return Duty.WAITS  # for the end of its notice
            is_booting = cell.ledger is LedgerSays.LAUNCHED and cell.age is Age.FRESH
            return Duty.BOOTS if is_booting else Duty.ACTS
        case SlurmSays.THEIRS:
            return Duty.ACTS if is_announced else Duty.ALARM
        case (
            SlurmSays.USABLE | SlurmSays.OURS | SlurmSays.SICK | SlurmSays.DOWN | SlurmSays.STRANGE
        ):
            return Duty.ACTS
        case _:
            assert_never(cell.slurm)


def _only_in_slurm(slurm: SlurmSays) -> Duty:
    match slurm:
        case SlurmSays.ABSENT:
            return Duty.NONE
        case SlurmSays.DOWN:
            return Duty.ACTS
        case (
            SlurmSays.USABLE
            | SlurmSays.OURS
            | SlurmSays.THEIRS
            | SlurmSays.SICK
            | SlurmSays.STRANGE
        ):
            return Duty.ALARM
        case _:
            assert_never(slurm)


@frozen
class Lost:
    """A node of no use. `gpus`: those that are paid for."""

    name: str
    cell: Cell
    gpus: int
    sentence: str


@frozen
class Gpus:
    """`configured`: of every instance that lives; `usable`: that jobs may have, or still have on a
    drained node; `busy`: that jobs have; `lost`: paid for and of no use.
    """

    configured: int
    usable: int
    busy: int
    lost: int


def lost_nodes(snapshot: Snapshot) -> tuple[Lost, ...]:
    """Every node of no use, by name. Meaningless while the head is silent."""
    ours = ((e, cell_of(e, snapshot)) for e in members(snapshot) if not stands(e))
    found = [_lost(each, cell, snapshot) for each, cell in ours if cell.is_lost]
    strays = ((each, _stray(each, snapshot)) for each in _strays(snapshot))
    found += [
        Lost(each.name, cell, 0, _sentence(each.name, cell, each))
        for each, cell in strays
        if cell.is_lost
    ]
    return tuple(found)


def doubtful_checks(snapshot: Snapshot) -> Iterator[str]:
    """Pools of which more nodes are found unhealthy than their budget lets go: a check may err."""
    found = [(each, cell_of(each, snapshot)) for each in members(snapshot) if each.node]
    for pool in snapshot.cluster.pools:
        ours = [(each, cell) for each, cell in found if each.pool == pool.name]
        sick = [each for each, cell in ours if cell.slurm in (SlurmSays.SICK, SlurmSays.DOWN)]
        budget = tightest(
            pool.disruption.budgets, DisruptionReason.UNHEALTHY, len(ours), snapshot.now_s
        )
        if budget is None or len(sick) <= budget[0]:
            continue
        said = (sentence_of(each.node.reason) for each in sick if each.node)
        reasons = Counter(each or "no reason given" for each in said)
        often = min(reasons, key=lambda reason: (-reasons[reason], reason))
        yield (
            f"pool {pool.name}: {len(sick)} of {len(ours)} nodes are found unhealthy, "
            f"{reasons[often]} of them for: {often}. The check may err: its budget of {budget[1]} "
            f"lets {budget[0]} leave at once; one that is well takes jobs again with scontrol "
            f"update NodeName={min(each.instance_id for each in sick)} State=resume"
        )


def gpus(snapshot: Snapshot) -> Gpus:
    """GPUs as they are paid for, and as they can be used."""
    configured = usable = busy = 0
    lost = {each.name: each.gpus for each in lost_nodes(snapshot)}
    for each in members(snapshot):
        if each.instance is None or not each.instance.is_alive:
            continue
        configured += _gpus(each, snapshot)
        if each.node is None or each.node.state.is_down:
            continue
        whole, used = _whole_gpus(each.node, each, snapshot)
        usable += whole if each.node.state.takes_jobs else used
        busy += used
        if each.instance_id in lost:
            lost[each.instance_id] = max(lost[each.instance_id] - used, 0)
    return Gpus(configured, usable, busy, sum(lost.values()))


def _whole_gpus(node: Node, member: Member, snapshot: Snapshot) -> tuple[int, int]:
    """GPUs that jobs can have of a node, and those of them that are in use, whole or in parts."""
    of = snapshot.cluster.instance_type(member.offering.instance_type)
    if of is None or not of.profiles:
        return node.gpus, node.gpus_alloc + node.gpus_shared
    alone = (Devices(node.gpu_type, node.gpus, node.gpus_alloc),)
    sizes = {each.gpu_type: each.size for each in of.profiles}
    used = sum(each.alloc * sizes.get(each.gpu_type, 0) for each in node.devices or alone)
    return of.gpus, min(-(-used // SLICES), of.gpus)


def cell_of(member: Member, snapshot: Snapshot) -> Cell:
    age_s = snapshot.now_s - member.launched_at_s
    is_late = age_s > snapshot.cluster.timings.given_up_s
    return Cell(
        _slurm(member.node, snapshot),
        _ec2(member),
        _ledger(member),
        Age.LATE if is_late else Age.FRESH,
    )


def _slurm(node: Node | None, snapshot: Snapshot) -> SlurmSays:
    if node is None:
        return SlurmSays.ABSENT
    if node.state.is_down:
        return SlurmSays.DOWN
    if node.state.strange:
        return SlurmSays.STRANGE
    if not node.state.is_drain:
        return SlurmSays.USABLE
    match hand(node, snapshot.cluster.health_reasons):
        case Hand.OURS:
            return SlurmSays.OURS
        case Hand.PERSON:
            is_over = is_hold_over(node, snapshot.now_s)
            return SlurmSays.OURS if is_over else SlurmSays.THEIRS
        case Hand.SOFTWARE:
            return SlurmSays.SICK


def _ec2(member: Member) -> Ec2Says:
    if member.instance is None:
        return Ec2Says.ABSENT
    match member.instance.state:
        case InstanceState.PENDING | InstanceState.RUNNING:
            return Ec2Says.ALIVE
        case InstanceState.SHUTTING_DOWN | InstanceState.TERMINATED:
            return Ec2Says.ENDING
        case InstanceState.STOPPING | InstanceState.STOPPED:
            return Ec2Says.STOPPED
        case _:
            assert_never(member.instance.state)


def _ledger(member: Member) -> LedgerSays:
    if member.record is None:
        return LedgerSays.ABSENT
    match member.record.phase:
        case Phase.LAUNCHED:
            return LedgerSays.LAUNCHED
        case Phase.JOINED:
            return LedgerSays.JOINED
        case Phase.INTERRUPTED:
            return LedgerSays.INTERRUPTED
        case Phase.RELEASED:
            return LedgerSays.RELEASED
        case Phase.TERMINATED:
            return LedgerSays.ABSENT  # forgotten: no look reads it any more
        case _:
            assert_never(member.record.phase)


def _lost(member: Member, cell: Cell, snapshot: Snapshot) -> Lost:
    name = member.instance_id
    gpus = _gpus(member, snapshot) if cell.ec2 is Ec2Says.ALIVE else 0
    hold = hold_of(member, snapshot.now_s)
    return Lost(name, cell, gpus, hold.sentence if hold else _sentence(name, cell, member.node))


def _stray(node: Node, snapshot: Snapshot) -> Cell:
    return Cell(_slurm(node, snapshot), Ec2Says.ABSENT, LedgerSays.ABSENT, Age.LATE)


def _sentence(name: str, cell: Cell, node: Node | None) -> str:
    if cell.ec2 is Ec2Says.STOPPED:
        ends = f"aws ec2 terminate-instances --instance-ids {name}"
        return f"node {name} was stopped by somebody and its disk costs; start it, or: {ends}"
    if cell.ec2 is Ec2Says.ABSENT and cell.ledger is LedgerSays.ABSENT:
        return f"node {name} is in Slurm, and EC2 shows no instance of this cluster behind it"
    assert node is not None, "only what Slurm knows is lost in another way"
    reason = node.reason or "no reason given"
    if cell.slurm is SlurmSays.THEIRS:
        given = f"give it back: scontrol update NodeName={name} State=RESUME"
        return f"node {name} is drained by an operator: {reason}; {given}"
    reason = sentence_of(node.reason) or "no reason given"
    if cell.slurm is SlurmSays.SICK:
        return f"node {name} was found unhealthy and drained: {reason}"
    return f"node {name} is {node.state}: {reason}"


def _gpus(member: Member, snapshot: Snapshot) -> int:
    found = snapshot.cluster.instance_type(member.offering.instance_type)
    return found.gpus if found else 0


def _strays(snapshot: Snapshot) -> Iterator[Node]:
    """Nodes of our pools that neither EC2 nor the ledger knows."""
    known = {each.instance_id for each in members(snapshot)}
    pools = {pool.name for pool in snapshot.cluster.pools}
    for node in snapshot.digest.reading.nodes if snapshot.digest else ():
        is_like_ours = is_instance_id(node.name) and not pools.isdisjoint(node.features)
        if is_like_ours and node.name not in known:
            yield node
