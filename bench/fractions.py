"""How many GPUs a drawn queue of jobs for parts of GPUs needs, by how nodes are cut.

    python -m bench.fractions [QUEUES]    so many queues for each row, 40 without it; seconds

Each queue is planned three times: with a layout for each node (`gpu.mig_profiles`); with the best
single profile for the whole pool, the one of those that hold every job which needs fewest GPUs; and
with a pool of its own for each profile, all of whose nodes are cut alike. GPUs are those of all
nodes that are bought, used or not.

The second table replays four days in which such jobs come one by one, on p4d.24xlarge: what nodes
with a layout each cost, nodes that are all cut into the largest profile, and whole GPUs. Minutes.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
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
from tidegate.sim.replay.run import replay
from tidegate.sim.replay.trace import DAY_S, Trace, TraceJob
from tidegate.sim.replay.world import Setting
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


def _cluster(of: InstanceType) -> Cluster:
    pool = Pool("mig", (of,), (ZONE,), (Market.ON_DEMAND,))
    prices = {each: load_list_prices()[of.name] for _, each in pool.offerings()}
    return Cluster("bench", (pool,), (Partition("gpu", ("mig",), is_default=True),), prices)


def _launches(of: InstanceType, jobs: Sequence[Job]) -> Iterable[Launch]:
    cluster = _cluster(of)
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


@frozen
class Days:
    """A history of four days: how many jobs, and how many of each of the three profiles."""

    jobs: int
    weights: tuple[int, int, int]


DAYS = (
    Days(600, (4, 2, 1)),
    Days(2500, (4, 2, 1)),
    Days(600, (1, 1, 4)),
    Days(2500, (1, 1, 4)),
    Days(2500, (30, 1, 1)),
    Days(2500, (1, 0, 0)),
)


def coming(days: Days, seed: int) -> Iterator[TraceJob]:
    """They come at random and run for an hour on the median."""
    chance, at_s = Random(f"{days} {seed}"), 0.0
    for number in range(days.jobs):
        at_s += chance.expovariate(days.jobs / (4 * DAY_S))
        (name,) = chance.choices(A100[:3], days.weights)
        lasts_s = chance.lognormvariate(8.2, 1.0)
        asked = mig_type("a100", name)
        yield TraceJob(str(number), at_s, lasts_s, 1, 1, 1, "gpu", gpu_type=asked)


def usd(jobs: Iterable[TraceJob], cut: GpuModel, every: str = "") -> float:
    """What a replay costs; `every`: the type that all of them ask for instead."""
    of = cut.cut(load_catalogue()["p4d.24xlarge"].instance_type)
    asking = tuple(replace(job, gpu_type=every) if every else job for job in jobs)
    return replay(Trace(asking), _cluster(of), Setting(error_sigma=0.0)).outcome.cost_usd


def over_time(seeds: int = 3) -> Iterator[str]:
    yield "| jobs | 1g : 2g : 3g | layout for each node | all cut into 3g | whole GPUs |"
    yield "|---|---|---|---|---|"
    for days in DAYS:
        histories = [tuple(coming(days, seed)) for seed in range(seeds)]
        mixed = sum(usd(jobs, GpuModel(mig_profiles=A100[:3])) for jobs in histories)
        large = mig_type("a100", A100[2])
        single = sum(usd(jobs, GpuModel(mig=A100[2]), large) for jobs in histories)
        whole = sum(usd(jobs, GpuModel(), "a100") for jobs in histories)
        shown = (f"{each / seeds:,.0f} USD" for each in (mixed, single, whole))
        yield f"| {days.jobs} | {' : '.join(map(str, days.weights))} | {' | '.join(shown)} |"


def main() -> None:
    queues = int(sys.argv[1]) if len(sys.argv) > 1 else QUEUES
    print("\n".join(table(queues)))
    for line in over_time():
        print(line, flush=True)


if __name__ == "__main__":
    main()
