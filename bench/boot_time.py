"""What a start in a minute instead of a boot of five is worth to small teams.

    python -m bench.boot_time FOLDER    the folder of the public histories, gzipped CSV

Each window as it is, with `stopped_nodes` for as many as ever run at one time and for four, and as
the bound (`docs/warm.md`): every node starts in 60 s. W = 0: nothing is kept running for jobs.
Then at prices of waiting, without stopped nodes and with `stopped_nodes: auto`.
"""

import sys
from dataclasses import replace
from pathlib import Path

from bench.replay import WINDOWS, Window, cluster_of, trace_of
from tidegate.core.model.cluster import START_S, Cluster
from tidegate.core.model.waiting import Waiting
from tidegate.sim.replay.run import replay
from tidegate.sim.replay.world import Setting

SMALL = WINDOWS[4:]
BOOT_S = 300.0
# 100 GiB of gp3 in us-east-1, by the hour.
DISK_USD_PER_HOUR = 100 * 0.08 / 730
ALL = 10_000
PRICES = tuple((usd, is_auto) for usd in (50.0, 100.0) for is_auto in (False, True))


def thrifty(window: Window, stopped_nodes: int = 0) -> Cluster:
    """Nothing is kept running before a job needs it."""
    of = cluster_of(window)
    pools = tuple(
        replace(pool, stopped_nodes=stopped_nodes, stopped_usd_per_hour=DISK_USD_PER_HOUR)
        for pool in of.pools
    )
    return replace(of, pools=pools, waiting=Waiting(0.0))


def waiting(window: Window, usd_per_job_hour: float, *, is_auto: bool) -> Cluster:
    """At a price of waiting; `is_auto`: nodes are kept stopped for as long as it says."""
    of = thrifty(window, ALL if is_auto else 0)
    pools = tuple(replace(pool, is_stopped_auto=is_auto) for pool in of.pools)
    return replace(of, pools=pools, waiting=Waiting(usd_per_job_hour))


def main() -> None:
    print("| window | | USD | disks, USD | wait: mean | median | p95 |")
    print("|---|---|---|---|---|---|---|")
    for window in SMALL:
        trace = trace_of(Path(sys.argv[1]), window)
        for name, cluster, boot_s in (
            ("boot 300 s", thrifty(window), BOOT_S),
            ("4 stopped nodes", thrifty(window, 4), BOOT_S),
            ("stopped nodes for all", thrifty(window, ALL), BOOT_S),
            ("boot 60 s", thrifty(window), START_S),
            *((_name(usd, a), waiting(window, usd, is_auto=a), BOOT_S) for usd, a in PRICES),
        ):
            done = replay(trace, cluster, Setting(boot_s=boot_s)).outcome
            waits, disks = (
                done.waits,
                sum(usd for of, usd in done.by_pool if of.endswith("stopped")),
            )
            print(
                f"| {window.name} | {name} | {done.cost_usd:,.0f} | {disks:,.0f}"
                f" | {waits.mean_s:.0f} s | {waits.p50_s:.0f} s | {waits.p95_s:.0f} s |",
                flush=True,
            )


def _name(usd_per_job_hour: float, is_auto: bool) -> str:
    return f"W = {usd_per_job_hour:g}, {'auto' if is_auto else 'none'}"


if __name__ == "__main__":
    main()
