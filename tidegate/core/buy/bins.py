"""Bins: nodes that exist or are on their way, and what still fits in them."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from tidegate.core.buy.parts import Parts, parts_of_node, parts_of_type
from tidegate.core.demand.demand import Need
from tidegate.core.demand.fit import satisfies
from tidegate.core.model.cluster import Pool
from tidegate.core.model.devices import SHARED_GRES
from tidegate.core.model.ec2 import InstanceType, Offering
from tidegate.core.model.slurm import Job, Node, Shape

type Place = tuple[str, str]
"""A pool and a zone; "" for any pool."""


class BinKind(IntEnum):
    """In the order in which jobs fill them."""

    EXISTING = 0
    IN_FLIGHT = 1
    FREEING = 2  # its jobs end before a new node would have booted
    NEW = 3


@dataclass(slots=True, eq=False)
class Bin:
    """One node's free room while a plan is made. `gated_for`: only this gang may use it.

    `opened_for`: the job, or gang, that it was opened for a moment ago; others may use it as well.
    `for_jobs`: those that it was bought for, while it boots; others may use it as well.
    `is_anywhere`: its zone is not known yet, `offering` names one of several.
    `parts`: its free devices where they are not all alike or whole; `gpus` is then of them.
    `ultraserver`: the one that it is in, "": none; the largest one like it has so many nodes.
    `worth`: whether a job is worth the node; `is_lossy`: whether interruptions would cost it more
    than the node saves.
    """

    name: str
    kind: BinKind
    pool: str
    offering: Offering
    features: tuple[str, ...]
    gpu_type: str
    gres: str
    gpus: int
    cpus: int
    memory_mib: int
    is_empty: bool = True
    gated_for: str = ""
    opened_for: str = ""
    for_jobs: tuple[str, ...] = ()
    jobs: list[str] = field(default_factory=list)
    usd_per_hour: float = 0.0
    is_closed: bool = False
    is_reserved: bool = False
    is_anywhere: bool = False
    worth: Callable[[Need], bool] | None = None
    is_lossy: Callable[[Need], bool] | None = None
    parts: Parts | None = None
    ultraserver: str = ""
    ultraserver_nodes: int = 0

    def takes(self, need: Need) -> bool:
        """Whether one node's share of the job fits here, next to what is already here."""
        return self.suits(need) and (self.worth is None or self.worth(need))

    def suits(self, need: Need) -> bool:
        """The same, also on a node that is dear for it, but not where it would lose its work."""
        if not self.holds(need):
            return False
        # Also in the moment after it was opened: else the gang's nodes would be closed for others.
        is_its_own = need.gang in (self.gated_for, self.opened_for)
        return is_its_own or self.is_lossy is None or not self.is_lossy(need)

    def holds(self, need: Need) -> bool:
        """The same, whatever it would cost."""
        if self.pool not in need.pools or (need.where and not need.where.takes(self.name)):
            return False
        return self.room(need.shape) > 0 and satisfies(need.constraint, self.features)

    def room(self, shape: Shape) -> int:
        """How many such shares fit."""
        if shape.is_exclusive and not self.is_empty:
            return 0
        room = 1 if shape.is_exclusive else self.cpus // (shape.cpus or 1)
        if shape.cpus > self.cpus or shape.memory_mib > self.memory_mib:
            return 0
        if shape.gpus:
            room = min(room, self._devices_for(shape))
        if shape.memory_mib:
            room = min(room, self.memory_mib // shape.memory_mib)
        return room

    def _devices_for(self, shape: Shape) -> int:
        if self.parts is not None:
            return self.parts.room(shape)
        if shape.gres != self.gres or shape.gpu_type not in ("", self.gpu_type):
            return 0
        return self.gpus // shape.gpus

    def together(self, need: Need) -> str:
        """The UltraServer in which all nodes of such a gang are to be; "": it fits into none."""
        fits = need.nodes + len(need.beside) <= self.ultraserver_nodes
        return self.ultraserver if fits else ""

    def put(self, need: Need, count: int = 1) -> None:
        shape = need.shape
        self.jobs.append(need.job_id)
        self.is_empty = False
        if shape.is_exclusive:
            self.gpus = self.cpus = self.memory_mib = 0
            return
        if self.parts is None:
            self.gpus -= shape.gpus * count
        elif shape.gpus:
            self.parts = self.parts.less(shape, count)
            self.gpus = self.parts.gpus
        self.cpus -= shape.cpus * count
        self.memory_mib -= shape.memory_mib * count

    def take_back(self, need: Need, before: "Bin") -> None:
        """Undo a `put`; `before`: the bin as it was then. Others may have come beside it."""
        shape = need.shape
        self.jobs.remove(need.job_id)
        self.is_empty = before.is_empty and not self.jobs
        if shape.is_exclusive:
            self.gpus, self.cpus, self.memory_mib = before.gpus, before.cpus, before.memory_mib
            return
        if self.parts is None:
            self.gpus += shape.gpus
        elif shape.gpus:
            self.parts = self.parts.plus(shape, before.parts)
            self.gpus = self.parts.gpus
        self.cpus += shape.cpus
        self.memory_mib += shape.memory_mib


def bin_of_node(
    node: Node, pool: Pool, offering: Offering, gated_for: str, jobs: Sequence[Job] = ()
) -> Bin:
    """A registered node with what Slurm has left on it; `jobs`: those that it has."""
    parts = parts_of_node(node, jobs)
    return Bin(
        name=node.name,
        kind=BinKind.EXISTING,
        pool=pool.name,
        offering=offering,
        features=node.features or pool.features(offering.instance_type, offering.market),
        gpu_type=node.gpu_type,
        gres=node.gres,
        gpus=parts.gpus if parts else node.gpus - node.gpus_alloc,
        cpus=node.cpus - node.cpus_alloc,
        memory_mib=node.memory_mib - node.memory_alloc_mib,
        is_empty=not node.state.is_busy,
        gated_for=gated_for,
        is_reserved=node.state.is_reserved,
        parts=parts,
    )


def bin_of_type(
    name: str,
    pool: Pool,
    offering: Offering,
    *,
    of: InstanceType,
    gated_for: str,
    layout: str = "",
) -> Bin:
    """A whole node of this type, not yet registered; `layout`: of its GPUs, where they are cut."""
    parts = parts_of_type(of, layout)
    return Bin(
        name=name,
        kind=BinKind.IN_FLIGHT,
        pool=pool.name,
        offering=offering,
        features=pool.features(of.name, offering.market),
        gpu_type=of.gpu_type,
        gres=of.gres,
        gpus=parts.gpus if parts else of.gpus,
        cpus=of.cpus,
        memory_mib=of.slurm_memory_mib,
        gated_for=gated_for,
        parts=parts,
    )


def bin_of_any(
    pool: Pool,
    choice: Sequence[tuple[Offering, InstanceType]],
    *,
    gated_for: str,
    layout: str = "",
) -> Bin:
    """A node of which nobody knows yet what it is: it has what each of the choice has.

    Source: CreateFleet launches any override of its request, whatever their order.
    """
    each = [
        bin_of_type("", pool, offering, of=of, gated_for=gated_for, layout=layout)
        for offering, of in choice
    ]
    kinds = {(one.gres, one.gpu_type) for one in each}
    gres = {one.gres for one in each}
    return replace(
        each[0],
        features=tuple(f for f in each[0].features if all(f in one.features for one in each)),
        gpu_type=each[0].gpu_type if len(kinds) == 1 else "",
        gres=each[0].gres if len(gres) == 1 else "",
        gpus=min(one.gpus for one in each),
        parts=min((one.parts for one in each if one.parts), key=lambda p: p.gpus, default=None),
        cpus=min(one.cpus for one in each),
        memory_mib=min(one.memory_mib for one in each),
        is_anywhere=len({one.offering.zone for one in each}) > 1,
    )


class Bins:
    """All bins of one plan.

    Jobs fill them in one order: what exists first, the tightest first. Rooms only shrink
    while a plan is made, so what was passed over once for a kind of job stays passed over.
    """

    def __init__(self) -> None:
        self.all: list[Bin] = []
        self._order: list[Bin] = []
        self._gated: dict[str, list[Bin]] = {}
        self._opened: dict[str, list[Bin]] = {}
        self._own: dict[str, deque[Bin]] = {}
        #: Nodes in doubt, each with what it is likely to be.
        self.hoped: list[tuple[Bin, Bin]] = []

    def add(self, bins: Iterable[Bin]) -> None:
        self.all.extend(bins)

    def remove(self, name: str) -> None:
        """This node leaves: from now on it counts for nothing."""
        self.all = [each for each in self.all if each.name != name]

    def sort(self) -> None:
        """Fix the order; from now on bins may only be appended."""
        self.all.sort(key=lambda b: b.name)
        roomy = [each for each in self.all if each.cpus > 0 and not each.gated_for]
        self._order = sorted(roomy, key=lambda b: (b.kind, b.gpus, b.cpus, b.memory_mib, b.name))
        for each in self._order:
            self._note_own(each)
        for each in self.all:
            if each.gated_for:
                self._gated.setdefault(each.gated_for, []).append(each)
            elif each.opened_for:
                self._opened.setdefault(each.opened_for, []).append(each)

    def with_room(self) -> Iterator[Bin]:
        """All of them. The room of a node in doubt is in what it is likely to be, where jobs were
        told to hope for it.
        """
        yield from self.all
        yield from (likely for each, likely in self.hoped if not each.cpus)

    def append(self, each: Bin) -> None:
        """Room that turned up late: the last to be filled, wherever it stood before."""
        self._order.append(each)
        self._note_own(each)

    def _note_own(self, each: Bin) -> None:
        for job_id in each.for_jobs:
            self._own.setdefault(job_id, deque()).append(each)

    def own(self, need: Need) -> Bin | None:
        """A node on its way that was bought for the job and still takes it.

        Where each has its own first, none is bought twice for a job that can use but few nodes
        because one that could use any has taken them.
        """
        own = self._own.get(need.job_id)
        while own and not own[0].takes(need):
            own.popleft()
        return own[0] if own else None

    def first(self, need: Need, start: int) -> int:
        """The position of the first bin from `start` on that takes the job; past the end: none."""
        order, shape, pools = self._order, need.shape, need.pools
        gpus = 0 if shape.gres in SHARED_GRES else shape.gpus
        cpus, memory_mib = shape.cpus, shape.memory_mib
        for position in range(start, len(order)):
            each = order[position]
            if (
                each.gpus >= gpus
                and each.cpus >= cpus
                and each.memory_mib >= memory_mib
                and each.pool in pools
                and each.takes(need)
            ):
                return position
        return len(order)

    @property
    def end(self) -> int:
        """The position after the last bin."""
        return len(self._order)

    def at(self, position: int) -> Bin | None:
        return self._order[position] if position < len(self._order) else None

    def for_gang(self, need: Need) -> Iterable[Bin]:
        """The gang's own gated bins, and every open one of which the zone is known. Not what was
        opened for another a moment ago: one with a higher priority may have nodes for a part of it
        alone, and the other's would be closed and opened in turn.
        """
        yield from self._gated.get(need.gang, ())
        for each in dict.fromkeys(self._order):
            if not each.is_anywhere and each.opened_for in ("", need.gang):
                yield each

    def opened(self, gang: str) -> Sequence[Bin]:
        """Those that were opened for the gang a moment ago."""
        return self._opened.get(gang, ())

    def gated(self) -> Iterable[tuple[str, list[Bin]]]:
        """The bins of each gang that are held for it, by its job id."""
        return sorted(self._gated.items())


def gang_members(
    bins: Iterable[Bin],
    need: Need,
    within: Place | None = None,
    wanted_by: Callable[[Bin], int] = lambda _: 1,
    count: int | None = None,
) -> list[Bin]:
    """The nodes a gang may count on: of one pool and zone, where there are enough, or else where
    most of its own gated ones are.

    A gang is not spread over zones, nor over UltraServers where it fits into one: its ranks talk
    to each other all the time. `within`:
    the pool and zone in which the gang has nodes already. `wanted_by`: how many needs of the
    gang a node would do for; those that do for fewest are taken first. Of places that are as good
    the smallest is taken: the larger one may be what another need was given. `count`: at most so
    many, None: as many as it needs.
    """
    most = need.nodes if count is None else count
    where = need.where
    named = where.required if where and not need.is_of_kinds else frozenset()
    groups: dict[tuple[Place, str], list[Bin]] = {}
    for each in bins:
        if each.is_empty and each.kind is not BinKind.FREEING and each.takes(need):
            place = (each.pool, each.offering.zone)
            if where and where.is_bound:  # whoever named them has chosen their places
                place = within or ("", "")
            if within in (None, place):
                together = "" if named or (where and where.is_bound) else each.together(need)
                groups.setdefault((place, together), []).append(each)

    def first(each: Bin) -> tuple[bool, int, int, BinKind, str]:
        # Slurm starts no job on a node for some seconds after it was opened. Chosen anew in each
        # look meanwhile, an array's first task would see its nodes shut again for the next one.
        own = 0 if each.opened_for == need.gang else 1 if each.gated_for else 2
        return each.name not in named, wanted_by(each), own, each.kind, each.name

    ordered = [
        sorted(group, key=first)
        for _, group in sorted(groups.items())
        if not named or count is not None or named <= {each.name for each in group}
    ]

    def worth(group: list[Bin]) -> tuple[bool, int, int, int, int]:
        taken = group[:most]
        own = sum(bool(b.gated_for or b.opened_for == need.gang) for b in taken)
        wanted = sum(map(wanted_by, taken))
        return len(taken) == most, own, len(taken), -wanted, -len(group)

    return max(ordered, key=worth, default=[])[:most]
