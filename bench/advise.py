"""Smaller requests on public histories: what half of one foretells for the other, and what comes.

    python -m bench.advise FOLDER        with the folder of the public histories, gzipped CSV

These tell of no user and no use: both are drawn (`bench/sacct_history.py`).
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure, table
from bench.replay import BOOT_S, WINDOWS, trace_of
from bench.sacct_history import dressed, text
from tidegate.sim.advise.proof import Studied
from tidegate.sim.advise.usage import read_usage
from tidegate.sim.replay.trace import read_trace
from tidegate.sim.replay.world import Setting
from tidegate.wire.config import parse_cluster

WINDOW = "pai w03 thinned"
SEEDS = 12

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


def figures(folder: Path) -> Iterator[Figure]:
    window = next(each for each in WINDOWS if each.name.startswith(WINDOW))
    jobs, cluster = trace_of(folder, window).jobs, parse_cluster(CLUSTER, "bench").cluster
    for seed in range(SEEDS):
        lines = text(dressed(jobs, seed=seed))
        trace = read_trace(lines)
        runs = read_usage(lines, trace, sums_gpus=True)
        held_out, _ = Studied(runs, trace, cluster, Setting(boot_s=BOOT_S)).held_out()
        if held_out is None:
            continue
        name, of = f"{WINDOW}, drawn by {seed}", held_out.predicted
        yield Figure(f"{name}: jobs of {held_out.classes} classes", held_out.jobs, "")
        yield Figure(f"{name}: that would not have fitted", held_out.misfits, "")
        yield Figure(f"{name}: foretold", of.usd, "USD")
        yield Figure(f"{name}: foretold, low", of.low_usd, "USD")
        yield Figure(f"{name}: foretold, high", of.high_usd, "USD")
        yield Figure(f"{name}: replayed", held_out.replayed_usd, "USD")
        yield Figure(f"{name}: error of cost", 100 * held_out.error_of_cost, "%")


def main() -> None:
    print(table(list(figures(Path(sys.argv[1])))))


if __name__ == "__main__":
    main()
