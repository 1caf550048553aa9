"""Other autoscalers to compare with, modelled from their documented rules; none of them is run.

All live in the same world with the same Slurm, boot time and prices. They buy on demand, as a
rule in the first zone, and nobody's capacity runs out.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil

from tidegate.core.demand.fit import lacks
from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.ec2 import InstanceType, Market, Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Job, Shape
from tidegate.sim.replay.possible import meets
from tidegate.sim.replay.state import Machine, Run
from tidegate.sim.replay.trace import TraceJob
from tidegate.sim.replay.world import World


@frozen
class Offer:
    """Something to buy."""

    pool: Pool
    of: InstanceType
    offering: Offering
    usd_per_hour: float

    @property
    def features(self) -> tuple[str, ...]:
        """What its node says of itself to Slurm."""
        return self.pool.features(self.of.name, self.offering.market)

    def suits(self, job: Job, world: World) -> bool:
        """Whether its node is one that Slurm would run the job on."""
        if self.pool.name not in world.queue.pools_of(job.partitions):
            return False
        return not lacks(job.shape, self.of) and meets(job, self.features)


class Left:
    """What limits of pools leave of their nodes and GPUs while a policy decides. Those of the
    cluster and limits on money the other autoscalers do not have.
    """

    def __init__(self, world: World) -> None:
        self._used: Counter[tuple[str, str]] = Counter()
        for each in world.machines.values():
            self._use(each.pool, each.instance_type)

    def _use(self, pool: str, of: InstanceType, nodes: int = 1) -> None:
        self._used[pool, "nodes"] += nodes
        self._used[pool, "gpus"] += nodes * of.gpus

    def has(self, offer: Offer) -> bool:
        """Room for one more."""
        pool, limits = offer.pool.name, offer.pool.limits
        nodes, gpus = self._used[pool, "nodes"] + 1, self._used[pool, "gpus"] + offer.of.gpus
        return (limits.nodes is None or nodes <= limits.nodes) and (
            limits.gpus is None or gpus <= limits.gpus
        )

    def take(self, offer: Offer) -> None:
        self._use(offer.pool.name, offer.of)

    def give_back(self, offer: Offer) -> None:
        self._use(offer.pool.name, offer.of, -1)


def offers(cluster: Cluster) -> list[Offer]:
    """Everything on demand, the cheapest first; the first zone of a pool."""
    found = [
        Offer(pool, of, offering, cluster.prices[offering])
        for pool in cluster.pools
        for of, offering in pool.offerings()
        if offering.market is Market.ON_DEMAND and offering.zone == pool.zones[0]
    ]
    return sorted(found, key=lambda each: (each.usd_per_hour, each.offering))


@dataclass(slots=True, eq=False)
class Room:
    """What is left of a node while jobs are put on it."""

    of: InstanceType
    pool: str
    features: tuple[str, ...]
    gpus: int
    cpus: int
    memory_mib: int
    is_empty: bool = True
    jobs: list[Job] = field(default_factory=list)

    @classmethod
    def of_offer(cls, offer: Offer) -> "Room":
        of = offer.of
        return cls(of, offer.pool.name, offer.features, of.gpus, of.cpus, of.slurm_memory_mib)

    @classmethod
    def of_machine(cls, each: Machine) -> "Room":
        free = (each.gpus_free, each.cpus_free, each.memory_free_mib)
        left = (0, 0, 0) if each.num_exclusive else free
        of, pool = each.instance_type, each.pool
        return cls(of, pool, each.features, *left, is_empty=each.is_empty)

    def put(self, job: Job, world: World) -> bool:
        """Put one node's share of the job here, if it fits."""
        shape = job.shape
        if self.pool not in world.queue.pools_of(job.partitions) or not meets(job, self.features):
            return False
        if lacks(shape, self.of) or (shape.is_exclusive and not self.is_empty):
            return False
        if (
            self.gpus < shape.gpus
            or self.cpus < shape.cpus
            or self.memory_mib < shape.memory_mib
            or (not self.is_empty and self.gpus == self.cpus == 0)
        ):
            return False
        self.is_empty = False
        self.jobs.append(job)
        if shape.is_exclusive:
            self.gpus = self.cpus = self.memory_mib = 0
        else:
            self.gpus -= shape.gpus
            self.cpus -= shape.cpus
            self.memory_mib -= shape.memory_mib
        return True


