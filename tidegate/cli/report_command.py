"""`tidegate report`: a page of what the last days cost, whose jobs that was, and who waited."""

from pathlib import Path
from typing import Annotated

import typer

from tidegate.cli.options import ClusterOption
from tidegate.cli.written import new_file

EXAMPLES = (
    "Examples: tidegate report --out week.html --cluster dev.yaml;"
    " tidegate report --since 30d --out month.html;"
    " tidegate report --out - | aws s3 cp - s3://ours/week.html"
)
STDOUT = Path("-")


def report(
    context: typer.Context,
    cluster: ClusterOption,
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", callback=new_file, help="The page; -: standard output."),
    ],
    since: Annotated[
        str, typer.Option(metavar="MOMENT", help="A span back, or a day in UTC.")
    ] = "7d",
) -> None:
    """Write a page about the last days: cost, waits, changes.

    One HTML file without scripts or links: what they cost by day, user, account, partition, pool
    and job, how long jobs waited, and what changed since the days before.
    """
    import time

    from tidegate.cli.cost_by import since as moment_s
    from tidegate.cli.live import told
    from tidegate.cli.ran import ran, require_accounting
    from tidegate.core.explain.figures import figures
    from tidegate.core.explain.report_page import as_html
    from tidegate.wire.config import load_cluster

    with told():
        file = load_cluster(cluster)
        require_accounting(file)
        now_s = time.time()
        since_s = moment_s(since, now_s)
        before_s = since_s - (now_s - since_s)
        found = ran(file, before_s, context.obj)
    given = found.bills, found.runs, found.types
    now = figures(*given, since_s, found.until_s, found.idle)
    then = figures(*given, before_s, since_s, found.idle)
    page = as_html(file.cluster.name, now, then)
    if out == STDOUT:
        typer.echo(page, nl=False)
        return
    out.write_text(page, encoding="utf-8")
    typer.echo(f"{out}: {now.total_usd:,.2f} USD since {since}")
