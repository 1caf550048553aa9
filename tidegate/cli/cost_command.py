"""`tidegate cost`: what a synthesized cluster costs."""

from pathlib import Path
from typing import Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption

EXAMPLES = (
    "Examples: npx cdk synth --quiet, "
    "then tidegate cost --idle, or tidegate cost --busy 1000 -c dev.yaml"
)


def cost(
    cluster: ClusterOption,
    idle: Annotated[
        bool, typer.Option("--idle", help="With no job and no node; the head is up.")
    ] = False,
    busy: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="With N node launches a day, without the nodes."),
    ] = None,
    assembly: Annotated[Path, typer.Option(help="Where `cdk synth` wrote the templates.")] = Path(
        "cdk.out"
    ),
    output: OutputOption = Output.TEXT,
) -> None:
    """What the deployed cluster costs per month, by the templates that `cdk synth` wrote."""
    from rich.table import Table

    from tidegate.cli import cost as bills
    from tidegate.cli.cost import Part, bill, total
    from tidegate.cli.shown import console as shown_by
    from tidegate.cli.shown import encoded
    from tidegate.cli.templates import read_templates
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.catalogue import LIST_PRICE_REGION
    from tidegate.wire.config import load_cluster

    if idle == (busy is not None):
        raise typer.BadParameter(
            "nodes are paid by the hour; say --idle or --busy N for all the rest"
        )
    pace = bills.busy(busy) if busy else bills.IDLE
    told = f"{busy:,} node launches a day, without the nodes" if busy else "no job, no node"
    try:
        read = load_cluster(cluster)
        templates = list(read_templates(assembly, read.cluster.name).values())
        items = bill(read, templates, pace)
    except BadConfig as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
    if output.is_data:
        typer.echo(encoded(items, output))
        return
    console = shown_by(output)
    table = Table("", "", "USD a month", "", title=f"{read.cluster.name}, {told}")
    for part in Part:
        for item in (each for each in items if each.part is part):
            usd = "by use" if item.usd is None else f"{item.usd:.2f}"
            table.add_row(part.value, item.name, usd, item.how)
        table.add_row(part.value, "sum", f"{total(items, part):.2f}", "", style="bold")
    console.print(table)
    console.print(f"List prices of {LIST_PRICE_REGION}, November 2026, without a free tier.")
