"""Which pending jobs need capacity, and which would not start even with it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from tidegate.core.demand.accounting import Caps
from tidegate.core.demand.constraint import (
    NodeKind,
    Unplannable,
    kinds_left,
    read_constraint,
    with_all_kinds,
)
from tidegate.core.demand.deadline import NOTHING_SAVED, Saved, due_s, least_s, saved, unread
from tidegate.core.demand.fit import can_be
from tidegate.core.demand.held import begins_later, holds
from tidegate.core.demand.partitions import admitted
from tidegate.core.demand.where import Places, Where
from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.frozen import frozen
from tidegate.core.model.plan import Unmet
from tidegate.core.model.slurm import Job, Reading, Shape, Spread
from tidegate.core.model.why import Why, WhyNot


@frozen(quick=True)
class Need:
    """A job (or `count` equal jobs) for which `nodes` nodes of `shape` must exist.

    `kind`: needs with the same one differ only in id, count and priority; -1: unknown. `is_gang`:
    all of them at once, or none. `gang_id`: needs that share one start together, all or none of
    them (the components of a heterogeneous job, the kinds of nodes of one job that counts several
    in its constraint, `is_of_kinds`). `where`: the nodes it may start on, None: any that fits.
    `beside`: nodes that the gang has already, when only those that it lost are needed.
    `expected_s`: how long it will really run, None: unknown. `deadline_s`: the instant by which it
    must have ended, `shortest_s`: the least time that Slurm would give it until then
    (`--time-min`). `checkpoint_s`: the work that an interruption costs it at most, None: as its
    pool says. `restarts`: how often it was requeued. `saved`: what it need not do again.
    `wait_usd_per_hour`: what its waiting costs; `quickest_boot_s`: until the quickest node of its
    pools is up. `payers`: its account and user as scopes of budgets, as far as they have one.
    """

    job_id: str
    count: int
    nodes: int
    shape: Shape
    constraint: str
    pools: tuple[str, ...]
    is_gang: bool = False
    beside: tuple[str, ...] = ()
    payers: tuple[str, ...] = ()
    qos: str = ""
    time_limit_s: float | None = None
    expected_s: float | None = None
    deadline_s: float | None = None
    shortest_s: float | None = None
    is_requeueable: bool = True
    checkpoint_s: float | None = None
    priority: int = 0
    gang_id: str = ""
    kind: int = -1
    is_of_kinds: bool = False
    where: Where | None = None
    restarts: int = 0
    saved: Saved = NOTHING_SAVED
    wait_usd_per_hour: float = 0.0
    quickest_boot_s: float = 0.0

    @property
    def gang(self) -> str:
        """Who holds nodes back for it: its heterogeneous job, or itself."""
        return self.gang_id or self.job_id


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """A sort key under which job 9 comes before job 10."""
    if text.isdecimal():
        return ((int(text), ""),)
    parts = re.findall(r"\d+|\D+", text)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)


def rank(job: Job) -> tuple[object, ...]:
    """Slurm priority first; at equal priority the largest; then the oldest id."""
    return (_weight(job), natural(job.job_id))


def _weight(job: Job) -> int:
    """Priority, then size, as one number: a plan compares 100,000 of them. Slurm's are 32 bits."""
    return -((job.priority << 32) + job.nodes * max(job.shape.gpus, 1))


def in_order(jobs: Iterable[Job]) -> list[Job]:
    """The jobs by rank; ids are looked at only where the rest is equal."""
    ordered = sorted(jobs, key=_weight)
    weights = [_weight(job) for job in ordered]
    start = 0
    for end in range(1, len(ordered) + 1):
        if end == len(ordered) or weights[end] != weights[start]:
            if end - start > 1:
                ordered[start:end] = sorted(ordered[start:end], key=_by_id)
            start = end
    return ordered


def _by_id(job: Job) -> tuple[tuple[int, str], ...]:
    return natural(job.job_id)


def demand(
    reading: Reading,
    cluster: Cluster,
    lost: frozenset[str],
    head_now_s: float = 0.0,
    passed_over: Mapping[str, Unmet] | None = None,
    *,
    failed: frozenset[str] = frozenset(),
) -> tuple[tuple[Need, ...], tuple[Unmet, ...]]:
    """All needs in the order in which Slurm would serve them, and the jobs that wait anyway.

    `lost`: nodes that EC2 reclaims; their requeueable jobs need a place again. `failed`: nodes on
    which only jobs of several nodes are requeued. `head_now_s`:
    now on the head's clock, 0: unknown, then no begin time is near. `passed_over`: jobs that
    cannot be served now, so they hold no place under a cap that others wait for.
    """
    return _Demand(reading, cluster, head_now_s, passed_over or {}).read(lost, failed)


def kinds_running(reading: Reading, cluster: Cluster) -> list[tuple[Need, list[Job]]]:
    """The running jobs by what they asked for when they waited."""
    running = [job for job in reading.jobs if job.node_names and not job.is_pending]
    if not running:
        return []
    read = _Demand(reading, cluster, 0.0, {})
    alike: dict[int, tuple[Need, list[Job]]] = {}
    for job in in_order(running):
        need = read.need(job, 1)
        alike.setdefault(need.kind, (need, []))[1].append(job)
    return list(alike.values())


