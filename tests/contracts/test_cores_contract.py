"""What Slurm gives away of a node's CPUs, by what the node told of them (see slurmd.sh)."""

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own

BY_CORES = "CPUs=48 Boards=1 SocketsPerBoard=1 CoresPerSocket=24 ThreadsPerCore=2"


def allocated(slurm: RealSlurm, name: str) -> str:
    """CPUs that jobs have of the node, and all of them."""
    shown = slurm.run("scontrol", "-o", "show", "node", name).split()
    told = dict(word.split("=", 1) for word in shown if "=" in word)
    return f"{told['CPUAlloc']} of {told['CPUTot']}"


@pytest.mark.parametrize(
    ("cpus", "three", "four_cores"),
    [("CPUs=48", "3 of 48", "7 of 48"), (BY_CORES, "4 of 48", "12 of 48")],
    ids=["threads", "cores"],
)
def test_three_cpus_are_three_threads_or_two_cores(cpus: str, three: str, four_cores: str) -> None:
    """Nor does a job get cores of its own where the node does not tell of any."""
    with slurm_of_its_own() as slurm:
        slurm.join("n1", cpus=cpus)

        def given(*options: str) -> str:
            job = slurm.submit("--mem=100", *options)
            eventually("it runs", lambda: slurm.run("squeue", "-h", "-j", job, "-o", "%t") == "R")
            return allocated(slurm, "n1")

        assert given("-c3") == three
        assert given("-c4", "--threads-per-core=1") == four_cores
