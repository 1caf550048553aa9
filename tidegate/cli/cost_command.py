"""`tidegate cost`: what a cluster costs, and what it was spent on."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.cli.cost import Item
    from tidegate.cli.cost_by import Spent
    from tidegate.core.offers.allocation import Share
    from tidegate.core.offers.plan_use import PlanUse
    from tidegate.wire.config import ClusterFile
    from tidegate.wiring.resources import Clients

EXAMPLES = (
    "Examples: npx cdk synth --quiet, "
    "then tidegate cost --idle, or tidegate cost --busy 1000 -c dev.yaml; tidegate cost --spent;"
    " tidegate cost --by user --since 30d; tidegate cost --focus --since 30d > focus.csv;"
    " tidegate cost --reconcile report-00001.csv.gz"
)


IdleOption = Annotated[
    bool, typer.Option("--idle", help="With no job and no node; the head is up.")
]
BusyOption = Annotated[
    int | None,
    typer.Option(
        min=1, max=10**9, metavar="N", help="With N node launches a day, without the nodes."
    ),
]
SpentOption = Annotated[
    bool, typer.Option("--spent", help="What nodes have cost, by pool and account.")
]
ByOption = Annotated[
    str,
    typer.Option(
        metavar="WHAT",
        help="What jobs have cost: by job, user, account, partition, pool, type or day.",
    ),
]
FocusOption = Annotated[
    bool,
    typer.Option("--focus", help="The same as CSV of FOCUS 1.2, a row for each node, job and day."),
]
ReconcileOption = Annotated[
    list[Path],
    typer.Option(
        metavar="FILE",
        help="Beside AWS's Cost and Usage Report, a file of CSV; several times for several.",
    ),
]
SinceOption = Annotated[
    str, typer.Option(metavar="MOMENT", help="With --by, --focus: a span back, or a day in UTC.")
]
CsvOption = Annotated[bool, typer.Option("--csv", help="With --by: as CSV.")]
AssemblyOption = Annotated[Path, typer.Option(help="Where `cdk synth` wrote the templates.")]


def cost(
    context: typer.Context,
    cluster: ClusterOption,
    idle: IdleOption = False,
    busy: BusyOption = None,
    spent: SpentOption = False,
    by: ByOption = "",
    focus: FocusOption = False,
    reconcile: ReconcileOption = [],  # noqa: B006
    since: SinceOption = "7d",
    is_csv: CsvOption = False,
    assembly: AssemblyOption = Path("cdk.out"),
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what the cluster costs, or what its nodes have cost.

    --idle and --busy: a month of it, by the templates that `cdk synth` wrote. --spent and --by:
    what nodes have cost, and whose jobs that was. --reconcile: what AWS says of it.
    Exit code 3 when AWS charges for nodes that the ledger does not know.
    """
    if idle + (busy is not None) + spent + bool(by) + focus + bool(reconcile) != 1:
        raise typer.BadParameter(
            "say --spent for what nodes have cost, --by WHAT or --focus for whose jobs that was,"
            " --reconcile FILE for what AWS's report says, --idle or --busy N for all the rest"
        )
    if by:
        _show_by(context, cluster, by, since, is_csv=is_csv, output=output)
    elif focus:
        _show_focus(context, cluster, since)
    elif reconcile:
        _show_reconciled(context, cluster, reconcile, output)
    elif spent:
        _show_spent(context, cluster, output)
    else:
        _show_rest(cluster, busy, assembly, output)


def _show_rest(cluster: Path, busy: int | None, assembly: Path, output: Output) -> None:
    from tidegate.cli import cost as bills
    from tidegate.cli.live import told
    from tidegate.cli.templates import read_templates
    from tidegate.wire.config import load_cluster

    pace = bills.busy(busy) if busy else bills.IDLE
    said = f"{busy:,} node launches a day, without the nodes" if busy else "no job, no node"
    with told():
        read = load_cluster(cluster)
        templates = list(read_templates(assembly, read.cluster.name).values())
        items = bills.bill(read, templates, pace)
    _show_bill(f"{read.cluster.name}, {said}", items, output)


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

    from tidegate.cli.cost_by import as_csv, as_data, of_plans, screen
    from tidegate.cli.live import told
    from tidegate.cli.shown import fit, in_format, show
    from tidegate.wire.config import load_cluster

    with told():
        found = spent_by(load_cluster(cluster), by, since, context.obj)
    if is_csv:
        typer.echo(as_csv(found), nl=False)
    elif output.is_data:
        typer.echo(in_format(json.dumps(as_data(found), indent=2), output))
    else:
        show(fit(screen(found)) if found.rows else "no node has cost anything since then", output)
        for each in of_plans(found):
            typer.echo(each)


def _show_focus(context: typer.Context, cluster: Path, since: str) -> None:
    from tidegate.adapters.person import account_arn
    from tidegate.adapters.regions import region_name
    from tidegate.cli.focus import Payer, as_focus
    from tidegate.cli.live import clients_of, told
    from tidegate.wire.config import load_cluster

    with told():
        file = load_cluster(cluster)
        _, shares, uses = _shares(file, since, context.obj)
        account = account_arn(clients_of(file, context.obj)("sts"))
    kinds = {each.arn: each.kind for each in file.cluster.savings_plans}
    payer = Payer(file.cluster.name, account, file.region, region_name(file.region), kinds)
    typer.echo(as_focus(shares, payer, uses), nl=False)


def _show_reconciled(
    context: typer.Context, cluster: Path, report: list[Path], output: Output
) -> None:
    import json

    from tidegate.cli.live import told
    from tidegate.cli.reconcile import as_data, compared, remarks, screen
    from tidegate.cli.shown import fit, in_format, show
    from tidegate.wire.config import load_cluster

    with told():
        found = compared(load_cluster(cluster), report, context.obj)
    if output.is_data:
        typer.echo(in_format(json.dumps(as_data(found), indent=2), output))
    else:
        show(fit(screen(found)), output)
        for each in remarks(found):
            typer.echo(f"! {each}")
    if found.only_aws:
        raise typer.Exit(3)


def spent_by(file: "ClusterFile", by: str, since: str, clients: "Clients | None" = None) -> "Spent":
    """What jobs have cost. Errors: those of `ran`; a usage error for an unknown `by`."""
    from tidegate.cli.cost_by import Spent
    from tidegate.core.offers.allocation import BY, rows

    if by not in BY:
        raise typer.BadParameter(f"--by {by}: it is one of {', '.join(BY)}")
    span, shares, uses = _shares(file, since, clients)
    return Spent(file.cluster.name, by, *span, rows(shares, by), uses)


def _shares(
    file: "ClusterFile", since: str, clients: "Clients | None"
) -> "tuple[tuple[float, float], Iterator[Share], tuple[PlanUse, ...]]":
    """The shares of what was billed since then, and between which moments; and what was used of
    Savings Plans. Errors: as `ran`.
    """
    import time

    from tidegate.cli.cost_by import since as moment_s
    from tidegate.cli.ran import ran, require_accounting
    from tidegate.core.offers.allocation import allocated
    from tidegate.core.offers.plan_use import plan_use

    require_accounting(file)
    since_s = moment_s(since, time.time())
    found = ran(file, since_s, clients)
    given = found.bills, found.runs, found.types
    shares = allocated(*given, since_s, found.until_s, found.idle)
    uses = plan_use(file.cluster.savings_plans, found.bills, since_s, found.until_s)
    return (since_s, found.until_s), shares, uses
