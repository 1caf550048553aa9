"""How long a plan takes, how much memory, and how near it comes to the lowest price.

Each case runs in a process of its own, so that the peak memory is its own. CPU time, median
of five: a plan does nothing but compute, so that is what it takes on a core without neighbours.
"""

import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bench.figures import Figure
from bench.workload import Case, snapshot
from lambdas import collect_rarely
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

ROUNDS = 5

# No plan of a benchmark is cut: all of the queue is planned at once.
UNCUT = sys.maxsize

CASES = {
    "small": Case("1,000 jobs, 60 shapes x 400 types", 1_000, 60, 400),
    "wide": Case(
        "20,000 jobs, 2,000 shapes x 400 types x 10 pools x 3 zones x 3 markets",
        20_000,
        2_000,
        400,
        pools=10,
        zones=3,
        is_reserving=True,
    ),
    "long": Case("100,000 jobs in 500 shapes, 2,000 live nodes", 100_000, 500, 400, nodes=2_000),
    "growth-5": Case("5,000 jobs, 500 shapes", 5_000, 500, 400),
    "cpu-heavy": Case(
        "20,000 jobs, 500 shapes, 1 in 10 with GPUs", 20_000, 500, 400, gpu_share=0.1
    ),
    "cpu-only": Case("20,000 jobs, 500 shapes, none with GPUs", 20_000, 500, 100, gpu_share=0.0),
    "growth-20": Case("20,000 jobs, 500 shapes", 20_000, 500, 400),
}
BOUNDS = {"small": (0.05, math.inf), "wide": (1.5, 256.0), "long": (1.0, 256.0)}
PRICED = ("small", "wide", "long", "cpu-heavy", "cpu-only")


@dataclass(frozen=True, slots=True)
class Measured:
    cpu_s: float
    peak_mib: float


def measure(name: str) -> Measured:
    """One case in a new process."""
    command = [sys.executable, "-m", "bench.planner", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Measured(*json.loads(done.stdout))


def figures() -> Iterator[Figure]:
    measured = {name: measure(name) for name in (*BOUNDS, "growth-5", "growth-20")}
    for name, (most_s, most_mib) in BOUNDS.items():
        yield Figure(CASES[name].name, round(measured[name].cpu_s, 3), "s", most_s)
        if most_mib < math.inf:
            label = f"{CASES[name].name}: peak memory"
            yield Figure(label, round(measured[name].peak_mib, 1), "MiB", most_mib)
    times = measured["growth-20"].cpu_s / measured["growth-5"].cpu_s
    yield Figure("5,000 to 20,000 jobs of 500 shapes: times longer", round(times, 2), "", 4.0)
    yield from prices()


def prices() -> Iterator[Figure]:
    """The plans' prices as multiples of the lower bound."""
    from bench.quality import lower_bound

    for name in PRICED:
        seen = snapshot(replace(CASES[name], nodes=0, is_reserving=False))
        bound = lower_bound(seen)
        price = plan(seen, launches_max=UNCUT).usd_per_hour / bound.usd_per_hour
        allowed = bound.allowed_usd_per_hour / bound.usd_per_hour
        label = f"{seen_as(CASES[name])}: price over LP bound"
        yield Figure(label, round(price, 4), "x", round(allowed, 4))


def seen_as(case: Case) -> str:
    """The case without what its price does not depend on."""
    share = "" if case.gpu_share == 0.5 else f", {case.gpu_share:.0%} of them with GPUs"
    return f"{case.jobs:,} jobs, {case.shapes:,} shapes{share}"


def _cpu_s(snapshot: Snapshot) -> float:
    began_s = time.process_time()
    made = plan(snapshot, launches_max=UNCUT)
    took_s = time.process_time() - began_s
    assert made.served, "a benchmark that serves nobody measures nothing"
    return took_s


def main() -> None:
    collect_rarely()  # as the planner's function does
    seen = snapshot(CASES[sys.argv[1]])
    cpu_s = statistics.median(_cpu_s(seen) for _ in range(ROUNDS))
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([cpu_s, peak_mib]))


if __name__ == "__main__":
    main()
