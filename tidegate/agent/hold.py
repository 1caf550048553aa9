"""Good nodes of jobs that lose others are kept for them: before Slurm requeues such a job."""

import logging
from collections.abc import Collection, Iterable

from tidegate.core.fleet.resume import holds
from tidegate.core.model.slurm import Job, Reading
from tidegate.ports.slurm import Slurm

logger = logging.getLogger(__name__)


def hold(
    jobs: Iterable[Job], going: Collection[str], reading: Reading, slurm: Slurm, now_s: float
) -> None:
    """Start no other job on what these jobs have beside the nodes that go.

    The planner opens them again: with the rest of the gang, or for everybody when the job needs
    them no more or the time is over. Errors: SlurmUnavailable.
    """
    for each in holds(jobs, reading.nodes, going, now_s):
        slurm.drain(each.names, str(each.reason))
        logger.info("%s are %s.", ", ".join(each.names), each.reason.sentence)
