"""Two weeks of real workloads, replayed: what Tidegate's decisions cost beside the bound.

    make bench TRACES=FOLDER             with the folder of the public histories, gzipped CSV
    python -m bench.replay FOLDER        these alone

The goals of the first four windows were set before any of this was built; the others say what
a small team pays. Every window is played by Tidegate and by the model of ParallelCluster, on
demand with 300 s of boot, time limits that are wrong by a lognormal factor of sigma 1, and
capacity that never runs out; nobody's waiting has a price (`bench.waiting` plays those). The last
one is philly on spot, with checkpoints every 30 minutes. Without the folder nothing is measured:
the repository carries no history.
"""

import gzip
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure, table
from tidegate.core.model.cluster import Cluster
from tidegate.sim.replay.outcome import Outcome
from tidegate.sim.replay.run import replay
from tidegate.sim.replay.trace import Trace, read_trace
from tidegate.sim.replay.world import Setting
from tidegate.wire.config import load_cluster, parse_cluster

EXAMPLES = Path(__file__).parents[1] / "clusters"

BOOT_S = 300.0
MOST_S = 60.0
MOST_MIB = 500.0

CLUSTER = """
name: bench
region: us-east-1
partitions: {{gpu: {{pools: [gpu], default: true}}}}
waiting: {{usd_per_job_hour: 0}}
pools:
  gpu:
    instance_types: [{types}]
    zones: [us-east-1a]
    capacity_types: [{market}]
    max_job_nodes: 64
    checkpoint_s: 1800
"""

# Spot by on-demand, and interruptions per node-hour: what the public data say of GPU types.
SPOT = """
prices_usd_per_hour:
  g5.xlarge: {on-demand: 1.006, spot: 0.335}
  g5.12xlarge: {on-demand: 5.672, spot: 1.89}
  g5.48xlarge: {on-demand: 16.288, spot: 5.42}
hazards_per_hour: {g5.xlarge: 0.01, g5.12xlarge: 0.01, g5.48xlarge: 0.01}
"""

G5 = "g5.xlarge, g5.12xlarge, g5.48xlarge"
P4D = "p4d.24xlarge"


@dataclass(frozen=True, slots=True)
class Window:
    """A history on a fleet, and the multiple of the bound that the cost may be, if any."""

    name: str
    file: str
    types: str
    multiple: float | None = None


WINDOWS = (
    Window("philly w09, g5", "philly_w09_14d", G5, 1.06),
    Window("venus w15, g5", "helios_venus_w15_14d", G5, 1.08),
    Window("venus w15, p4d", "helios_venus_w15_14d", P4D, 1.07),
    Window("pai w03, p4d", "pai2020_sub_w03_14d", P4D, 1.19),
    Window("venus w15 thinned to 1/20, g5", "helios_venus_w15_thin20_14d", G5),
    Window("pai w03 thinned to 1/20, g5", "pai2020_sub_w03_thin20_14d", G5),
    Window("philly, one team, 28 days, g5", "philly_ee9e8c_w04_28d", G5),
)


def figures(folder: Path) -> Iterator[Figure]:
    for window in WINDOWS:
        trace, cluster = trace_of(folder, window), cluster_of(window)
        began_s = time.process_time()
        ours = replay(trace, cluster, Setting(boot_s=BOOT_S)).outcome
        took_s = time.process_time() - began_s
        model = replay(trace, cluster, Setting(boot_s=BOOT_S), "parallelcluster").outcome
        yield from _judged(window, ours, model)
        yield Figure(f"{window.name}: CPU time", took_s, "s", MOST_S)
    window = WINDOWS[0]
    spot = parse_cluster(CLUSTER.format(types=G5, market="spot, on-demand") + SPOT, "bench").cluster
    ours = replay(trace_of(folder, window), spot, Setting(boot_s=BOOT_S)).outcome
    yield Figure("philly w09, g5 on spot: cost / on-demand bound", ours.multiple, "x", 0.40)
    yield Figure("philly w09, g5 on spot: interruptions", ours.interruptions, "")
    yield from _examples(folder)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield Figure("replays: peak memory", peak_mib, "MiB", MOST_MIB)


def _examples(folder: Path) -> Iterator[Figure]:
    """The example files as a new user would replay them."""
    trace = trace_of(folder, next(each for each in WINDOWS if "venus w15 thinned" in each.name))
    for path in sorted(EXAMPLES.glob("*.yaml")):
        ours = replay(trace, load_cluster(path).cluster, Setting()).outcome
        lost = ours.gpu_hours_lost / ours.gpu_hours_billed
        yield Figure(f"{path.stem}.yaml, venus thinned: cost / bound", ours.multiple, "x")
        yield Figure(f"{path.stem}.yaml, venus thinned: GPU-hours lost", 100 * lost, "%", 3.0)
        yield Figure(f"{path.stem}.yaml, venus thinned: wait p95", ours.waits.p95_s, "s")


def _judged(window: Window, ours: Outcome, model: Outcome) -> Iterator[Figure]:
    name = window.name
    yield Figure(f"{name}: cost / bound", ours.multiple, "x", window.multiple)
    cost = ours.cost_usd / model.cost_usd
    yield Figure(f"{name}: cost / ParallelCluster-like", cost, "x", 1.0)
    launches = ours.launches / model.launches
    yield Figure(f"{name}: launches / ParallelCluster-like", launches, "x", 2.5)
    yield Figure(f"{name}: wait p95", ours.waits.p95_s, "s", BOOT_S + 15)
    yield Figure(f"{name}: wait p99", ours.waits.p99_s, "s", BOOT_S + 450)
    yield Figure(f"{name}: jobs that never ran", ours.jobs - ours.jobs_ended, "", 0)


def trace_of(folder: Path, window: Window) -> Trace:
    text = gzip.decompress((folder / f"{window.file}.csv.gz").read_bytes()).decode()
    return read_trace(text)


def cluster_of(window: Window) -> Cluster:
    return parse_cluster(CLUSTER.format(types=window.types, market="on-demand"), "bench").cluster


def main() -> None:
    print(table(list(figures(Path(sys.argv[1])))))


if __name__ == "__main__":
    main()
