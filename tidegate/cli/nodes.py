"""`tidegate nodes`: the life of each node, what it has cost, and what would end it."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = "Examples: tidegate nodes --cluster dev.yaml; tidegate nodes --pool t4 --cluster ..."


def nodes(
    context: typer.Context,
    cluster: Annotated[Path, typer.Option(metavar="FILE", help="The cluster file.")],
    pool: Annotated[str, typer.Option(help="Those of this pool only.")] = "",
    json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show each node that is paid for: stage, age, cost, what would end it, what holds it."""
    from tidegate.cli.live import live, told
    from tidegate.cli.shown import as_json, show, table
    from tidegate.core.durations import span
    from tidegate.core.lives import lives
    from tidegate.wire.config import load_cluster

    with told():
        file = load_cluster(cluster)
        if pool and file.cluster.pool(pool) is None:
            raise typer.BadParameter(f"the cluster file has no pool {pool}")
        seen = live(file, context.obj).snapshot
    found = [each for each in lives(seen) if pool in ("", each.pool)]
    if json:
        typer.echo(as_json(found))
        return
    made = table("node", "pool, offering", "stage", "age", "USD", "jobs", "ends when", "held by")
    for each in found:
        jobs = ", ".join(each.jobs[:3]) + (" ..." if len(each.jobs) > 3 else "")
        what = f"{each.pool}, {each.offering}"
        usd, age = f"{each.usd:.2f}", span(each.age_s)
        made.add_row(each.name, what, each.stage, age, usd, jobs, each.ends, each.held)
    show(made if found else "no nodes")
