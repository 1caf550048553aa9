"""How near a plan's price comes to a lower bound that no plan can beat.

The bound is a linear program: nodes may be bought in parts, and jobs split over nodes, as long
as GPUs, CPUs and memory of each type suffice for the jobs put on it. HiGHS solves it. A plan
may cost 3 % more, and one node for each shape, since a shape's last node is rarely full.
"""

from collections import Counter
from dataclasses import dataclass

import highspy
import numpy

from tidegate.core.demand.fit import lacks
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.slurm import Shape
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.catalogue import Vector, vector

FACTOR = 1.03

type Priced = tuple[InstanceType, float]


@dataclass(frozen=True, slots=True)
class Bound:
    """What a queue costs at least, and what one node for each shape costs."""

    usd_per_hour: float
    one_node_each_usd_per_hour: float

    @property
    def allowed_usd_per_hour(self) -> float:
        return FACTOR * self.usd_per_hour + self.one_node_each_usd_per_hour


def lower_bound(snapshot: Snapshot) -> Bound:
    """The bound for a cluster without nodes and limits, all of whose jobs take one node."""
    assert snapshot.digest is not None
    counts = Counter(job.shape for job in snapshot.digest.reading.jobs)
    priced = _priced(snapshot)
    each = sum(min(usd for kind, usd in priced if not lacks(shape, kind)) for shape in counts)
    return Bound(_solve(counts, _undominated(priced)), each)


def _priced(snapshot: Snapshot) -> list[Priced]:
    """Every type at the lowest price of any zone and market."""
    lowest: dict[InstanceType, float] = {}
    for pool in snapshot.cluster.pools:
        for kind, offering in pool.offerings():
            usd = snapshot.cluster.prices[offering]
            lowest[kind] = min(lowest.get(kind, usd), usd)
    return sorted(lowest.items(), key=lambda each: (each[1], each[0].name))


def _undominated(priced: list[Priced]) -> list[Priced]:
    """Without the types that a part of a larger one replaces for no more money."""
    kept: list[Priced] = []
    for each in sorted(priced, key=lambda e: (-e[0].gpus, -e[0].vcpus, -e[0].memory_mib, e[1])):
        if not any(_replaces(other, each) for other in kept):
            kept.append(each)
    return kept


def _replaces(other: Priced, each: Priced) -> bool:
    kind, large = each[0], other[0]
    if kind.gpus and kind.gpu_type != large.gpu_type:
        return False
    times = min(has / asked for has, asked in zip(_size(large), _size(kind), strict=True) if asked)
    return times >= 1 and other[1] / times <= each[1]


def _size(kind: InstanceType) -> Vector:
    return kind.gpus, kind.vcpus, kind.slurm_memory_mib


def _solve(counts: Counter[Shape], priced: list[Priced]) -> float:
    """Columns: nodes of each type, then jobs of each shape on each type that holds one."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    infinity = highspy.kHighsInf
    for _ in range(3 * len(priced)):
        solver.addRow(0.0, infinity, 0, numpy.array([], int), numpy.array([], float))
    for number, (kind, usd) in enumerate(priced):
        rows = numpy.array([3 * number + d for d in range(3)])
        solver.addCol(usd, 0.0, infinity, 3, rows, numpy.array(_size(kind), float))
    row = 3 * len(priced)
    for shape, count in counts.items():
        solver.addRow(float(count), float(count), 0, numpy.array([], int), numpy.array([], float))
        for number, (kind, _) in enumerate(priced):
            if not lacks(shape, kind):
                rows = numpy.array([*(3 * number + d for d in range(3)), row])
                takes = numpy.array([*(-float(v) for v in vector(shape)), 1.0])
                solver.addCol(0.0, 0.0, infinity, 4, rows, takes)
        row += 1
    solver.run()
    return float(solver.getObjectiveValue())
