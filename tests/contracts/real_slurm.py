"""Real Slurm for tests."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from local.slurm.daemons import RealSlurm, started_slurm, why_not_here


@contextmanager
def slurm_of_its_own(*extra_conf: str) -> Iterator[RealSlurm]:
    """A slurmctld for a test; skips it where none can run."""
    if reason := why_not_here():
        pytest.skip(reason)
    with started_slurm(*extra_conf) as slurm:
        yield slurm
