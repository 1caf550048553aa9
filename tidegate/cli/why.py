"""`tidegate why JOBID`: one chain from Slurm's word to what the user could change."""

import re
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption

if TYPE_CHECKING:
    from tidegate.core.explain.answer import Answer
    from tidegate.wire.config import ClusterFile
    from tidegate.wiring.resources import Clients

# Beside 0, it runs or starts soon; 1, trouble; 2, a command that cannot be meant.
WAITS = 3
NOT_IN_QUEUE = 4

# An array's tasks that wait together stand in squeue in brackets, cut short with dots.
_JOB = re.compile(r"(\d{1,10})(_\d{1,10}|\+\d{1,5}|_\[[\d,:%.-]+\])?", re.ASCII)

EXAMPLES = "Examples: tidegate why 4711 --cluster dev.yaml; tidegate why 4711_3 --cluster dev.yaml"


def named_job(text: str) -> str | None:
    """The id to look for; of several tasks of an array the array's. None: it names no job."""
    found = _JOB.fullmatch(text)
    return (found[1] if text.endswith("]") else text) if found else None


def _job(text: str) -> str:
    """Errors: a usage error."""
    job = named_job(text)
    if job is None:
        raise typer.BadParameter(f"{text!r} is no job id: as squeue shows it, like 7, 7_3 or 7+1")
    return job


def why(
    context: typer.Context,
    job_id: Annotated[
        str,
        typer.Argument(metavar="JOBID", callback=_job, help="As squeue shows it: 7, 7_3 or 7+1."),
    ],
    cluster: ClusterOption,
    output: OutputOption = Output.TEXT,
) -> None:
    """Say why a job waits, and what would help.

    Exit codes: 0 it runs or starts soon, 3 it waits, 4 it is not in the queue, 1 trouble.
    """
    from tidegate.cli.live import told
    from tidegate.cli.shown import columns, encoded
    from tidegate.core.explain.answer import Status
    from tidegate.core.explain.chain import chain
    from tidegate.wire.config import load_cluster

    with told():
        found = answered(load_cluster(cluster), job_id, context.obj)
    if output.is_data:
        typer.echo(encoded(found, output))
    else:
        typer.echo(chain(found, columns(output)))
    codes = {Status.WAITING: WAITS, Status.UNKNOWN: NOT_IN_QUEUE}
    raise typer.Exit(codes.get(found.status, 0))


def answered(file: "ClusterFile", job_id: str, clients: "Clients | None" = None) -> "Answer":
    """Why the job waits. Errors: as `live`."""
    from tidegate.cli.live import live
    from tidegate.core.explain.answer import answer
    from tidegate.core.explain.mail import OwnerMails

    observed = live(file, clients)
    verdicts = observed.decisions.newest()
    owners = file.notifications.owners if file.notifications else None
    mails = OwnerMails(owners.sender, observed.told()) if owners else None
    return answer(job_id, observed.snapshot, verdicts, observed.unjudged(verdicts), mails)
