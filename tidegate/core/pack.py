"""Bins: nodes that exist, are on their way or are being bought, and what still fits in them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from tidegate.core.demand import Need
from tidegate.core.ec2 import InstanceType, Offering
from tidegate.core.fit import satisfies
from tidegate.core.pool import Pool
from tidegate.core.slurm import Node, Shape


class BinKind(IntEnum):
    """In the order in which jobs fill them."""

    EXISTING = 0
    IN_FLIGHT = 1
    NEW = 2


@dataclass(slots=True)
class Bin:
    """One node's free room while a plan is made. `gated_for`: only this gang may use it."""

    name: str
    kind: BinKind
    pool: str
    offering: Offering
    features: tuple[str, ...]
    gpu_type: str
    gpus: int
    cpus: int
    memory_mib: int
    is_empty: bool = True
    gated_for: str = ""
    jobs: list[str] = field(default_factory=list)

    def takes(self, need: Need) -> bool:
        """Whether one node's share of the job fits here, next to what is already here."""
        if self.gated_for not in ("", need.job_id) or self.pool not in need.pools:
            return False
        return self._has_room(need.shape) and satisfies(need.constraint, self.features)

    def _has_room(self, shape: Shape) -> bool:
        if shape.is_exclusive and not self.is_empty:
            return False
        if shape.gpus and shape.gpu_type and shape.gpu_type != self.gpu_type:
            return False
        return (
            shape.gpus <= self.gpus
            and shape.cpus <= self.cpus
            and shape.memory_mib <= self.memory_mib
        )

    def put(self, need: Need) -> None:
        shape = need.shape
        self.jobs.append(need.job_id)
        self.is_empty = False
        if shape.is_exclusive:
            self.gpus = self.cpus = self.memory_mib = 0
            return
        self.gpus -= shape.gpus
        self.cpus -= shape.cpus
        self.memory_mib -= shape.memory_mib


def bin_of_node(node: Node, pool: Pool, offering: Offering, gated_for: str) -> Bin:
    """A registered node with what Slurm has left on it."""
    return Bin(
        name=node.name,
        kind=BinKind.EXISTING,
        pool=pool.name,
        offering=offering,
        features=node.features or pool.features(offering.instance_type, offering.market),
        gpu_type=node.gpu_type,
        gpus=node.gpus - node.gpus_alloc,
        cpus=node.cpus - node.cpus_alloc,
        memory_mib=node.memory_mib - node.memory_alloc_mib,
        is_empty=not node.state.is_busy,
        gated_for=gated_for,
    )


def bin_of_type(
    name: str, kind: BinKind, pool: Pool, offering: Offering, *, of: InstanceType, gated_for: str
) -> Bin:
    """A whole node of this type, not yet registered."""
    return Bin(
        name=name,
        kind=kind,
        pool=pool.name,
        offering=offering,
        features=pool.features(of.name, offering.market),
        gpu_type=of.gpu_type,
        gpus=of.gpus,
        cpus=of.vcpus,
        memory_mib=of.slurm_memory_mib,
        gated_for=gated_for,
    )


class Bins:
    """All bins of one plan; those without a free GPU are passed over for jobs that need one."""

    def __init__(self) -> None:
        self.all: list[Bin] = []
        self._with_gpus: dict[str, Bin] = {}

    def add(self, bins: Iterable[Bin]) -> None:
        for each in bins:
            self.all.append(each)
            if each.gpus:
                self._with_gpus[each.name] = each

    def put(self, need: Need, into: Bin) -> None:
        into.put(need)
        if not into.gpus:
            self._with_gpus.pop(into.name, None)

    def roomy(self, need: Need) -> Iterable[Bin]:
        """Every bin that may have room for the need, and few that have not."""
        return self._with_gpus.values() if need.shape.gpus else self.all

    def best(self, need: Need) -> Bin | None:
        """Where a one-node job goes: what exists first, then the tightest fit."""
        fitting = (each for each in self.roomy(need) if each.takes(need))
        return min(fitting, key=lambda b: (b.kind, b.gpus, b.cpus, b.name), default=None)


def gang_members(
    bins: Iterable[Bin], need: Need, within: tuple[str, str] | None = None
) -> list[Bin]:
    """The nodes a gang may count on: of one pool and zone, its own gated ones first.

    A gang is not spread over zones: its ranks talk to each other all the time. `within`:
    the pool and zone in which the gang has nodes already.
    """
    groups: dict[tuple[str, str], list[Bin]] = {}
    for each in bins:
        place = (each.pool, each.offering.zone)
        if each.is_empty and each.takes(need) and within in (None, place):
            groups.setdefault(place, []).append(each)
    ordered = [
        sorted(group, key=lambda b: (not b.gated_for, b.kind, b.name))[: need.nodes]
        for _, group in sorted(groups.items())
    ]
    return max(ordered, key=lambda g: (sum(bool(b.gated_for) for b in g), len(g)), default=[])
