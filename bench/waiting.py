"""What each price of waiting costs and saves on the public histories: the table of docs/waiting.md.

    python -m bench.waiting FOLDER [WINDOW...]    the folder of the public histories, gzipped CSV

Every window of `bench.replay`, or those whose name begins with a WINDOW, is played at each price
that a frontier has and by the models of ParallelCluster and Karpenter. All of them together take
an hour and a half of CPU time, so this is no part of `make bench`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from bench.replay import BOOT_S, WINDOWS, Window, cluster_of, trace_of
from tidegate.sim.replay.frontier import Point, frontier
from tidegate.sim.replay.world import Setting


def rows(folder: Path, windows: Sequence[Window]) -> list[list[str]]:
    """A heading, then for each window what it costs in USD and the waits' mean and median."""
    found: list[list[str]] = []
    for window in windows:
        trace, cluster = trace_of(folder, window), cluster_of(window)
        points = frontier(trace, cluster, Setting(boot_s=BOOT_S), _progress)
        if not found:
            found.append(["window", *(each.outcome.name for each in points)])
        found.append([window.name, *(_cell(each) for each in points)])
        print(_line(found[-1]), file=sys.stderr)
    return found


def _cell(point: Point) -> str:
    waits = point.outcome.waits
    return f"{point.outcome.cost_usd:,.0f}, {waits.mean_s:.0f}, {waits.p50_s:.0f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _progress(done: int, of: int) -> None:
    print(f"{done} of {of}", file=sys.stderr)


def main() -> None:
    folder, *names = sys.argv[1:]
    windows = [each for each in WINDOWS if not names or each.name.startswith(tuple(names))]
    if not windows:
        known = ", ".join(each.name for each in WINDOWS)
        sys.exit(f"no window begins with {' or '.join(names)}; there are: {known}")
    heading, *others = rows(Path(folder), windows)
    print("\n".join(_line(each) for each in (heading, ["---"] * len(heading), *others)))


if __name__ == "__main__":
    main()
