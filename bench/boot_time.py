"""What a start in a minute instead of a boot of five is worth to small teams.

    python -m bench.boot_time FOLDER    the folder of the public histories, gzipped CSV

The bound of what stopped nodes could bring (`docs/warm.md`): every node starts in 60 s, and as many
as ever ran at one time have their root volumes for the whole history.
"""

import sys
from dataclasses import replace
from pathlib import Path

from bench.replay import WINDOWS, Window, cluster_of, trace_of
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.waiting import Waiting
from tidegate.sim.replay.run import replay
from tidegate.sim.replay.state import Machine
from tidegate.sim.replay.world import Setting

SMALL = WINDOWS[4:]
# 100 GiB of gp3 in us-east-1, by the hour.
DISK_USD_PER_HOUR = 100 * 0.08 / 730


def thrifty(window: Window) -> Cluster:
    """Nothing is kept before a job needs it."""
    return replace(cluster_of(window), waiting=Waiting(0.0))


def at_once(machines: list[Machine]) -> int:
    """The most nodes at one time."""
    turns = [(each.launched_s, 1) for each in machines]
    turns += [(each.ended_s or 0.0, -1) for each in machines]
    count = most = 0
    for _, turn in sorted(turns):
        count += turn
        most = max(most, count)
    return most


def main() -> None:
    print("| window | boot | USD | disks, USD | wait: mean | median | p95 |")
    print("|---|---|---|---|---|---|---|")
    for window in SMALL:
        for boot_s in (300.0, 60.0):
            done = replay(
                trace_of(Path(sys.argv[1]), window), thrifty(window), Setting(boot_s=boot_s)
            )
            waits, gone = done.outcome.waits, done.world.gone
            hours = (done.world.now_s - min(each.launched_s for each in gone)) / 3600
            disks_usd = at_once(gone) * hours * DISK_USD_PER_HOUR if boot_s < 300 else 0.0
            print(
                f"| {window.name} | {boot_s:.0f} s | {done.outcome.cost_usd:,.0f} | {disks_usd:.0f}"
                f" | {waits.mean_s:.0f} s | {waits.p50_s:.0f} s | {waits.p95_s:.0f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
