"""docs/cli_filter.lua on real Slurm: `--signal` on sbatch's command line becomes our comment."""

from ctypes.util import find_library
from pathlib import Path

import pytest

from tests.contracts.real_slurm import slurm_of_its_own
from tidegate.core.interruption.save import checkpoint

FILTER = Path("docs/cli_filter.lua")


def test_what_the_command_line_asks_is_in_the_comment() -> None:
    if not find_library("lua5.1"):
        pytest.skip("real path: needs liblua5.1")
    with slurm_of_its_own("CliFilterPlugins=lua") as slurm:
        copy = slurm.folder / FILTER.name
        copy.write_text(FILTER.read_text())
        slurm.run("cp", str(copy), "/etc/slurm/cli_filter.lua")
        asked = {
            slurm.submit(*options): expected
            for options, expected in [
                (("--signal=B:USR1@90",), ("B:USR1", 90.0)),
                (("--signal=USR2", "--comment=mine"), ("S:USR2", 60.0)),
                (("--signal=B:USR1@9", "--comment=tidegate:ckpt=TERM@5"), ("TERM", 5.0)),
                ((), None),
            ]
        }

        jobs = {job.job_id: job for job in slurm.port.read().jobs}

        for job_id, expected in asked.items():
            request = checkpoint(jobs[job_id])
            assert (request and (request.signal, request.grace_s)) == expected
        assert any(job.comment.startswith("mine ") for job in jobs.values())
