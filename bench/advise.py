"""Smaller requests on public histories: what half of one foretells for the other, and what comes.

    python -m bench.advise FOLDER        with the folder of the public histories, gzipped CSV
    python -m bench.advise FOLDER 3 7    histories 3 and 7 alone

These tell of no user and no use: both are drawn (`bench/sacct_history.py`).
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

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
# What is foretold counts as right within so much of the saving, and of the cost.
WITHIN_SAVING, WITHIN_COST = 0.05, 0.05

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


def figures(folder: Path, seeds: Sequence[int] = range(SEEDS)) -> Iterator[Figure]:
    window = next(each for each in WINDOWS if each.name.startswith(WINDOW))
    jobs = trace_of(folder, window).jobs
    found: list[HeldOut] = []
    for seed in seeds:
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
        apart = max(held_out.replays_usd) - min(held_out.replays_usd)
        yield Figure(f"{name}: two replays are apart by", apart, "USD")
        yield Figure(f"{name}: error of cost", 100 * held_out.error_of_cost, "%")
        found.append(held_out)
    yield from judged(found)


def judged(found: Sequence[HeldOut]) -> Iterator[Figure]:
    """How often what was foretold was right, of all histories."""
    of = f"of {len(found)} histories"
    errors = [error_of(each) for each in found]
    yield Figure(f"{of}: error of the saving, mean", 100 * sum(errors) / len(found), "%")
    near = sum(each <= WITHIN_SAVING for each in errors)
    yield Figure(f"{of}: within 5 % of the saving", near, "")
    near = sum(abs(each.error_of_cost) <= WITHIN_COST for each in found)
    yield Figure(f"{of}: within 5 points of the cost", near, "")
    held = sum(e.predicted.low_usd <= e.replayed_usd <= e.predicted.high_usd for e in found)
    yield Figure(f"{of}: within the interval, of 95 %", held, "")


def error_of(held_out: HeldOut) -> float:
    """Of the saving; where none came, what was foretold is wrong altogether."""
    if held_out.error is not None:
        return abs(held_out.error)
    return 1.0 if held_out.predicted.usd else 0.0


def held_out_of(runs: Sequence[Ran]) -> HeldOut | None:
    cluster = parse_cluster(CLUSTER, "bench").cluster
    trace = Trace(tuple(run.job for run in runs))
    return Studied(runs, trace, cluster, Setting(boot_s=BOOT_S)).held_out()[0]


def main() -> None:
    seeds = tuple(map(int, sys.argv[2:])) or range(SEEDS)
    print(table(list(figures(Path(sys.argv[1]), seeds))))


if __name__ == "__main__":
    main()