def unplaced(world: World) -> tuple[list[Job], list[Room]]:
    """A job for each node's share that neither an idle nor a booting node will hold, and all
    rooms with what is left of them.
    """
    rooms = [Room.of_machine(each) for each in world.machines.values()]
    rooms.sort(key=lambda room: (room.of.gpus, room.gpus))
    left: list[Job] = []
    for place in sorted(world.queue.waiting):
        job = world.queue.waiting[place].pending
        missing = job.nodes
        for room in rooms:
            if missing and room.put(job, world):
                missing -= 1
        left += [job] * missing
    return left, rooms


def release_idle(world: World, idle_s: float, spare: int = 1 << 30) -> float | None:
    """Let go of nodes that idled for so long; when the next one will have."""
    next_s: list[float] = []
    for each in list(world.machines.values()):
        if each.is_up and each.is_empty:
            if each.idle_since_s + idle_s <= world.now_s and spare > 0:
                world.release(each)
                spare -= 1
            else:
                next_s.append(max(each.idle_since_s + idle_s, world.now_s + 60.0))
    return min(next_s, default=None)


class ParallelCluster:
    """AWS ParallelCluster: Slurm's power saving. For each job that fits nowhere the cheapest type
    that holds it, within its queues' MaxCount, all nodes of a job or none; a node goes after
    ScaledownIdletime, 10 minutes.

    Source: AWS ParallelCluster user guide, "Slurm scheduler support", `MaxCount` and
    `ScaledownIdletime`.
    """

    IDLE_S = 600.0

    def decide(self, world: World) -> float | None:
        unmet, _ = unplaced(world)
        left, for_sale = Left(world), offers(world.cluster)
        rooms: list[Room] = []
        for _, shares in itertools.groupby(unmet, key=lambda job: job.job_id):
            for offer in _bought(list(shares), for_sale, rooms, left, world):
                world.buy(offer.pool, offer.offering, 1)
        return release_idle(world, self.IDLE_S)


class Karpenter:
    """Karpenter: pending pods are packed into as few nodes as can be, the largest pods first;
    each node then is the cheapest type that holds what was packed on it, within the limits of its
    NodePool. Empty nodes go after consolidateAfter, 30 s; running jobs are never moved.

    Source: Karpenter's documentation, "Scheduling", "NodePools" (`spec.limits`) and "Disruption"
    (consolidation).
    """

    IDLE_S = 30.0

    def decide(self, world: World) -> float | None:
        unmet, _ = unplaced(world)
        left, for_sale = Left(world), offers(world.cluster)
        rooms: list[tuple[Offer, Room]] = []
        for job in sorted(unmet, key=lambda job: (-job.shape.gpus, -job.shape.cpus, job.job_id)):
            if not any(room.put(job, world) for _, room in rooms):
                holding = [each for each in for_sale if each.suits(job, world) and left.has(each)]
                if holding:
                    largest = max(holding, key=lambda each: (each.of.gpus, each.of.cpus))
                    left.take(largest)
                    rooms.append((largest, Room.of_offer(largest)))
                    rooms[-1][1].put(job, world)
        for largest, room in rooms:
            left.give_back(largest)
            offer = _cheapest([each for each in for_sale if left.has(each)], room.jobs, world)
            if offer:
                left.take(offer)
                world.buy(offer.pool, offer.offering, 1)
        return release_idle(world, self.IDLE_S)


class Asg:
    """An EC2 Auto Scaling group of the largest type with target tracking: the GPUs that are asked
    for by running and waiting jobs are 80 % of those there are. Out every minute, in after 15
    minutes below, only idle nodes (scale-in protection).

    Source: EC2 Auto Scaling user guide, "Target tracking scaling policies".
    """

    TARGET = 0.8
    BELOW_S = 900.0
    PERIOD_S = 60.0

    def __init__(self) -> None:
        self._below_since_s: float | None = None

    def decide(self, world: World) -> float | None:
        offer = _largest(world.cluster)
        runs: Iterable[Run] = (*world.running.values(), *world.queue.waiting.values())
        whole = sum(_nodes(run.pending, offer.of) for run in runs)
        wanted = ceil(whole / self.TARGET - 1e-9)
        have = len(world.machines)
        world.buy(offer.pool, offer.offering, wanted - have)
        if wanted >= have:
            self._below_since_s = None
        elif self._below_since_s is None:
            self._below_since_s = world.now_s
        elif world.now_s - self._below_since_s >= self.BELOW_S:
            release_idle(world, 0.0, have - wanted)
        return world.now_s + self.PERIOD_S if have or world.queue.waiting else None


