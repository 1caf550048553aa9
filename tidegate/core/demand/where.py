"""On which nodes Slurm would start a job, where that is not any node that fits.

Named nodes (`-w`), excluded ones (`-x`), and reservations, its own and those of others. Instance
ids are never used twice, and no reservation takes a new node in: where a job is bound to nodes
that exist, a new one never helps.
Source: `job_test_resv` in slurmctld's reservation.c, and docs/real-slurm.md.
"""

from collections.abc import Iterable
from functools import cached_property
from math import inf

from tidegate.core.model.drain_reason import sentence_of
from tidegate.core.model.durations import clock
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Job, Node, NodeReservation, Reading

NAMES_TOLD = 3
NO_NAMES: frozenset[str] = frozenset()


@frozen
class Where:
    """On which nodes a job may start.

    `only`: on no other nodes, None: on any. `closed`: on none of these. `required`: it starts only
    when it has all of these. `why`: what it waits for while nothing is bought for it.
    """

    only: frozenset[str] | None = None
    closed: frozenset[str] = NO_NAMES
    required: frozenset[str] = NO_NAMES
    why: str = ""

    def takes(self, name: str) -> bool:
        return name not in self.closed and (self.only is None or name in self.only)

    @property
    def is_bound(self) -> bool:
        """A new node never helps."""
        return self.only is not None


