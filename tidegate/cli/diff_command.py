"""`tidegate diff`: what a deployment would replace, restart or change, before it does."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption

if TYPE_CHECKING:
    from tidegate.wire.config import ClusterFile
    from tidegate.wiring.resources import Clients

EXAMPLES = (
    "Examples: npx cdk synth --quiet, "
    "then tidegate diff --cluster dev.yaml; ... --before cdk.out.old"
)


def diff(
    context: typer.Context,
    cluster: ClusterOption,
    assembly: Annotated[Path, typer.Option(help="Where `cdk synth` wrote the templates.")] = Path(
        "cdk.out"
    ),
    before: Annotated[
        Path | None,
        typer.Option(help="Compare with the templates of this folder, not with AWS."),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Tell what a deployment would do to the running cluster.

    Exit code 3 when something that holds data, the head or a login node would be replaced, a login
    node would go, or machines that run lose files or network; 1 when the deployment would fail and
    be rolled back, and what to do instead.
    """
    from tidegate.cli.diff import changes
    from tidegate.cli.impossible import refusals
    from tidegate.cli.live import clients_of, told
    from tidegate.cli.shown import encoded, unfolded
    from tidegate.cli.templates import read_templates
    from tidegate.wire.config import load_cluster

    console = unfolded()
    with told():
        read = load_cluster(cluster)
        clients = clients_of(read, context.obj)
        after = read_templates(assembly, read.cluster.name, has_images=bool(read.images))
        old = (
            read_templates(before, read.cluster.name)
            if before
            else _deployed(after.keys(), clients)
        )
        old = {stack: old.get(stack, {}) for stack in after}  # images may be new in the file
        refused = refusals(
            old, after, read.cluster.name, lambda: bool(before) or _has_head(read, clients)
        )
    found = {stack: changes(old[stack], template) for stack, template in after.items()}
    is_grave = any(each.is_grave for those in found.values() for each in those)
    code = 1 if refused else 3 if is_grave else 0
    if output.is_data:
        every = [each.told(stack) for stack, those in found.items() for each in those]
        typer.echo(encoded([*(each.told() for each in refused), *every], output))
        raise typer.Exit(code)
    for stack, those in found.items():
        console.print(f"{stack}: {len(those)} changes" if those else f"{stack}: no change")
        for change in those:
            console.print(f"  {change.sentence}", style="red" if change.is_grave else None)
    for each in refused:
        console.print(f"{each.stack} would be rolled back: {each.sentence}", style="red")
    for way in dict.fromkeys(each.way for each in refused):
        console.print(f"What to do: {way}.", style="red")
    if not any(each.loss for those in found.values() for each in those):
        console.print("Nodes that run are touched by no deployment.")
    raise typer.Exit(code)


def _deployed(stacks: Iterable[str], clients: "Clients") -> dict[str, Any]:
    from tidegate.adapters.stacks import deployed_template

    asked = clients("cloudformation")
    return {stack: deployed_template(asked, stack) for stack in stacks}


def _has_head(file: "ClusterFile", clients: "Clients") -> bool:
    """Whether EC2 shows one, stopped or not: either holds its volume."""
    from tidegate.adapters.ec2_head import Ec2Head

    return Ec2Head(clients("ec2"), file.cluster.name).shown() is not None
