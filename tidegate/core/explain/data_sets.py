"""What people hear of the data sets that a job names."""

from collections.abc import Iterator

from tidegate.core.demand.data_sets import data_sets
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot


def about_data_sets(job: Job, snapshot: Snapshot) -> Iterator[str]:
    """What its nodes load, and what is wrong with what it says."""
    found = data_sets(job, snapshot.cluster.prefetch)
    if found.places:
        yield f"its nodes load {', '.join(found.places)} beside their boot, or when it starts"
    yield from found.problems
