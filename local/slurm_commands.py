"""Runs Slurm's client commands inside a machine, for whoever watches from outside."""

from collections.abc import Sequence
from dataclasses import dataclass

from local.machine import Machine
from tidegate.adapters.slurm_command import Finished

# What tidegate.adapters.slurm_cli relies on when it reads the output.
ENVIRONMENT = ("TZ=UTC", "LC_ALL=C", "SLURM_BITSTR_LEN=0")


@dataclass(frozen=True, slots=True)
class MachineRunner:
    """A `slurm_cli.Runner` for one machine."""

    machine: Machine

    def __call__(self, argv: Sequence[str], timeout_s: float) -> Finished:
        done = self.machine.run(["env", *ENVIRONMENT, *argv])
        return Finished(done.returncode, done.stdout, done.stderr)
