"""`tidegate drill`: a loss is played on this computer, and what comes back is measured."""

import typer

from tidegate.cli.options import Output, OutputOption

RESTORE_EXAMPLES = (
    "Examples: sudo .venv/bin/tidegate drill restore; ... -o json. Exit codes: 0 all came back that"
    " should, 1 not, 2 it cannot be played here."
)

drill = typer.Typer(no_args_is_help=True, help="Losses, played on this computer and measured.")


@drill.callback()
def losses() -> None:
    """Losses, played on this computer and measured."""


def restore(output: OutputOption = Output.TEXT) -> None:
    """Lose the head of a cluster on this computer, then its data volume, and measure how long it
    takes until all is back (RTO), and how old what is lost was (RPO).
    """
    from tidegate.cli.local_cloud import become

    become("local.drill", ["--output", output.value], called="drill restore")
