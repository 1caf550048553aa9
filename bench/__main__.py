"""`make bench`: every figure as a table and in bench.json."""

from pathlib import Path

from bench import cold_start, interruption, planner, why
from bench.figures import table, write


def main() -> None:
    measured = [*planner.figures(), *cold_start.figures(), *interruption.figures(), *why.figures()]
    print(table(measured))
    write(measured, Path(__file__).parents[1] / "bench.json")


if __name__ == "__main__":
    main()
