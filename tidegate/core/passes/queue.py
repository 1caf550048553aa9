"""The queue of one plan: who needs capacity, which gangs that makes, and who has a place."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field

from tidegate.core.buy.bins import Bin, BinKind, Bins, Place
from tidegate.core.demand.demand import Need
from tidegate.core.model.plan import Served, Unmet
from tidegate.core.model.why import WhyNot


@dataclass(slots=True)
class Part:
    """One need of a gang. `held`: the existing nodes that it counts on; `before`: the same as
    they were without it; `bought`: the names of new ones.
    """

    need: Need
    held: list[Bin] = field(default_factory=list)
    before: list[Bin] = field(default_factory=list)
    bought: list[str] = field(default_factory=list)

    @property
    def missing(self) -> int:
        return self.need.nodes - len(self.held)

    @property
    def place(self) -> Place | None:
        """Where the nodes are that it holds; None: it holds none."""
        return (self.held[0].pool, self.held[0].offering.zone) if self.held else None

    def hold(self, bins: Sequence[Bin]) -> None:
        """Count on existing nodes; nobody else gets them."""
        self.held.extend(bins)
        self.before.extend(copy(each) for each in bins)
        for each in bins:
            each.put(self.need)

    def give_back(self, bins: Bins) -> None:
        """Open nodes that it held take other jobs again."""
        for each, before in zip(self.held, self.before, strict=True):
            each.take_back(self.need, before)
            if not each.gated_for:
                bins.append(each)
        self.held, self.before = [], []


@dataclass(slots=True)
class Gang:
    """Needs that start together or not at all: one, or several.

    Several are the components of a heterogeneous job, each in a zone of its own, or the kinds
    of nodes of one job, all in one zone.
    """

    parts: list[Part] = field(default_factory=list)
    is_complete: bool = False

    @property
    def is_there(self) -> bool:
        """All its nodes are up, open or at their gates."""
        held = [each for part in self.parts for each in part.held]
        is_short = any(part.bought or part.missing for part in self.parts)
        return not is_short and all(each.kind is BinKind.EXISTING for each in held)

    @property
    def held_names(self) -> set[str]:
        return {each.name for part in self.parts for each in part.held}

    @property
    def counts_on(self) -> set[str]:
        """Those that it holds, and those that it has from a run that has lost nodes."""
        return self.held_names.union(*(part.need.beside for part in self.parts))

    @property
    def key(self) -> str:
        return self.parts[0].need.gang

    @property
    def nodes(self) -> int:
        beside = {part.need.job_id: len(part.need.beside) for part in self.parts}
        return sum(part.need.nodes for part in self.parts) + sum(beside.values())

    @property
    def is_of_kinds(self) -> bool:
        """Its parts are kinds of nodes of one job."""
        jobs = {part.need.job_id for part in self.parts}
        return len(jobs) == 1 and self.parts[0].need.is_of_kinds


@dataclass(slots=True)
class Queue:
    """Every pending job, and what became of it; each has one verdict in the end.

    `passed_over`: jobs that an earlier attempt at this plan could not serve. `needs`: what
    capacity is sought for, in Slurm's order.
    """

    passed_over: Mapping[str, Unmet] = field(default_factory=dict)
    needs: Sequence[Need] = ()
    gangs: list[Gang] = field(default_factory=list)
    served: dict[str, Served] = field(default_factory=dict)
    unmet: dict[str, Unmet] = field(default_factory=dict)

    @property
    def refused(self) -> dict[str, Unmet]:
        """Jobs that capacity was sought for, and that get none now."""
        found = ((need.job_id, self.unmet.get(need.job_id)) for need in self.needs)
        return {job_id: unmet for job_id, unmet in found if unmet}

    def note_served(self, job_id: str, by: tuple[str, ...], reason: str) -> None:
        """A job, or one more task of its array, has its place."""
        before = self.served.get(job_id)
        if before:
            by, reason = (*before.by, *by), before.reason
        self.served[job_id] = Served(job_id, by, reason)

    def refuse(self, job_id: str, why_nots: tuple[WhyNot, ...], sentence: str) -> None:
        """A job, or the rest of its array, gets nothing now."""
        before = self.served.get(job_id)
        if before is None:
            self.unmet[job_id] = Unmet(job_id, sentence, why_nots)
        else:
            reason = f"{before.reason}; the rest of its tasks wait: {sentence}"
            self.served[job_id] = Served(job_id, before.by, reason)
