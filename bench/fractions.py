"""How many GPUs a drawn queue of jobs for parts of GPUs needs, by how nodes are cut.

    python -m bench.fractions [QUEUES]    so many queues for each row, 40 without it; seconds

Each queue is planned three times: with a layout for each node (`gpu.mig_profiles`); with the best
single profile for the whole pool, the one of those that hold every job which needs fewest GPUs; and
with a pool of its own for each profile, all of whose nodes are cut alike. GPUs are those of all
nodes that are bought, used or not.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

from tidegate.core.model.cluster import Cluster, Partition, Pool
from tidegate.core.model.digest import Digest, Stamp
from tidegate.core.model.ec2 import InstanceType, Market
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Launch, NodeRecord
from tidegate.core.model.slurm import Job, Reading, Shape
from tidegate.core.model.snapshot import Epoch, Snapshot
from tidegate.core.planner import plan
from tidegate.wire.catalogue import load_catalogue, load_list_prices
from tidegate.wire.node_models import GpuModel, mig_type

NOW_S, ZONE = 1_800_000_000.0, "us-east-1a"
QUEUES = 40
PLANS_MAX = 20
MIB_PER_GIB = 1024


@frozen
class Row:
    """Queues of one kind: an instance type, and the profiles that jobs ask for, small first."""

    instance_type: str
    profiles: tuple[str, ...]
    jobs: tuple[int, int]


A100 = ("1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb")
H100 = ("1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb")
ROWS = (
    Row("p4d.24xlarge", A100[:3], (60, 400)),
    Row("p4d.24xlarge", A100, (60, 400)),
    Row("p5.4xlarge", H100[:3], (5, 40)),
    Row("p5.4xlarge", H100, (5, 40)),
)

type Queue = dict[str, int]
"""How many jobs ask for each profile."""


def drawn(row: Row, seed: int) -> Queue:
    """At least two profiles, each with its own weight; small ones are asked for more often."""
    chance = Random(f"{row} {seed}")
    weights = {name: chance.random() / (n + 1) for n, name in enumerate(row.profiles)}
    count = chance.randint(*row.jobs)
    names = chance.choices(list(weights), list(weights.values()), k=count)
    both = chance.sample(row.profiles, 2)
    return {name: (names + both).count(name) for name in row.profiles}


def gpus(instance_type: str, cut: GpuModel, queue: Queue) -> int:
    """GPUs of all nodes that plans buy for the queue, until one buys nothing more."""
    whole = load_catalogue()[instance_type].instance_type
    launches = _launches(cut.cut(whole), _jobs(whole, queue, cut.mig))
    return sum(each.count for each in launches) * whole.gpus


def _jobs(whole: InstanceType, queue: Queue, profile: str | None) -> list[Job]:
    """`profile`: which all of them ask for; None: each its own. None of them wants many CPUs."""
    return [
        Job(
            job_id=str(number),
            state="PENDING",
            partitions=("gpu",),
            nodes=1,
            shape=Shape(1, mig_type(whole.gpu_type, profile or name), 1, MIB_PER_GIB),
            user="ada",
            count=count,
            reason="Resources",
        )
        for number, (name, count) in enumerate(queue.items(), 1)
        if count
    ]


def _launches(of: InstanceType, jobs: Sequence[Job]) -> Iterable[Launch]:
    pool = Pool("mig", (of,), (ZONE,), (Market.ON_DEMAND,))
    prices = {each: load_list_prices()[of.name] for _, each in pool.offerings()}
    cluster = Cluster("bench", (pool,), (Partition("gpu", ("mig",), is_default=True),), prices)
    reading = Reading("24.11.5", tuple(jobs), ())
    digest = Digest("bench", Stamp("i-head", NOW_S, 1), NOW_S, reading)
    records: list[NodeRecord] = []
    for number in range(PLANS_MAX):
        snapshot = Snapshot(
            now_s=NOW_S,
            cluster=cluster,
            epoch=Epoch("bench", number),
            digest=digest,
            digest_age_s=1.0,
            nodes=tuple(records),
        )
        made = [each for each in plan(snapshot).actions if isinstance(each, Launch)]
        if not made:
            return
        yield from made
        records += [record for launch in made for record in _records(launch, len(records))]
    raise AssertionError("plans go on buying")


def _records(launch: Launch, known: int) -> Iterable[NodeRecord]:
    one = NodeRecord(
        *("", launch.launch_id, launch.pool, launch.offerings[0], NOW_S),
        usd_per_hour=launch.usd_per_hour_each,
        layout=launch.layout,
    )
    for number in range(launch.count):
        yield replace(one, instance_id=f"i-{launch.launch_id}-{known + number}")


def fewest(row: Row, queue: Queue) -> tuple[int, int, int]:
    """GPUs with layouts, with the best single profile, with a pool for each profile."""
    asked = [name for name in row.profiles if queue[name]]
    mixed = gpus(row.instance_type, GpuModel(mig_profiles=row.profiles), queue)
    holding = row.profiles[row.profiles.index(asked[-1]) :]
    single = min(gpus(row.instance_type, GpuModel(mig=name), queue) for name in holding)
    apart = sum(gpus(row.instance_type, GpuModel(mig=name), {name: queue[name]}) for name in asked)
    return mixed, single, apart


def table(queues: int) -> list[str]:
    lines = [
        "| node | profiles | layout for each node | best single profile | fewer (least of a queue)"
        " | a pool for each | fewer (least) |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in ROWS:
        found = [fewest(row, drawn(row, seed)) for seed in range(queues)]
        mixed, single, apart = (sum(each[n] for each in found) for n in range(3))
        lines.append(
            f"| {row.instance_type} | to {row.profiles[-1]} | {mixed} GPUs | {single}"
            f" | {_fewer(mixed, single)} ({_least(found, 1)}) | {apart}"
            f" | {_fewer(mixed, apart)} ({_least(found, 2)}) |"
        )
    return lines


def _fewer(mixed: float, others: float) -> str:
    return f"{100 * (1 - mixed / others):.0f} %"


def _least(found: Sequence[tuple[int, int, int]], of: int) -> str:
    return f"{min(100 * (1 - each[0] / each[of]) for each in found):.0f} %"


def main() -> None:
    queues = int(sys.argv[1]) if len(sys.argv) > 1 else QUEUES
    print("\n".join(table(queues)))


if __name__ == "__main__":
    main()
