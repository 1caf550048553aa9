"""`make bench`: every figure as a table and in bench.json."""

from pathlib import Path

from bench import cold_start, interruption, planner, simulate, why
from bench.figures import table, write


def main() -> None:
    parts = (planner, cold_start, interruption, why, simulate)
    measured = [figure for part in parts for figure in part.figures()]
    print(table(measured))
    write(measured, Path(__file__).parents[1] / "bench.json")


if __name__ == "__main__":
    main()
