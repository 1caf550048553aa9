"""`tidegate cost`: what a synthesized cluster costs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.cli.cost import Item

EXAMPLES = (
    "Examples: npx cdk synth --quiet, "
    "then tidegate cost --idle, or tidegate cost --busy 1000 -c dev.yaml; tidegate cost --spent"
)


def cost(
    context: typer.Context,
    cluster: ClusterOption,
    idle: Annotated[
        bool, typer.Option("--idle", help="With no job and no node; the head is up.")
    ] = False,
    busy: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="With N node launches a day, without the nodes."),
    ] = None,
    spent: Annotated[
        bool,
        typer.Option("--spent", help="What nodes have cost, by pool and account."),
    ] = False,
    assembly: Annotated[Path, typer.Option(help="Where `cdk synth` wrote the templates.")] = Path(
        "cdk.out"
    ),
    output: OutputOption = Output.TEXT,
) -> None:
    """What the deployed cluster costs per month, by the templates that `cdk synth` wrote; or what
    its nodes have cost.
    """
    from tidegate.cli import cost as bills
    from tidegate.cli.cost import bill
    from tidegate.cli.shown import encoded
    from tidegate.cli.templates import read_templates
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.config import load_cluster

    if idle + (busy is not None) + spent != 1:
        raise typer.BadParameter(
            "say --spent for what nodes have cost, --idle or --busy N for all the rest"
        )
    if spent:
        _show_spent(context, cluster, output)
        return
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
    _show_bill(f"{read.cluster.name}, {told}", items, output)


def _show_bill(title: str, items: "Sequence[Item]", output: Output) -> None:
    from rich.table import Table

    from tidegate.cli.cost import Part, total
    from tidegate.cli.shown import console as shown_by
    from tidegate.wire.catalogue import LIST_PRICE_REGION

    console = shown_by(output)
    table = Table("", "", "USD a month", "", title=title)
    for part in Part:
        for item in (each for each in items if each.part is part):
            usd = "by use" if item.usd is None else f"{item.usd:.2f}"
            table.add_row(part.value, item.name, usd, item.how)
        table.add_row(part.value, "sum", f"{total(items, part):.2f}", "", style="bold")
    console.print(table)
    console.print(f"List prices of {LIST_PRICE_REGION}, November 2026, without a free tier.")


def _show_spent(context: typer.Context, cluster: Path, output: Output) -> None:
    from tidegate.cli.live import live, told
    from tidegate.cli.shown import encoded, fit, show
    from tidegate.cli.spent import screen
    from tidegate.core.offers.spend import all_spent
    from tidegate.wire.config import load_cluster

    with told():
        snapshot = live(load_cluster(cluster), context.obj).snapshot
    found = all_spent(snapshot)
    if output.is_data:
        typer.echo(encoded(found, output))
        return
    show(fit(screen(found, snapshot.now_s)) if found else "no node has cost anything yet", output)
