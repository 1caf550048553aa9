#!/usr/bin/env python3
"""A stand-in for a training: counts steps, keeps a checkpoint, and goes on from it.

One process per node, by srun. The first one writes the checkpoint after each step and with it the
step into the heartbeat, as it does when it goes on; the others compute as long as it does. Nothing
but Python is needed: where a framework trains, `load` and `save` are its own.
"""

import argparse
import os
import time
from pathlib import Path


def load(checkpoint: Path) -> int:
    """The number of steps that are done."""
    return int(checkpoint.read_text()) if checkpoint.exists() else 0


def save(checkpoint: Path, step: int) -> None:
    """Whole or not at all: whoever dies in between leaves the one before."""
    written = checkpoint.with_suffix(".new")
    written.write_text(f"{step}\n")
    written.rename(checkpoint)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--heartbeat", type=Path, required=True, help="says the step")
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--step-seconds", type=float, default=1.0)
    given = parser.parse_args()
    rank = int(os.environ.get("SLURM_PROCID", "0"))
    nodes, restarts = os.environ.get("SLURM_JOB_NODELIST"), os.environ.get("SLURM_RESTART_COUNT", 0)
    done = load(given.checkpoint)
    if rank == 0:
        print(f"run {restarts} on {nodes}: goes on at step {done}", flush=True)
        given.heartbeat.write_text(f"step {done}\n")
    for step in range(done + 1, given.steps + 1):
        time.sleep(given.step_seconds)  # forward, backward, all-reduce
        if rank == 0:
            save(given.checkpoint, step)
            given.heartbeat.write_text(f"step {step}\n")


if __name__ == "__main__":
    main()
