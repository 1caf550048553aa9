"""Smaller requests on public histories: what half of one foretells for the other, and what comes.

    python -m bench.advise FOLDER        with the folder of the public histories, gzipped CSV
    python -m bench.advise FOLDER 3      and three times more, each job sent up to a minute off

These tell of no user and no use: both are drawn (`bench/sacct_history.py`). A minute more or less
is nothing that anybody would foretell: what it changes is how far a single replay can be off.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

from bench.figures import Figure, table
from bench.replay import BOOT_S, WINDOWS, trace_of
from bench.sacct_history import dressed, text
from tidegate.sim.advise.proof import HeldOut, Studied
from tidegate.sim.advise.usage import Ran, read_usage
from tidegate.sim.replay.trace import Trace, read_trace
from tidegate.sim.replay.world import Setting
from tidegate.wire.config import parse_cluster

WINDOW = "pai w03 thinned"
SEEDS = 12
MOVED_S = 60.0

CLUSTER = """
name: bench
region: us-east-1
partitions: {gpu: {pools: [gpu], default: true}}
pools:
  gpu:
    instance_types: [g5.xlarge, g5.2xlarge, g5.4xlarge, g5.8xlarge, g5.16xlarge, g5.12xlarge,
      g5.48xlarge]
    zones: [us-east-1a]
    capacity_types: [on-demand]
    max_job_nodes: 32
"""


def figures(folder: Path, moves: int = 0) -> Iterator[Figure]:
    window = next(each for each in WINDOWS if each.name.startswith(WINDOW))
    jobs = trace_of(folder, window).jobs
    for seed in range(SEEDS):
        lines = text(dressed(jobs, seed=seed))
        runs = read_usage(lines, read_trace(lines), sums_gpus=True)
        if (held_out := held_out_of(runs)) is None:
            continue
        name, of = f"{WINDOW}, drawn by {seed}", held_out.predicted
        yield Figure(f"{name}: jobs of {held_out.classes} classes", held_out.jobs, "")
        yield Figure(f"{name}: that would not have fitted", held_out.misfits, "")
        yield Figure(f"{name}: foretold", of.usd, "USD")
        yield Figure(f"{name}: foretold, low", of.low_usd, "USD")
        yield Figure(f"{name}: foretold, high", of.high_usd, "USD")
        yield Figure(f"{name}: replayed", held_out.replayed_usd, "USD")
        yield Figure(f"{name}: error of cost", 100 * held_out.error_of_cost, "%")
        also = [held_out_of(moved(runs, move)) for move in range(moves)]
        every = [held_out, *(each for each in also if each)]
        if len(every) > 1:
            yield from noise(name, "foretold", [each.predicted.usd for each in every])
            yield from noise(name, "replayed", [each.replayed_usd for each in every])


def held_out_of(runs: Sequence[Ran]) -> HeldOut | None:
    cluster = parse_cluster(CLUSTER, "bench").cluster
    trace = Trace(tuple(run.job for run in runs))
    return Studied(runs, trace, cluster, Setting(boot_s=BOOT_S)).held_out()[0]


def moved(runs: Sequence[Ran], move: int) -> list[Ran]:
    """The same jobs, each sent a little sooner or later."""
    chance = random.Random(f"moved {move}")
    found = [
        replace(run, job=replace(run.job, submit_s=max(run.job.submit_s + by_s, 0.0)))
        for run in runs
        for by_s in [chance.uniform(-MOVED_S, MOVED_S)]
    ]
    return sorted(found, key=lambda run: (run.job.submit_s, run.job.job_id))


def noise(name: str, what: str, usd: Sequence[float]) -> Iterator[Figure]:
    yield Figure(f"{name}: {what}, mean of {len(usd)}", mean(usd), "USD")
    yield Figure(f"{name}: {what}, standard deviation", 100 * stdev(usd) / mean(usd), "%")


def main() -> None:
    moves = int((*sys.argv[2:], "0")[0])
    print(table(list(figures(Path(sys.argv[1]), moves))))


if __name__ == "__main__":
    main()
