"""The same jobs, each sent a little sooner or later.

Which jobs share a node, and so which node is bought, hangs on minutes that nobody could foretell: a
saving that is the small difference of two large sums is another one then.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

from tidegate.sim.advise.usage import Ran

MOVED_S = 60.0


def moved(runs: Sequence[Ran], move: int) -> list[Ran]:
    """The `move`-th of these histories; 0: as it was."""
    if not move:
        return list(runs)
    chance = random.Random(f"moved {move}")
    found = [
        replace(run, job=replace(run.job, submit_s=max(run.job.submit_s + by_s, 0.0)))
        for run in runs
        for by_s in [chance.uniform(-MOVED_S, MOVED_S)]
    ]
    return sorted(found, key=lambda run: (run.job.submit_s, run.job.job_id))
