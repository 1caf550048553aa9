"""Slurm's placement: first in, first out by time of submission, with backfill around it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.slurm import Shape
from tidegate.sim.replay.parts import Cut, Shared
from tidegate.sim.replay.possible import meets
from tidegate.sim.replay.state import Machine, Run

# Jobs that hold a place in the future while later ones are backfilled. Slurm's default is
# bf_max_job_test=500; a place is only worth having on nodes that are up already.
RESERVATIONS_MAX = 20


type Spare = int | Cut | Shared
"""GPUs that stay free beside a job, of a node with parts what stays free of these."""


@dataclass(slots=True)
class Hold:
    """A node that a waiting job will get at `from_s`; `spare` GPUs beside it stay free."""

    from_s: float
    spare: Spare


class Queue:
    """What waits, in the order of the queue, and one scheduling pass over it.

    No fairshare and no age factor: the order is that of submission. A job that cannot start
    holds the nodes on which it could start first, if any of those that are up could ever take
    it; a later job may use them only when it ends before, by its time limit. Nodes that boot
    are unknown to Slurm.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._pools: dict[tuple[str, ...], frozenset[str]] = {}
        self._cluster = cluster
        # Nodes that a kind of job may use; holds for one pass.
        self._of_kind: dict[int, list[Machine]] = {}
        self.waiting: dict[int, Run] = {}

    def pools_of(self, partitions: tuple[str, ...]) -> frozenset[str]:
        found = self._pools.get(partitions)
        if found is None:
            parts = (self._cluster.partition(name) for name in partitions)
            found = frozenset(name for part in parts if part for name in part.pools)
            self._pools[partitions] = found
        return found

    def schedule(
        self, machines: Mapping[str, Machine], now_s: float
    ) -> Iterator[tuple[Run, tuple[Machine, ...]]]:
        """Each job that starts now, with its nodes. The caller starts it before it goes on."""
        is_open = [each for each in machines.values() if each.takes_jobs]
        is_open.sort(key=lambda each: each.rank)
        holds: dict[str, Hold] = {}
        hopeless: set[int] = set()
        self._of_kind.clear()
        num_holds = 0
        for place in sorted(self.waiting):
            run = self.waiting[place]
            if run.kind in hopeless or not run.left_s >= 0 or run.ready_s > now_s:
                continue
            usable = self._usable(run, is_open)
            fitting = [each for each in usable if each.room(run.pending.shape)]
            chosen = _chosen(run, [m for m in fitting if _may(run, m, holds, now_s)])
            if chosen:
                del self.waiting[place]
                yield run, chosen
                continue
            if len(fitting) < run.pending.nodes and num_holds >= RESERVATIONS_MAX:
                hopeless.add(run.kind)
            elif num_holds < RESERVATIONS_MAX:
                num_holds += _hold(run, usable, holds, now_s)

    def _usable(self, run: Run, machines: list[Machine]) -> list[Machine]:
        """The nodes that the job may use and that would hold it when empty."""
        found = self._of_kind.get(run.kind)
        if found is None:
            job, pools = run.pending, self.pools_of(run.pending.partitions)
            found = self._of_kind[run.kind] = [
                each
                for each in machines
                if each.pool in pools and each.could(job.shape) and meets(job, each.features)
            ]
        return found


def _hold(run: Run, usable: list[Machine], holds: dict[str, Hold], now_s: float) -> int:
    """Keep the nodes on which it could start first; how many jobs got such a place."""
    free_at: list[tuple[float, int, str, Spare]] = []
    for each in usable:
        before = holds.get(each.name)
        if before and not _is_spared(run.pending.shape, before.spare):
            continue  # somebody before it has that node
        at_s, spare = _frees(run, each)
        free_at.append((max(at_s, now_s), each.rank[0], each.name, spare))
    nodes = run.pending.nodes
    if len(free_at) < nodes:
        return 0
    chosen = sorted(free_at, key=lambda each: each[:3])[:nodes]
    from_s = max(at_s for at_s, *_ in chosen)
    for _, _, name, spare in chosen:
        before = holds.get(name)
        if before:
            from_s, spare = min(before.from_s, from_s), _less(before.spare, spare, run)
        holds[name] = Hold(from_s, spare)
    return 1


def _is_spared(shape: Shape, spare: Spare) -> bool:
    """Whether these GPUs are enough for one node's share of a job."""
    if isinstance(spare, int):
        return spare >= shape.gpus
    return not shape.gpus or spare.has_room(shape)


def _less(before: Spare, spare: Spare, run: Run) -> Spare:
    """What stays free beside both; `spare`: beside `run` alone."""
    if isinstance(before, int) or isinstance(spare, int):
        return min(each for each in (before, spare) if isinstance(each, int))
    left, job = before.copy(), run.pending
    left.give(job.job_id, job.shape)
    return left


def _frees(run: Run, machine: Machine) -> tuple[float, Spare]:
    """When the job would fit by the others' time limits, and the GPUs that are left then."""
    known = machine.frees.get(run.kind)
    if known is not None and known[0] == machine.changes:
        return known[1], known[2]
    shape = run.pending.shape
    gpus, cpus, memory_mib = machine.gpus_free, machine.cpus_free, machine.memory_free_mib
    left = len(machine.runs)
    is_alone = shape.is_exclusive or bool(machine.num_exclusive)
    at_s = 0.0
    parts = machine.parts and machine.parts.copy()
    for end_s, of, job_id in machine.ends():
        has_gpus = gpus >= shape.gpus if parts is None else _is_spared(shape, parts)
        has_room = has_gpus and cpus >= shape.cpus and memory_mib >= shape.memory_mib
        if has_room and not (is_alone and left):
            break
        if parts is not None:
            parts.take_back(job_id)
        gpus, cpus, memory_mib = gpus + of.gpus, cpus + of.cpus, memory_mib + of.memory_mib
        left -= 1
        at_s = end_s
    spare: Spare = 0 if shape.is_exclusive else gpus - shape.gpus
    if parts is not None and not shape.is_exclusive:
        parts.give(run.pending.job_id, shape)
        spare = parts
    machine.frees[run.kind] = machine.changes, at_s, spare
    return at_s, spare


def _may(run: Run, machine: Machine, holds: dict[str, Hold], now_s: float) -> bool:
    """Whether starting here now would put off nobody who waits before it."""
    hold = holds.get(machine.name)
    if hold is None or now_s + run.limit_s <= hold.from_s:
        return True
    shape = run.pending.shape
    return not shape.is_exclusive and _is_spared(shape, hold.spare)


def _chosen(run: Run, fitting: list[Machine]) -> tuple[Machine, ...]:
    """Lowest weight first, whatever else runs there; a gang in one pool and zone if it can.

    Of equal weights Slurm takes the first of its table, also beside a node that is partly used.
    """
    nodes = run.pending.nodes
    if len(fitting) < nodes:
        return ()
    if nodes == 1:
        return (fitting[0],)
    places: dict[tuple[str, str], list[Machine]] = {}
    for each in fitting:
        places.setdefault((each.pool, each.offering.zone), []).append(each)
    best = next((group for group in places.values() if len(group) >= nodes), fitting)
    return tuple(best[:nodes])