class Static:
    """A fixed number of the largest nodes, from the first job to the end of the last: enough for
    so many percent of the time.
    """

    def __init__(self, percent: float) -> None:
        self._percent = percent

    def decide(self, world: World) -> float | None:
        if world.is_over:
            release_idle(world, 0.0)
        elif not world.machines:
            offer = _largest(world.cluster)
            nodes = static_nodes([run.job for run in world.due], world.cluster, self._percent)
            world.buy(offer.pool, offer.offering, nodes)
        return None


def static_nodes(jobs: Sequence[TraceJob], cluster: Cluster, percent: float) -> int:
    """Nodes of the largest type that are enough for so many percent of the time, if every job
    began at once; never fewer than the largest job takes.
    """
    of = _largest(cluster).of
    changes: list[tuple[float, float]] = []
    for job in jobs:
        shape = Shape(gpus=job.gpus, cpus=job.cpus, is_exclusive=job.nodes > 1)
        share = job.nodes if job.nodes > 1 else _share(shape, of)
        changes += [(job.submit_s, share), (job.submit_s + job.duration_s, -share)]
    changes.sort()
    spans: list[tuple[float, float]] = []
    demand = 0.0
    for (at_s, change), (next_s, _) in itertools.pairwise(changes):
        demand += change
        spans.append((demand, next_s - at_s))
    left_s = sum(span_s for _, span_s in spans) * percent / 100
    enough = 0.0
    for nodes, span_s in sorted(spans):
        enough = nodes
        left_s -= span_s
        if left_s <= 0:
            break
    return max(ceil(enough - 1e-6), max(job.nodes for job in jobs))


def _bought(
    shares: Sequence[Job],
    for_sale: Sequence[Offer],
    rooms: list[Room],
    left: Left,
    world: World,
) -> list[Offer]:
    """What is bought for one job's shares beside these rooms: nothing, where some find none."""
    found: list[Offer] = []
    for job in shares:
        if any(room.put(job, world) for room in rooms):
            continue
        there = [each for each in for_sale if left.has(each)]
        offer = _cheapest(there, [job], world)
        if offer is None:
            del rooms[len(rooms) - len(found) :]
            for each in found:
                left.give_back(each)
            return []
        left.take(offer)
        found.append(offer)
        rooms.append(Room.of_offer(offer))
        rooms[-1].put(job, world)
    return found


def _share(shape: Shape, of: InstanceType) -> float:
    """The part of a node that a job takes."""
    return max(shape.gpus / of.gpus if of.gpus else 0.0, shape.cpus / of.cpus)


def _nodes(job: Job, of: InstanceType) -> float:
    return job.nodes if job.shape.is_exclusive else job.nodes * _share(job.shape, of)


def _largest(cluster: Cluster) -> Offer:
    return max(offers(cluster), key=lambda e: (e.of.gpus, e.of.cpus, -e.usd_per_hour))


def _cheapest(for_sale: Sequence[Offer], jobs: Sequence[Job], world: World) -> Offer | None:
    """The cheapest that holds all of them together; None: nothing on demand does."""
    together = _sum(jobs)
    for each in for_sale:
        if not lacks(together, each.of) and all(each.suits(job, world) for job in jobs):
            return each
    return None


def _sum(jobs: Sequence[Job]) -> Shape:
    shapes = [job.shape for job in jobs]
    return Shape(
        gpus=sum(shape.gpus for shape in shapes),
        gpu_type=max(shape.gpu_type for shape in shapes),
        cpus=sum(shape.cpus for shape in shapes),
        memory_mib=sum(shape.memory_mib for shape in shapes),
        gres=max((shape.gres for shape in shapes if shape.gpus), default="gpu"),
    )
