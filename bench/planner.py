"""How long the planner takes: `make bench`. Prints milliseconds per plan and per job."""

import time
from collections.abc import Sequence
from itertools import cycle

from tidegate.core.digest import Digest, Stamp
from tidegate.core.ec2 import InstanceType, Market, Offering
from tidegate.core.planner import plan
from tidegate.core.pool import Cluster, Partition, Pool
from tidegate.core.slurm import Job, Reading, Shape
from tidegate.core.snapshot import Epoch, Snapshot

TYPES = tuple(
    InstanceType(f"g5.{size}xlarge", 4 * size, 16_384 * size, max(1, size // 6), "a10g")
    for size in (1, 2, 4, 8, 12, 24, 48)
)
ZONES = tuple(f"us-east-1{letter}" for letter in "abcdef")
MARKETS = (Market.SPOT, Market.ON_DEMAND)


def cluster() -> Cluster:
    """Three pools of seven types, six zones and two markets: 252 offerings."""
    pools = tuple(Pool(f"pool{n}", TYPES, ZONES, MARKETS, weight=n + 1) for n in range(3))
    prices = {
        Offering(each.name, zone, market): each.gpus * (1.0 if market is Market.ON_DEMAND else 0.4)
        for each in TYPES
        for zone in ZONES
        for market in MARKETS
    }
    partition = Partition("gpu", tuple(pool.name for pool in pools), is_default=True)
    return Cluster("bench", pools, (partition,), prices)


def jobs(count: int, shapes: Sequence[tuple[int, int]]) -> tuple[Job, ...]:
    """`shapes`: (nodes, GPUs per node), taken in turn."""
    turn = cycle(shapes)
    made: list[Job] = []
    for number in range(count):
        nodes, gpus = next(turn)
        shape = Shape(gpus, "a10g", 2, 4_000)
        made.append(Job(str(number), "PENDING", ("gpu",), nodes, shape, "ada", reason="Resources"))
    return tuple(made)


def measure(label: str, queue: tuple[Job, ...], of: Cluster) -> None:
    reading = Reading("bench", queue, ())
    digest = Digest("bench", Stamp("i-head", 0.0, 1), 0.0, reading)
    snapshot = Snapshot(0.0, of, Epoch("bench", 1), digest, 0.0)
    began_s = time.perf_counter()
    made = plan(snapshot)
    took_ms = (time.perf_counter() - began_s) * 1000
    each_us = took_ms * 1000 / len(queue)
    print(f"{label:34} {took_ms:9.1f} ms  {each_us:7.1f} us a job  {len(made.actions)} actions")


def main() -> None:
    of = cluster()
    for count in (1_000, 10_000):
        measure(f"{count} one-GPU jobs", jobs(count, [(1, 1)]), of)
        measure(f"{count} jobs of 1, 2 and 8 GPUs", jobs(count, [(1, 1), (1, 2), (1, 8)]), of)
    measure("1000 gangs of 4 x 8 GPUs", jobs(1_000, [(4, 8)]), of)


if __name__ == "__main__":
    main()
