"""What nodes cost and who ran on them: the ledger's bill and the head's sacct."""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import typer

from tidegate.adapters.slurm_accounting import SACCT_S, SlurmAccounting
from tidegate.cli.cost_by import since as moment_s
from tidegate.cli.head import head_shell
from tidegate.cli.live import bills
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.errors import BadConfig
from tidegate.core.model.frozen import frozen
from tidegate.core.model.idle_use import IdleSpan
from tidegate.core.model.ledger import Bill
from tidegate.core.offers.allocation import Run
from tidegate.wire.catalogue import types_of
from tidegate.wire.config import ClusterFile
from tidegate.wiring.resources import Clients


@frozen
class Ran:
    """Lines of the bill and runs of jobs, until a moment in epoch seconds; both may begin before
    what was asked for. `types`: every instance type, by name. `idle`: what nodes
    without a job were for, as far as that is known.
    """

    bills: tuple[Bill, ...]
    runs: tuple[Run, ...]
    types: Mapping[str, InstanceType]
    until_s: float
    idle: tuple[IdleSpan, ...] = ()


def require_accounting(file: ClusterFile) -> None:
    """Errors: BadConfig, Slurm keeps none."""
    if not file.slurm.has_accounting:
        raise BadConfig(
            "who ran what is known by Slurm's accounting, which this cluster does not keep: add"
            " accounting: true to slurm; cost --spent tells what nodes have cost without it"
        )


def head_history(
    file: ClusterFile, since: str, columns: Sequence[str], clients: Clients | None = None
) -> str:
    """What the head's `sacct -P` prints of all jobs since then, steps too, under a first line with
    the columns' names. Errors: those of `ran`.
    """
    require_accounting(file)
    now_s = time.time()
    return _accounting(file, clients).history(moment_s(since, now_s), now_s, columns)


def _accounting(file: ClusterFile, clients: Clients | None) -> SlurmAccounting:
    if sys.stderr.isatty():
        typer.echo("asking the head who ran what ...", err=True)
    shell = replace(head_shell(file, clients), timeout_s=SACCT_S)
    return SlurmAccounting(shell, file.shared_dir)


def ran(file: ClusterFile, since_s: float, clients: Clients | None = None) -> Ran:
    """All since then. Errors: BadConfig, Throttled, NotAuthorized; SlurmUnavailable and Permanent
    of the head.
    """
    require_accounting(file)
    billed, until_s = bills(file, since_s, clients)
    found = _accounting(file, clients).accounted(since_s, until_s)
    return Ran(billed, found.runs, types_of(file.cluster), until_s, found.idle)
