"""`make bench`: every figure as a table and in bench.json.

make bench TRACES=FOLDER     also what the public histories of that folder would cost
"""

import sys
from pathlib import Path

from bench import (
    calls,
    cold_start,
    goodput,
    interruption,
    interruption_real,
    interruption_storm,
    ledger,
    letting_go,
    planner,
    replay,
    resume,
    simulate,
    synthesis,
    why,
)
from bench.figures import table, write
from local.slurm.daemons import why_not_here


def main() -> None:
    parts = [planner, calls, ledger, cold_start, synthesis, interruption, resume, why, simulate]
    parts += [interruption_storm, goodput]
    if reason := why_not_here():
        print(f"nothing on real Slurm: {reason}")
    else:
        parts += [interruption_real, letting_go]
    measured = [figure for part in parts for figure in part.figures()]
    if folders := sys.argv[1:]:
        measured += replay.figures(Path(folders[0]))
    else:
        print("no replays: TRACES names no folder of public histories")
    print(table(measured))
    write(measured, Path(__file__).parents[1] / "bench.json")


if __name__ == "__main__":
    main()