class _Demand:
    """One reading of the queue."""

    def __init__(
        self,
        reading: Reading,
        cluster: Cluster,
        head_now_s: float,
        passed_over: Mapping[str, Unmet],
    ) -> None:
        self.reading, self._refused = (of := admitted(reading, cluster)).reading, of.refused
        self.cluster, self.head_now_s, self.passed_over = cluster, head_now_s, passed_over
        self.needs: list[Need] = []
        self.unmet: list[Unmet] = []
        self._pools: dict[tuple[str, ...], tuple[Pool, ...]] = {}
        self._kinds: dict[tuple[object, ...], Need] = {}
        self._sentences: dict[tuple[object, ...], str] = {}
        self._features = {node.name: node.features for node in reading.nodes}
        self._places = Places(reading, head_now_s)

    @cached_property
    def caps(self) -> Caps:
        return Caps(self.reading)

    def read(
        self, lost: frozenset[str], failed: frozenset[str]
    ) -> tuple[tuple[Need, ...], tuple[Unmet, ...]]:
        together: dict[str, list[Job]] = {}
        for job in self.reading.jobs:
            if job.het_job_id and job.is_pending:
                together.setdefault(job.het_job_id, []).append(job)
        parts = (each for each in self.reading.jobs if each.het_job_id) if self.passed_over else ()
        over = {each.het_job_id for each in parts if each.job_id in self.passed_over}
        for job in in_order(self.reading.jobs):
            taken = lost | failed if failed and len(job.node_names) > 1 else lost
            gone = taken.intersection(job.node_names) if taken else frozenset()
            if gone and job.is_running and job.is_requeueable:
                self._wants_again(job, gone)
            if not job.is_pending:
                continue
            if job.job_id in self.passed_over or job.het_job_id in over:
                part = Unmet(job.job_id, "another part of this job gets no capacity")
                self.unmet.append(self.passed_over.get(job.job_id, part))
            elif not job.het_job_id:
                self._wants(job)
            elif job.het_job_id in together:
                self._wants_together(sorted(together.pop(job.het_job_id), key=rank))
        return tuple(self.needs), tuple(self.unmet)

    def _wants_again(self, job: Job, gone: frozenset[str]) -> None:
        """The next run of a job that loses these of its nodes."""
        if never := self._never(job):
            self.unmet.append(Unmet(job.job_id, never.sentence, (never,)))
            return
        kept = tuple(name for name in job.node_names if name not in gone)
        restarts = job.restarts + 1  # as Slurm will count them
        need = replace(self.need(job, 1), nodes=len(gone), beside=kept, kind=-1, restarts=restarts)
        if job.het_job_id:  # all of it starts again, together
            need = replace(need, is_gang=True, gang_id=job.het_job_id)
        self.needs.extend(self._by_kind(need, job) or [need])

    def _wants(self, job: Job) -> None:
        if never := self._never(job):
            self.unmet.append(Unmet(job.job_id, never.sentence, (never,)))
            return
        sentence = self._held(job)
        job = with_all_kinds(job) if "*" in job.constraint and not sentence else job
        job = self.caps.spread(job) if job.spreads else job
        admitted, stopped_by = (0, sentence) if sentence else self.caps.admit(job)
        if admitted:
            need = self.need(job, admitted)
            self.needs.extend(self._by_kind(need, job) or [need])
        else:
            self.unmet.append(Unmet(job.job_id, stopped_by))

    def _wants_together(self, jobs: Sequence[Job]) -> None:
        """The components of a heterogeneous job: what stops one stops all."""
        why_nots = tuple(never for job in jobs if (never := self._never(job)))[:1]
        held = [each.sentence for each in why_nots] or [self._held(job) for job in jobs]
        stopped = next(filter(None, held), "")
        if not stopped:
            jobs = [self.caps.spread(with_all_kinds(job)) for job in jobs]
            stopped = self.caps.admit_together(jobs)
        for job in jobs:
            if stopped:
                self.unmet.append(Unmet(job.job_id, stopped, why_nots))
            else:
                need = self.need(job, 1)
                need = replace(need, is_gang=True, gang_id=job.het_job_id)
                self.needs.extend(self._by_kind(need, job) or [need])

    def _by_kind(self, need: Need, job: Job) -> list[Need]:
        """A need for each kind of nodes that its constraint counts; none: it counts none."""
        if "*" not in job.constraint:
            return []
        try:
            found = read_constraint(job.constraint)
        except Unplannable:  # a running job that Slurm understands better
            return []
        kinds = list(found.kinds)
        if kinds and job.nodes > found.nodes:
            kinds.append(NodeKind(job.nodes - found.nodes, str(found)))
        kept = [self._features.get(name, ()) for name in need.beside]
        return [
            replace(
                need,
                nodes=kind.nodes,
                constraint=kind.constraint,
                is_gang=True,
                gang_id=need.gang,
                kind=-1,
                is_of_kinds=True,
            )
            for kind in kinds_left(kinds, kept)
        ]

    def _never(self, job: Job) -> WhyNot | None:
        """Why no node that exists or is bought would let it start."""
        if refused := self._refused.get(job.job_id) or unread(job):
            return refused
        if self._places.is_anywhere(job):
            return None
        never = self._places.never(job)
        if not never and job.reservation and not self._places.knows(job.reservation):
            never = f"it waits in the reservation {job.reservation}, which new nodes never join"
        return WhyNot(Why.NODES, never) if never else None

    def _held(self, job: Job) -> str:
        if job.begins_at_s and (job.reason == "BeginTime" or begins_later(job, self.head_now_s)):
            boot_s = min((pool.boot_s for pool in self._pools_of(job)), default=0.0)
            return holds(job, boot_s, self.head_now_s)
        # All that `holds` looks at in a job that may begin: every job in Slurm's queue has a time.
        key = job.reason, job.constraint, job.unreadable, job.count > 0
        if key not in self._sentences:
            self._sentences[key] = holds(job)
        return self._sentences[key]

    def need(self, job: Job, count: int) -> Need:
        where = None
        if not self._places.is_anywhere(job):
            boot_s = min((pool.boot_s for pool in self._pools_of(job)), default=0.0)
            where = self._places.of(job, boot_s)
        payers = self.cluster.payers(job.account, job.user)
        key = (
            payers,
            job.partitions,
            job.nodes,
            job.shape,
            job.constraint,
            job.spreads,
            job.account,
            job.qos,
            job.time_limit_s,
            due_s(job),
            least_s(job),
            job.is_requeueable,
            job.is_checkpointed,
            where,
            job.restarts,
            saved(job),
        )
        of = self._kinds.get(key)
        if of is None:
            of = self._kinds[key] = self._first(job, count, payers, where)
            return of
        return Need(
            job.job_id,
            count,
            of.nodes,
            of.shape,
            of.constraint,
            of.pools,
            of.is_gang,
            (),
            of.payers,
            of.qos,
            of.time_limit_s,
            of.expected_s,
            of.deadline_s,
            of.shortest_s,
            of.is_requeueable,
            of.checkpoint_s,
            job.priority,
            "",
            of.kind,
            where=where,
            restarts=of.restarts,
            saved=of.saved,
            wait_usd_per_hour=of.wait_usd_per_hour,
            quickest_boot_s=of.quickest_boot_s,
        )

    def _first(self, job: Job, count: int, payers: tuple[str, ...], where: Where | None) -> Need:
        """The first need of its kind."""
        due = due_s(job)
        wait_usd = self.cluster.waiting.usd(
            job.partitions, job.qos, job.account, has_deadline=due is not None
        )
        pools = self._pools_of(job)
        constraint, spread = self._choices(job, pools)
        return Need(
            job.job_id,
            count,
            spread.nodes,
            spread.shape,
            constraint,
            tuple(pool.name for pool in pools),
            is_gang=spread.nodes > 1,
            payers=payers,
            qos=job.qos,
            time_limit_s=job.time_limit_s,
            expected_s=self.cluster.expected_s(job.time_limit_s, job.account),
            deadline_s=due,
            shortest_s=least_s(job),
            is_requeueable=job.is_requeueable,
            checkpoint_s=0.0 if job.is_checkpointed else None,
            priority=job.priority,
            kind=len(self._kinds),
            where=where,
            restarts=job.restarts,
            saved=saved(job),
            wait_usd_per_hour=wait_usd,
            quickest_boot_s=min((pool.boot_s for pool in pools), default=0.0),
        )

    def _pools_of(self, job: Job) -> tuple[Pool, ...]:
        if job.partitions not in self._pools:
            names: dict[str, None] = {}
            for name in job.partitions:
                partition = self.cluster.partition(name)
                names |= dict.fromkeys(partition.pools if partition else ())
            found = (self.cluster.pool(name) for name in names)
            self._pools[job.partitions] = tuple(pool for pool in found if pool)
        return self._pools[job.partitions]

    def _choices(self, job: Job, pools: tuple[Pool, ...]) -> tuple[str, Spread]:
        """The constraint as each node must meet it, and the fewest nodes that can do the job.

        Of `[a|b]` the first alternative that one of the pools has: all nodes must meet the
        same one, and a plan that mixed them would buy nodes on which Slurm starts nothing.
        """
        fewest = Spread(job.nodes, job.shape)
        try:
            constraint = read_constraint(job.constraint)
        except Unplannable:  # a running job that Slurm understands better
            return job.constraint, fewest
        if not job.spreads and not constraint.is_same:
            return str(constraint), fewest
        texts = constraint.alternatives if constraint.is_same else (str(constraint),)
        if constraint.kinds:
            return texts[0], fewest
        for spread in (fewest, *job.spreads):
            for text in texts:
                if can_be(spread.shape, text, pools):
                    return text, spread
        return texts[0], fewest
