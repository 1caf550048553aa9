"""What one small simulated world costs under all checks: 10 ms are 100 seeds a second."""

import statistics
import time
from collections.abc import Iterator

from bench.figures import Figure
from tidegate.sim.draw import draw
from tidegate.sim.story import Story, many

ROUNDS = 5
SEEDS = 100
BOUND_MS = 10.0


def figures() -> Iterator[Figure]:
    """CPU time, median of five rounds; the worlds of all sizes are told, not judged."""
    for name, size, bound_ms in (("small worlds", "small", BOUND_MS), ("worlds", "", None)):
        took_s = statistics.median(_cpu_s(size) for _ in range(ROUNDS))
        took_ms = round(1000 * took_s / SEEDS, 2)
        yield Figure(f"{SEEDS} simulated {name}: CPU of each", took_ms, "ms", bound_ms)


def _cpu_s(size: str) -> float:
    began_s = time.process_time()
    with many():
        for seed in range(SEEDS):
            ended = Story(draw(seed, None, size)).play()
            assert ended.broken is None, ended.broken
    return time.process_time() - began_s
