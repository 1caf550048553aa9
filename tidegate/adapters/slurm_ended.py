"""Jobs that ended lately, as squeue shows them for as long as slurmctld remembers them.

Source: squeue(1), `--states` and `--format`; slurm.conf(5): `MinJobAge` is 300 s by default.
Verified on Slurm 22.05: node lists are folded, and stay after the job's end.
"""

from collections.abc import Callable, Sequence

from tidegate.adapters.slurm_text import ParseError, instant_s, words
from tidegate.core.model.ended import EndedJob

# Not CANCELLED and TIMEOUT, which users do on purpose, nor NODE_FAIL and PREEMPTED, which are
# done to jobs.
FAILED = frozenset({"FAILED", "OUT_OF_MEMORY", "BOOT_FAIL"})
STATES = ("COMPLETED", *sorted(FAILED))
COLUMNS = ("%i", "%T", "%e", "%N")
COMMAND = ("squeue", "-h", "-a", "-t", ",".join(STATES), "-o", "|".join(COLUMNS))

# Enough to judge by; a cluster may end thousands within `MinJobAge`.
ENDED_MAX = 500

type Unfold = Callable[[Sequence[str]], dict[str, tuple[str, ...]]]


def parse(text: str, unfold: Unfold) -> tuple[EndedJob, ...]:
    """The newest of what `COMMAND` prints; what cannot be read is left out."""
    rows = [row for line in text.splitlines() if len(row := line.split("|")) == len(COLUMNS)]
    found = sorted(
        (
            (at_s, job_id, state, listed)
            for job_id, state, end, listed in rows
            if (at_s := _at(end))
        ),
        reverse=True,
    )[:ENDED_MAX]
    unfolded = unfold([listed for *_, listed in found if "[" in listed])
    return tuple(
        EndedJob(job_id, unfolded.get(listed) or words(listed), at_s, state in FAILED)
        for at_s, job_id, state, listed in found
    )


def _at(text: str) -> float:
    try:
        return instant_s(text) or 0.0
    except ParseError:
        return 0.0
