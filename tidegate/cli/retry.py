"""`tidegate retry`: what a pool may not ask of EC2 for a while, or let go, it may at once."""

from typing import Annotated

import typer

from tidegate.cli.options import ClusterOption, require_pool

EXAMPLES = "Examples: tidegate retry t4 --cluster dev.yaml"


def retry(
    context: typer.Context,
    pool: Annotated[str, typer.Argument(metavar="POOL", help="A pool of the cluster file.")],
    cluster: ClusterOption,
) -> None:
    """Let a pool try again what EC2 refused it.

    For when the cause was put right: its rests are lifted. Checks of node health that are believed
    no more are believed again: nodes that they have drained until now go. A
    template that was given up is rolled out once more.
    """
    from tidegate.cli.live import retried, told
    from tidegate.core.model.resting import BOOT_FAILURES
    from tidegate.wire.config import load_cluster

    with told():
        file = load_cluster(cluster)
        require_pool(file, pool)
        found = retried(file, pool, context.obj)
        for each in found.lifted:
            did = "failed" if each.code in BOOT_FAILURES else "was refused"
            typer.echo(f"{each.offering} rests no more (it {did} {each.failures}x)")
        if found.failures:
            typer.echo(f"{found.failures} launches that gave no good node count no more")
        for check in found.checks:
            typer.echo(f"the check `{check}` is believed again: nodes that it still drains go")
        if found.is_tested_anew:
            typer.echo("the check of idle nodes, which did not run, is tried once more")
        if found.template:
            typer.echo(f"template {found.template} was given up and is tried once more")
        said = "EC2 is asked at once" if found.is_any else "nothing of it rests"
        typer.echo(f"pool {pool}: {said}")
