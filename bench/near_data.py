"""Whether jobs should be sent to nodes that have their data sets already.

    python -m bench.near_data FOLDER [HISTORY...]    with the folder of public histories; minutes

Each job reads one of twelve data sets, some far more often than others; the histories do not tell
which. A node loads one when the first of its jobs starts there, or while it boots for that job. A
history is played twice: as Slurm places jobs, by weight and then by its table, and with each job
moved to a node with room that has its data set or loads it, where there is one.
"""

import gzip
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

from tidegate.core.model.cluster import Cluster
from tidegate.sim.replay.state import Machine, Run
from tidegate.sim.replay.tidegate_policy import Tidegate
from tidegate.sim.replay.trace import Trace, read_trace
from tidegate.sim.replay.world import Setting, World
from tidegate.wire.config import parse_cluster

HISTORIES = {
    "venus": "helios_venus_w15_thin20_14d",
    "pai": "pai2020_sub_w03_thin20_14d",
    "philly": "philly_ee9e8c_w04_28d",
}
BOOT_S = 300.0
# From when on a node loads before it joins: its disk is there early in the boot.
EARLY_S = 200.0
LOAD_S = 300.0
SETS = 12

CLUSTER = """
name: bench
region: us-east-1
partitions: {{gpu: {{pools: [gpu], default: true}}}}
pools:
  gpu:
    instance_types: [g5.xlarge, g5.12xlarge, g5.48xlarge]
    zones: [us-east-1a]
    capacity_types: [on-demand]
    max_job_nodes: 64
    {fleet}
"""
FLEETS = ("idle_s: 120", "idle_s: 1800", "min_nodes: 20")


@cache
def data_set(job_id: str) -> int:
    """By Zipf's law: the first is read by a third of the jobs, the last by a few."""
    (found,) = Random(f"set {job_id}").choices(range(SETS), [1 / (n + 1) for n in range(SETS)])
    return found


class Placed(World):
    """A replay that notes how long each job's data set takes from its start on.

    `is_near`: jobs are moved to nodes that have it.
    """

    def __init__(self, trace: Trace, cluster: Cluster, *, is_near: bool) -> None:
        super().__init__(trace.jobs, cluster, Setting(boot_s=BOOT_S), Tidegate())
        self._is_near = is_near
        self._ready_s: dict[tuple[str, int], float] = {}
        self.starts = self.moved = 0
        self.loading_s = 0.0

    def _start(self, run: Run, machines: tuple[Machine, ...]) -> None:
        if self._is_near and len(machines) == 1:
            machines = (self._nearest(run, machines[0]),)
        self.starts += 1
        self.loading_s += max(self._left_s(run, each) for each in machines)
        super()._start(run, machines)

    def _nearest(self, run: Run, chosen: Machine) -> Machine:
        """Where least is left to load of those with room, if the chosen one has none of it."""
        if self._there_s(run, chosen) is not None:
            return chosen
        found = {
            each: there_s
            for each in self.machines.values()
            if each.takes_jobs and not each.gated_for and each.room(run.pending.shape)
            if (there_s := self._there_s(run, each)) is not None
        }
        if not found:
            return chosen
        self.moved += 1
        return min(found, key=lambda each: (found[each], each.name))

    def _there_s(self, run: Run, machine: Machine) -> float | None:
        return self._ready_s.get((machine.name, data_set(run.job.job_id)))

    def _left_s(self, run: Run, machine: Machine) -> float:
        """How long the job's data set still takes there."""
        if (ready_s := self._there_s(run, machine)) is None:
            is_first = not any(name == machine.name for name, _ in self._ready_s)
            began_s = machine.joins_s - EARLY_S if is_first else self.now_s
            ready_s = began_s + LOAD_S
            self._ready_s[machine.name, data_set(run.job.job_id)] = ready_s
        return max(ready_s - self.now_s, 0.0)


def cells(trace: Trace, fleet: str) -> Iterator[str]:
    cluster = parse_cluster(CLUSTER.format(fleet=fleet), "bench").cluster
    plain, near = (Placed(trace, cluster, is_near=is_near) for is_near in (False, True))
    for each in (plain, near):
        each.play()
    yield f"{near.starts}"
    yield f"{100 * near.moved / near.starts:.1f} %"
    yield f"{plain.loading_s / plain.starts:.0f} s"
    yield f"{near.loading_s / near.starts:.0f} s"
    yield f"{100 * (_hours(near) / _hours(plain) - 1):+.1f} %"


def _hours(world: World) -> float:
    return sum((each.ended_s or world.now_s) - each.launched_s for each in world.gone) / 3600


def main(folder: Path, names: list[str]) -> None:
    print("| history | fleet | starts | moved | loading, a job | if moved | node-hours |")
    print("|---|---|---|---|---|---|---|")
    for name in names or HISTORIES:
        packed = (folder / f"{HISTORIES[name]}.csv.gz").read_bytes()
        trace = read_trace(gzip.decompress(packed).decode())
        for fleet in FLEETS:
            print(f"| {' | '.join((name, fleet, *cells(trace, fleet)))} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
