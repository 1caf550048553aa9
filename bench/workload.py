"""Clusters and queues for the benchmarks, drawn from a seed: the same on every machine.

Types and prices follow EC2's families: price grows with size, GPUs come with uneven shares of
CPUs and memory, and a family costs more per CPU the more memory it has.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from tidegate.core.model.cluster import Cluster, Partition, Pool, Reservation
from tidegate.core.model.digest import Digest, Stamp
from tidegate.core.model.ec2 import Instance, InstanceState, InstanceType, Market, Offering
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.slurm import Job, Node, NodeState, Reading, Shape
from tidegate.core.model.snapshot import Epoch, Snapshot

NOW_S = 1_800_000_000.0
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
SPOT_FACTOR = 0.4

# Family: GiB of memory and USD per hour of one CPU.
CPU_FAMILIES = {"c": (2.0, 0.0425), "m": (4.0, 0.048), "r": (8.0, 0.063)}

# Family: GPU, CPUs and GiB of memory and USD per hour of the smallest one-GPU size, GPUs of
# the sizes.
GPU_FAMILIES = {
    "g4dn": ("t4", 4, 16, 0.526, (1, 1, 1, 4, 8)),
    "g5": ("a10g", 4, 16, 1.006, (1, 1, 1, 4, 8)),
    "g6": ("l4", 4, 16, 0.805, (1, 1, 1, 4, 8)),
    "p3": ("v100", 8, 61, 3.06, (1, 4, 8)),
    "p4d": ("a100", 12, 144, 4.10, (8,)),
    "p5": ("h100", 24, 256, 6.88, (1, 8)),
}
GPU_TYPES = tuple(dict.fromkeys(family[0] for family in GPU_FAMILIES.values()))
GPU_CHOICES = ("t4", "a10g", "l4", "")
CPU_SIZES = (2, 4, 8, 16, 32, 48, 64, 96)


@dataclass(frozen=True, slots=True)
class Case:
    """What a benchmark plans. `gpu_share`: the part of its shapes that wants GPUs."""

    name: str
    jobs: int
    shapes: int
    types: int
    pools: int = 1
    zones: int = 1
    nodes: int = 0
    is_reserving: bool = False
    gpu_share: float = 0.5


def instance_types(count: int) -> tuple[tuple[InstanceType, float], ...]:
    """`count` types with their on-demand prices."""
    made: list[tuple[InstanceType, float]] = []
    generation = 0
    while len(made) < count:
        generation += 1
        # Each further generation is a little cheaper: no two types are quite alike.
        factor = 1.0 - 0.01 * generation
        made.extend(_gpu_types(generation, factor))
        made.extend(_cpu_types(generation, factor))
    return tuple(made[:count])


def _gpu_types(generation: int, factor: float) -> list[tuple[InstanceType, float]]:
    made: list[tuple[InstanceType, float]] = []
    for family, (gpu, cpus, memory_gib, usd, sizes) in GPU_FAMILIES.items():
        for step, gpus in enumerate(sizes):
            scale = gpus * (2**step if gpus == 1 else 2)
            name = f"{family}x{generation}.{scale}xlarge"
            # Of a one-GPU size the GPU is about two thirds of the price.
            price = usd * gpus * (1.0 + 0.17 * (scale / gpus - 1)) * factor
            each = InstanceType(name, cpus * scale, int(memory_gib * 1024 * scale), gpus, gpu)
            made.append((each, round(price, 4)))
    return made


def _cpu_types(generation: int, factor: float) -> list[tuple[InstanceType, float]]:
    return [
        (
            InstanceType(f"{family}{generation}.{cpus}", cpus, int(cpus * gib * 1024), 0, ""),
            round(cpus * usd * factor, 4),
        )
        for family, (gib, usd) in CPU_FAMILIES.items()
        for cpus in CPU_SIZES
    ]


def cluster(types: int, pools: int, zones: int) -> Cluster:
    """Every pool sells every type, in every zone and market."""
    sold = instance_types(types)
    chance = Random(types)
    prices: dict[Offering, float] = {}
    for each, usd in sold:
        for zone in ZONES[:zones]:
            prices[Offering(each.name, zone, Market.ON_DEMAND)] = usd
            spot = usd * SPOT_FACTOR * chance.uniform(1.0, 1.3)
            prices[Offering(each.name, zone, Market.SPOT)] = round(spot, 4)
    kinds = tuple(each for each, _ in sold)
    markets = (Market.SPOT, Market.ON_DEMAND)
    made = tuple(
        Pool(f"pool{number}", kinds, ZONES[:zones], markets, labels=(f"rack{number}",))
        for number in range(pools)
    )
    partition = Partition("all", tuple(pool.name for pool in made), is_default=True)
    return Cluster("bench", made, (partition,), prices)


def reservations(of: Cluster) -> tuple[Reservation, ...]:
    """Two instances of every twentieth type, in the first zone."""
    kinds = of.pools[0].instance_types[::20]
    return tuple(
        Reservation(f"cr-{number}", kind.name, ZONES[0], 2, Market.RESERVED, NOW_S - 60)
        for number, kind in enumerate(kinds)
    )


def shapes(count: int, gpu_share: float) -> tuple[Shape, ...]:
    """Different shapes, a part of which wants GPUs."""
    chance = Random(count)
    made: dict[Shape, None] = {}
    while len(made) < count:
        if chance.random() < gpu_share:
            gpus = chance.choice((1, 1, 1, 2, 4, 8))
            cpus = gpus * chance.choice((1, 2, 3, 4))
            memory_mib = gpus * 256 * chance.randint(8, 60)
            shape = Shape(gpus, chance.choice(GPU_CHOICES), cpus, memory_mib)
        else:
            cpus = chance.choice((1, 2, 4, 8, 16))
            shape = Shape(0, "", cpus, cpus * 64 * chance.randint(8, 112))
        made[shape] = None
    return tuple(made)


def jobs(count: int, of: Sequence[Shape]) -> tuple[Job, ...]:
    """Each with a priority of its own: no two neighbours in the queue have one shape."""
    chance = Random(count)
    return tuple(
        Job(
            str(number),
            "PENDING",
            ("all",),
            1,
            chance.choice(of) if number >= len(of) else of[number],
            "ada",
            reason="Resources",
            priority=chance.randint(1, 1_000_000),
            time_limit_s=3600.0,
        )
        for number in range(count)
    )


def snapshot(case: Case) -> Snapshot:
    of = cluster(case.types, case.pools, case.zones)
    if case.is_reserving:
        of = replace(of, reservations=reservations(of))
    queue = jobs(case.jobs, shapes(case.shapes, case.gpu_share))
    nodes, instances, records = _live(case.nodes, of)
    reading = Reading("24.11.5", queue, nodes)
    digest = Digest("bench", Stamp("i-head", NOW_S - 1000, 1), NOW_S, reading)
    return Snapshot(NOW_S, of, Epoch("bench", 1), digest, 1.0, instances, records)


def _live(
    count: int, of: Cluster
) -> tuple[tuple[Node, ...], tuple[Instance, ...], tuple[NodeRecord, ...]]:
    """Nodes that run jobs on a part of what they have."""
    chance = Random(count)
    nodes: list[Node] = []
    instances: list[Instance] = []
    records: list[NodeRecord] = []
    pool = of.pools[0]
    for number in range(count):
        kind = chance.choice(pool.instance_types)
        on = Offering(kind.name, pool.zones[0], Market.SPOT)
        name, used = f"i-{number:08x}", chance.choice((0.5, 0.75, 1.0))
        nodes.append(
            Node(
                name,
                NodeState.parse("MIXED+DYNAMIC_NORM"),
                kind.vcpus,
                kind.slurm_memory_mib,
                kind.gpus,
                kind.gpu_type,
                int(kind.vcpus * used),
                int(kind.slurm_memory_mib * used),
                int(kind.gpus * used),
                last_busy_at_s=NOW_S,
            )
        )
        at_s = NOW_S - 5000
        instances.append(Instance(name, on, InstanceState.RUNNING, at_s, "l-0", pool.name))
        records.append(NodeRecord(name, "l-0", pool.name, on, at_s, 1.0, Phase.JOINED))
    return tuple(nodes), tuple(instances), tuple(records)
