"""`tidegate cost`: what a cluster costs, and what it was spent on."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.cli.cost import Item
    from tidegate.cli.cost_by import Spent

EXAMPLES = (
    "Examples: npx cdk synth --quiet, "
    "then tidegate cost --idle, or tidegate cost --busy 1000 -c dev.yaml; tidegate cost --spent;"
    " tidegate cost --by user --since 30d"
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
    by: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="What jobs have cost: by job, user, account, partition, pool, type or day.",
        ),
    ] = "",
    since: Annotated[
        str, typer.Option(metavar="MOMENT", help="With --by: a span back, or a day in UTC.")
    ] = "7d",
    is_csv: Annotated[bool, typer.Option("--csv", help="With --by: as CSV.")] = False,
    assembly: Annotated[Path, typer.Option(help="Where `cdk synth` wrote the templates.")] = Path(
        "cdk.out"
    ),
    output: OutputOption = Output.TEXT,
) -> None:
    """What the deployed cluster costs per month, by the templates that `cdk synth` wrote; or what
    its nodes have cost, and whose jobs that was.
    """
    from tidegate.cli import cost as bills
    from tidegate.cli.cost import bill
    from tidegate.cli.templates import read_templates
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.config import load_cluster

    if idle + (busy is not None) + spent + bool(by) != 1:
        raise typer.BadParameter(
            "say --spent for what nodes have cost, --by WHAT for whose jobs that was, --idle or"
            " --busy N for all the rest"
        )
    if by:
        _show_by(context, cluster, by, since, is_csv=is_csv, output=output)
        return
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
    _show_bill(f"{read.cluster.name}, {told}", items, output)


def _show_bill(title: str, items: "Sequence[Item]", output: Output) -> None:
    from rich.table import Table

    from tidegate.cli.cost import Part, total
    from tidegate.cli.shown import console as shown_by
    from tidegate.cli.shown import encoded
    from tidegate.wire.catalogue import LIST_PRICE_REGION

    if output.is_data:
        typer.echo(encoded(items, output))
        return
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


def _show_by(
    context: typer.Context, cluster: Path, by: str, since: str, *, is_csv: bool, output: Output
) -> None:
    import json

    from tidegate.cli.cost_by import as_csv, as_data, screen
    from tidegate.cli.live import told
    from tidegate.cli.shown import fit, in_format, show
    from tidegate.core.offers.allocation import BY

    if by not in BY:
        raise typer.BadParameter(f"--by {by}: it is one of {', '.join(BY)}")
    with told():
        found = _spent_by(context, cluster, by, since)
    if is_csv:
        typer.echo(as_csv(found), nl=False)
    elif output.is_data:
        typer.echo(in_format(json.dumps(as_data(found), indent=2), output))
    else:
        show(fit(screen(found)) if found.rows else "no node has cost anything since then", output)


def _spent_by(context: typer.Context, cluster: Path, by: str, since: str) -> "Spent":
    """Errors: those of `ran`."""
    import time

    from tidegate.cli.cost_by import Spent
    from tidegate.cli.cost_by import since as moment_s
    from tidegate.cli.ran import ran, require_accounting
    from tidegate.core.offers.allocation import allocated, rows
    from tidegate.wire.config import load_cluster

    file = load_cluster(cluster)
    require_accounting(file)
    since_s = moment_s(since, time.time())
    found = ran(file, since_s, context.obj)
    shares = allocated(found.bills, found.runs, found.types, since_s, found.until_s)
    return Spent(file.cluster.name, by, since_s, found.until_s, rows(shares, by))
