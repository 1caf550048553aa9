"""`tidegate node log NAME`: how a node's boot went, told by its console."""

from typing import Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption

EXAMPLES = "Examples: tidegate node log i-0123456789abcdef0 --cluster dev.yaml; ... --all"

node = typer.Typer(help="One node.", no_args_is_help=True)


@node.callback()
def _of_one_node() -> None:
    """One node."""


@node.command(epilog=EXAMPLES)
def log(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="As Slurm and EC2 call it: i-...")],
    cluster: ClusterOption,
    everything: Annotated[bool, typer.Option("--all", help="The kernel's lines too.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show the stages of a node's boot and their times, also of a node that has just ended.

    Exit codes: 0, 1 trouble, 3 the node has said nothing yet.
    """
    from tidegate.adapters.clients import client
    from tidegate.adapters.console import console_text
    from tidegate.cli.live import told
    from tidegate.cli.shown import encoded
    from tidegate.wire.config import load_cluster
    from tidegate.wire.console import boot_lines

    with told():
        file = load_cluster(cluster)
        make = context.obj or (lambda service: client(service, file.region))
        text = console_text(make("ec2"), name)
    lines = list(boot_lines(text))
    if output.is_data:
        typer.echo(encoded(lines, output))
    elif everything:
        typer.echo(text)
    else:
        for each in lines:
            typer.echo(str(each))
    if not lines:
        typer.echo(f"{name} has said nothing of its boot yet; its console lags a little", err=True)
        raise typer.Exit(code=3)