class Places:
    """On which nodes each job of one reading may start.

    `head_now_s`: on the head's clock, 0: unknown.
    """

    def __init__(self, reading: Reading, head_now_s: float) -> None:
        self._reading = reading
        self._now_s = head_now_s or inf
        self._found: dict[tuple[object, ...], Where | None] = {}
        self._is_any_reserved = bool(self._reservations or self._reserved_by_word)

    def is_anywhere(self, job: Job) -> bool:
        """Nothing binds it: most jobs, so this is quick."""
        is_bound = job.required_nodes or job.excluded_nodes or job.reservation
        return not (is_bound or self._is_any_reserved)

    def of(self, job: Job, boot_s: float = 0.0) -> Where | None:
        """Where it may start; None: wherever it fits. `boot_s`: until a new node has joined."""
        key = (job.required_nodes, job.excluded_nodes, job.reservation, *self._about(job))
        if key not in self._found:
            self._found[key] = self._where(job, boot_s)
        return self._found[key]

    def never(self, job: Job) -> str:
        """Why no node at all would let it start now; "": one would."""
        if job.required_nodes and (gone := self._gone(job)):
            return (
                f"it asks for {gone} by name (-w), and Slurm has no such node any more: a new one "
                "never has that name"
            )
        own = self._own(job) if job.reservation else []
        if own and not any(each.is_flexible or self._is_active(each) for each in own):
            first = min(own, key=lambda each: (each.starts_at_s, each.name))
            return f"its reservation {first.name} begins at {clock(first.starts_at_s)}"
        for each in self._reservations if not job.reservation else ():
            if each.takes_all_of(job.partitions) and self._meets(each, job):
                return _all_taken(each, self._starts_s(job))
        return ""

    def knows(self, names: str) -> bool:
        """Whether the digest tells of one of these reservations, and that it is not over."""
        return any(each.name in names.split(",") for each in self._reservations)

    # -- inside ------------------------------------------------------------------------------

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self._reading.nodes}

    @cached_property
    def _reservations(self) -> list[NodeReservation]:
        """Those that are not over."""
        found = (r for r in self._reading.reservations if r.ends_at_s > self._now_s)
        return sorted(found, key=lambda each: each.name)

    @cached_property
    def _reserved_by_word(self) -> frozenset[str]:
        """Reserved by their state; whose reservation that is the digest may not say."""
        return frozenset(node.name for node in self._reading.nodes if node.state.is_reserved)

    def _about(self, job: Job) -> tuple[object, ...]:
        """What else of a job counts while there are reservations."""
        if not self._reservations:
            return ()
        lasts_s = job.time_min_s or job.time_limit_s
        whose = job.user, job.account, job.shape.is_exclusive
        return (lasts_s, job.begins_at_s, job.partitions, *whose)

    def _where(self, job: Job, boot_s: float) -> Where | None:
        required = frozenset(job.required_nodes)
        closed = frozenset(job.excluded_nodes)
        own = self._own(job) if job.reservation else []
        only = None if len(required) < max(job.nodes, 1) else required
        if not own:
            closed |= self._of_others(job)
        elif not any(each.is_flexible for each in own):
            members = frozenset(n for r in own if self._is_active(r) for n in r.nodes)
            only = members if only is None else only & members
        late = self._too_late(job, boot_s) if only is None and not own else ""
        if late:
            return Where(frozenset(self._nodes), closed, required, late)
        if only is None and not closed and not required:
            return None
        return Where(only, closed, required, self._why(job, own) if required or own else "")

    def _too_late(self, job: Job, boot_s: float) -> str:
        """Why it could start on nodes that are up, and on none that would be bought for it."""
        for each in self._reservations:
            if each.takes_all_of(job.partitions) and self._meets(each, job, boot_s):
                return _all_taken(each, self._starts_s(job))
        return ""

    def _why(self, job: Job, own: list[NodeReservation]) -> str:
        if job.required_nodes:
            names = [self._told(name) for name in job.required_nodes[:NAMES_TOLD]]
            more = len(job.required_nodes) - NAMES_TOLD
            rest = f" and {more} more" if more > 0 else ""
            return f"it waits for {', '.join(names)}{rest}, which it asks for by name (-w)"
        names = [name for each in own for name in each.nodes]
        on = ", ".join(names[:NAMES_TOLD]) or "no node"
        which = " or ".join(each.name for each in own)
        return (
            f"it runs only in its reservation {which} ({on}), which has no room for it now; a new "
            "node never joins it"
        )

    def _told(self, name: str) -> str:
        node = self._nodes.get(name)
        if node is None:
            return f"{name} (no node of Tidegate's)"
        reason = sentence_of(node.reason)
        return f"{name} ({node.state}{f': {reason}' if reason else ''})"

    def _gone(self, job: Job) -> str:
        known = self._reading.static_nodes
        gone = [n for n in job.required_nodes if n not in self._nodes and n not in known]
        return ", ".join(gone[:NAMES_TOLD])

    def _own(self, job: Job) -> list[NodeReservation]:
        names = job.reservation.split(",")
        return [each for each in self._reservations if each.name in names]

    def _is_active(self, each: NodeReservation) -> bool:
        return each.starts_at_s <= self._now_s

    def _of_others(self, job: Job) -> frozenset[str]:
        """Nodes on which it would run into somebody else's reservation."""
        closed: set[str] = set()
        known: set[str] = set()
        for each in self._reservations:
            known.update(each.nodes if self._is_active(each) else ())
            if self._meets(each, job) and self._is_whole(each, job):
                closed.update(each.nodes)
        return frozenset(closed | (self._reserved_by_word - known))

    def _meets(self, each: NodeReservation, job: Job, boot_s: float = 0.0) -> bool:
        """Whether the job, begun as soon as it may, would still run when it begins."""
        if each.is_magnetic and each.is_for(job.user, job.account):
            return False
        lasts_s = job.time_min_s or job.time_limit_s or inf
        starts_s = max(self._starts_s(job), self._now_s + boot_s)
        return each.starts_at_s < starts_s + lasts_s and each.ends_at_s > starts_s

    def _starts_s(self, job: Job) -> float:
        return max(self._now_s, job.begins_at_s or 0.0)

    def _is_whole(self, each: NodeReservation, job: Job) -> bool:
        """Of a reservation of some cores the others are free, but not for an exclusive job."""
        cpus = sum(self._nodes[name].cpus for name in each.nodes if name in self._nodes)
        return job.shape.is_exclusive or each.cpus is None or each.cpus >= cpus


def _all_taken(each: NodeReservation, starts_s: float) -> str:
    until = f"until {clock(each.ends_at_s)}"
    if each.starts_at_s <= starts_s:
        return f"the reservation {each.name} has all nodes of its partition {until}"
    return (
        f"the reservation {each.name} has all nodes of its partition from "
        f"{clock(each.starts_at_s)} {until}, and the job would run into it: with a time limit that "
        "ends before it can start now"
    )


def reserving(reservations: Iterable[NodeReservation], now_s: float) -> dict[str, str]:
    """Node -> the reservation that names it, begun or not, for nodes that stay for it.

    Slurm deletes no node of a reservation that has begun, and with the last node of one that has
    not it drops the reservation. One of all nodes names none.
    """
    return {
        name: each.name
        for each in sorted(reservations, key=lambda r: r.name)
        if each.ends_at_s > now_s and not each.is_of_all
        for name in each.nodes
    }
