"""`make bench`: every figure as a table and in bench.json."""

from pathlib import Path

from bench import (
    cold_start,
    interruption,
    interruption_real,
    interruption_storm,
    planner,
    simulate,
    synthesis,
    why,
)
from bench.figures import table, write
from tests.contracts.real_slurm import why_not_here


def main() -> None:
    parts = [planner, cold_start, synthesis, interruption, why, simulate, interruption_storm]
    if reason := why_not_here():
        print(f"no interruptions on real Slurm: {reason}")
    else:
        parts.append(interruption_real)
    measured = [figure for part in parts for figure in part.figures()]
    print(table(measured))
    write(measured, Path(__file__).parents[1] / "bench.json")


if __name__ == "__main__":
    main()
