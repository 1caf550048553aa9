"""What a cluster file costs whose hazards are wrong, and how much of that learning saves.

    python -m bench.hazards FOLDER [SEEDS]    the folder of the public histories, gzipped CSV

The small teams of `bench.replay` on spot and on demand, without checkpoints and without a price of
waiting, their two weeks three times in a row. EC2 takes nodes back at one rate, the file says a
fifth of it, the same, or five times as much; each is played with the hazards that were seen
counting and without, with one seed for when nodes are taken unless SEEDS says how many. It takes
five minutes of CPU time, so this is no part of `make bench`.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import mean

from bench.replay import BOOT_S, CLUSTER, G5, SPOT, WINDOWS, Window, trace_of
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.offers import seen_hazards
from tidegate.sim.replay.run import replay
from tidegate.sim.replay.trace import Trace
from tidegate.sim.replay.world import Setting
from tidegate.wire.config import parse_cluster

TRUE_PER_HOUR = (0.01, 0.05)
FACTORS = (0.2, 1.0, 5.0)
SEEDS, TIMES, WINDOW_S = 1, 3, 14 * 86400.0

HEADING = (
    "| window | taken back an hour | the file says | USD by the file alone | USD | "
    "GPU-hours lost by the file alone | lost |\n|---|---|---|---|---|---|---|"
)


def rows(folder: Path, seeds: int) -> Iterator[str]:
    for window in reversed([each for each in WINDOWS if "thinned" in each.name]):
        for true_per_hour in TRUE_PER_HOUR:
            for factor in FACTORS:
                played = [
                    _played(folder, window, true_per_hour, factor, seeds, is_learning=is_learning)
                    for is_learning in (False, True)
                ]
                (usd, lost), (learnt_usd, learnt_lost) = played
                cells = (
                    *(window.name, f"{true_per_hour:g}", f"{true_per_hour * factor:g}"),
                    *(f"{usd:,.0f}", f"{learnt_usd:,.0f}"),
                    *(f"{lost:.1f} %", f"{learnt_lost:.1f} %"),
                )
                yield f"| {' | '.join(cells)} |"


def _played(
    folder: Path,
    window: Window,
    true_per_hour: float,
    factor: float,
    seeds: int,
    *,
    is_learning: bool,
) -> tuple[float, float]:
    """The cost in USD and the percentage of GPU-hours that were lost, means of the seeds."""
    cluster, spot = spot_cluster()
    told = replace(cluster, hazards=dict.fromkeys(spot, true_per_hour * factor))
    usd, lost = list[float](), list[float]()
    with _learning(is_on=is_learning):
        for seed in range(seeds):
            true = dict.fromkeys(spot, true_per_hour)
            setting = Setting(boot_s=BOOT_S, seed=seed, hazards=true)
            found = replay(repeated(trace_of(folder, window)), told, setting).outcome
            usd.append(found.cost_usd)
            lost.append(100 * found.gpu_hours_lost / found.gpu_hours_billed)
    return mean(usd), mean(lost)


def repeated(trace: Trace) -> Trace:
    """The same weeks again and again: what is learnt in the first ones tells in the later."""
    return replace(
        trace,
        jobs=tuple(
            replace(job, job_id=f"{job.job_id}-{time}", submit_s=job.submit_s + time * WINDOW_S)
            for time in range(TIMES)
            for job in trace.jobs
        ),
    )


def spot_cluster() -> tuple[Cluster, Sequence[Offering]]:
    """Of pools whose jobs lose all, and its spot offerings."""
    text = CLUSTER.format(types=G5, market="spot, on-demand") + SPOT
    cluster = parse_cluster(text, "bench").cluster
    pools = tuple(replace(pool, checkpoint_s=None) for pool in cluster.pools)
    offered = [on for pool in pools for _, on in pool.offerings() if on.market is Market.SPOT]
    return replace(cluster, pools=pools), offered


@contextmanager
def _learning(*, is_on: bool) -> Iterator[None]:
    """Off: the file's word outweighs all that is seen, and the rests of what was just taken count
    alone.
    """
    prior = seen_hazards.PRIOR_EVENTS, seen_hazards.PRIOR_HOURS
    if not is_on:
        seen_hazards.PRIOR_EVENTS = seen_hazards.PRIOR_HOURS = 1e12
    try:
        yield
    finally:
        seen_hazards.PRIOR_EVENTS, seen_hazards.PRIOR_HOURS = prior


def main() -> None:
    folder, *more = sys.argv[1:]
    print(HEADING)
    for row in rows(Path(folder), int(more[0]) if more else SEEDS):
        print(row, flush=True)


if __name__ == "__main__":
    main()
