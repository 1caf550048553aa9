"""`tidegate rollout`: how far a new template has come, and a person's word about it."""

from typing import TYPE_CHECKING, Annotated, Never

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption, require_pool

if TYPE_CHECKING:
    from tidegate.core.explain.rollouts import RolloutNow
    from tidegate.core.model.rollout import Rollout, RolloutCode

STATUS_EXAMPLES = "Examples: tidegate rollout status --cluster dev.yaml; ... -o json"
PAUSE_EXAMPLES = (
    "Examples: tidegate rollout pause t4 --cluster dev.yaml; tidegate rollout resume t4"
)
ABORT_EXAMPLES = (
    "Examples: tidegate rollout abort t4 --cluster dev.yaml; tidegate rollout finish t4"
)

HEADS = ("pool", "deployed", "others", "state", "nodes", "may be", "jobs failed", "")

rollout = typer.Typer(
    no_args_is_help=True, help="New images and settings: on two nodes, on every tenth, on all."
)

PoolArgument = Annotated[str, typer.Argument(metavar="POOL", help="A pool of the cluster file.")]


def status(
    context: typer.Context, cluster: ClusterOption, output: OutputOption = Output.TEXT
) -> None:
    """Show what each pool makes its nodes from, and how far what was deployed last has come."""
    from tidegate.cli.live import live, told
    from tidegate.cli.shown import encoded, fit, show, table
    from tidegate.core.explain.rollouts import rollouts
    from tidegate.wire.config import load_cluster

    with told():
        found = list(rollouts(live(load_cluster(cluster), context.obj).snapshot))
    if output.is_data:
        typer.echo(encoded(found, output))
        return
    made = table(*HEADS)
    for each in found:
        made.add_row(*_row(each))
    show(fit(made), output)


def _row(now: "RolloutNow") -> tuple[str, ...]:
    most = "all" if now.most is None else str(now.most)
    jobs = f"{now.failed_jobs} of {now.jobs}"
    nodes = f"{now.nodes} of {now.of}"
    return now.pool, now.template, now.good, now.state, nodes, most, jobs, now.sentence


def pause(context: typer.Context, pool: PoolArgument, cluster: ClusterOption) -> None:
    """Make no more nodes from the new template; those that are made from it go on."""
    from tidegate.core.model.rollout import RolloutCode

    found = _ask(context, pool, cluster, RolloutCode.PAUSED)
    typer.echo(f"pool {pool}: no more nodes are made from template {found.template.digest}")


def resume(context: typer.Context, pool: PoolArgument, cluster: ClusterOption) -> None:
    """Go on with a roll-out that was paused, from the step that it had come to."""
    from tidegate.core.model.rollout import RolloutCode

    found = _ask(context, pool, cluster, RolloutCode.RESUMED)
    typer.echo(f"pool {pool}: template {found.template.digest} is rolled out again")


def abort(context: typer.Context, pool: PoolArgument, cluster: ClusterOption) -> None:
    """Give the new template up: its nodes go once their jobs have ended, others come instead."""
    from tidegate.core.model.rollout import RolloutCode

    found = _ask(context, pool, cluster, RolloutCode.ABORTED)
    typer.echo(
        f"pool {pool}: template {found.template.digest} is given up, its nodes go once their jobs "
        f"have ended; to have it tried again: tidegate retry {pool}"
    )


def finish(context: typer.Context, pool: PoolArgument, cluster: ClusterOption) -> None:
    """Take the new template for good without more waiting: all nodes go over to it at once."""
    from tidegate.core.model.rollout import RolloutCode

    found = _ask(context, pool, cluster, RolloutCode.DONE)
    typer.echo(f"pool {pool}: all new nodes are made from template {found.template.digest}")


def _ask(
    context: typer.Context, pool: str, cluster: ClusterOption, asks: "RolloutCode"
) -> "Rollout":
    """Errors: typer.BadParameter for no pool; exit code 1 where there is nothing to ask for."""
    from tidegate.cli.live import ask_rollout, told
    from tidegate.wire.config import load_cluster

    with told():
        file = load_cluster(cluster)
        require_pool(file, pool)
        found = ask_rollout(file, pool, asks, context.obj)
    if found is None:
        _refuse(f"pool {pool} rolls nothing out: all its nodes are made from what is deployed")
    if found.given_up:
        again = f"to have it tried again: tidegate retry {pool}"
        _refuse(f"pool {pool}: template {found.template.digest} was given up before; {again}")
    return found


def _refuse(said: str) -> Never:
    typer.echo(said, err=True)
    raise typer.Exit(1)
