"""`tidegate image`: images that hold what nodes would install at their boot."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tidegate.wire.config import ClusterFile
    from tidegate.wiring.resources import Clients

EXAMPLES = (
    "Examples: tidegate image bake --cluster clusters/dev.yaml; tidegate image list;"
    " tidegate image plan --cluster clusters/dev.yaml >component.yaml"
)

image = typer.Typer(help="Images of your own for nodes.", no_args_is_help=True)

_HEAD = """\
# What nodes of {cluster} would install at their boot and fetch from S3, as a component of EC2
# Image Builder. Too large to be sent inline, so it goes by a bucket of yours.
# 1. aws s3 cp THIS_FILE s3://BUCKET/tidegate-{cluster}.yaml
#    aws imagebuilder create-component --name tidegate-{cluster} --semantic-version 1.0.0 \\
#        --platform Linux --uri s3://BUCKET/tidegate-{cluster}.yaml
# 2. a recipe of this component with the parent image {parent}
#    (the id is in the SSM parameter of that name), on an instance of the pool's architecture
# 3. image: ami-... in the cluster file, and under software: what the image holds
{missing}"""


@image.callback()
def root() -> None:
    """Images of your own for nodes."""


@image.command(epilog=EXAMPLES)
def bake(context: typer.Context, cluster: ClusterOption) -> None:
    """Bake images for the cluster's nodes now: the first ones, or after a deployment.

    It takes about half an hour. New nodes come from them after the next `npx cdk deploy`.
    """
    from tidegate.adapters import image_builder
    from tidegate.cli.live import told

    with told():
        client, found = _pipelines(cluster, context.obj)
        for name, arn in found.items():
            typer.echo(f"{name}: bakes {image_builder.start(client, arn)}")
    typer.echo("`tidegate image list` shows what comes of it; a deployment then takes it")


@image.command("list", epilog=EXAMPLES)
def list_(
    context: typer.Context, cluster: ClusterOption, output: OutputOption = Output.TEXT
) -> None:
    """Show the images that were baked for the cluster's nodes, and what failed, newest first."""
    from tidegate.adapters import image_builder
    from tidegate.cli.live import told
    from tidegate.cli.shown import encoded, fit, show, table

    with told():
        client, pipelines = _pipelines(cluster, context.obj)
        found = [
            each
            for name, arn in pipelines.items()
            for each in image_builder.built(client, name, arn)
        ]
    if output.is_data:
        typer.echo(encoded(found, output))
        return
    rows = table("pipeline", "version", "begun", "state", "image", "why")
    for each in found:
        rows.add_row(
            each.pipeline, each.version, each.created_at, each.state, each.image_id, each.reason
        )
    show(fit(rows), output)


def _pipelines(cluster: Path, clients: "Clients | None") -> "tuple[Any, Mapping[str, str]]":
    """Image Builder's client, and name -> ARN of the cluster's pipelines. Errors: BadConfig."""
    from tidegate.adapters.clients import client
    from tidegate.adapters.image_builder import pipelines
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.config import load_cluster
    from tidegate.wire.image_names import pipeline_name

    file = load_cluster(cluster)
    if not file.images:
        raise BadConfig(f"{cluster} bakes no images; say `images: {{}}` in it, and deploy it")
    names = tuple(pipeline_name(file.cluster.name, arch) for arch in file.archs)
    made = clients("imagebuilder") if clients else client("imagebuilder", file.region)
    found = pipelines(made, names)
    if missing := [each for each in names if each not in found]:
        stack = f"tidegate-{file.cluster.name}-images"
        where = f"there is no pipeline {missing[0]} in {file.region}"
        raise BadConfig(f"{where}: deploy it first (npx cdk deploy {stack})")
    return made, found


@image.command(epilog=EXAMPLES)
def plan(
    cluster: ClusterOption,
    pool: Annotated[
        str | None, typer.Option("--pool", help="For the architecture of this pool.")
    ] = None,
) -> None:
    """Print the EC2 Image Builder component that bakes an image for the cluster's nodes."""
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.compat_facts import INSTALLED_BRANCH
    from tidegate.wire.config import load_cluster
    from tidegate.wire.image_content import dcgm, needed
    from tidegate.wire.image_names import parent_image
    from tidegate.wire.node_models import HEAD_OS
    from userdata.image import ImageValues, image_component, text_of
    from userdata.packages import asked_for
    from userdata.repository import in_s3, repository_with

    try:
        read = load_cluster(cluster)
        arch = _arch(read, pool)
    except BadConfig as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    wanted = dict(needed(read))
    os = HEAD_OS if read.image_id else read.os  # an own image is made from AWS's
    values = ImageValues(
        cluster=read.cluster.name,
        parent=parent_image(arch, os, installs_driver=read.installs_driver),
        os=os,
        repository=repository_with(read.slurm.version, read.slurm.repository(os)),
        more=(
            *_for_head(read, arch),
            *_for_monitoring(read, arch, os),
            *asked_for(directory=bool(read.directory), lustre=read.has_lustre, os=os),
        ),
        containers=read.containers,
        dcgm=dcgm(read, arch),
        driver_branch=INSTALLED_BRANCH if read.installs_driver else "",
        programs=tuple(name for name in wanted if "/" not in name),
        files=tuple(name for name in wanted if "/" in name),
    )
    missing = "".join(
        f"# Add a component that installs {name}: {why}\n" for name, why in wanted.items()
    )
    for url in in_s3(values.repository):
        missing += f"# The role of the build's instance must be able to list and read {url}\n"
    head = _HEAD.format(cluster=values.cluster, parent=values.parent, missing=missing)
    typer.echo(head + text_of(image_component(values)), nl=False)


def _arch(file: "ClusterFile", pool: str | None) -> str:
    from tidegate.core.model.errors import BadConfig

    found = {each.name: each.instance_types[0].arch for each in file.cluster.pools}
    if pool and pool not in found:
        raise BadConfig(f"no pool named {pool}; known here: {', '.join(found)}")
    archs = {found[pool]} if pool else set(found.values())
    if len(archs) > 1:
        raise BadConfig("the pools are of several architectures: say --pool, one image for each")
    return archs.pop()


def _for_head(file: "ClusterFile", arch: str) -> tuple[tuple[str, str], ...]:
    """The head is launched from `image` too, unless it has one of its own."""
    from tidegate.wire.node_models import HEAD_OS
    from userdata.packages import ACCOUNTING, HEAD

    if file.head.image or arch != file.head.arch or (file.os != HEAD_OS and not file.image_id):
        return ()
    return (*HEAD, *(ACCOUNTING if file.slurm.accounting else ()))


def _for_monitoring(file: "ClusterFile", arch: str, os: str) -> tuple[tuple[str, str], ...]:
    """Node exporter for nodes, and Prometheus where the head is launched from the image too."""
    from userdata.monitoring import EXPORTER, PACKAGES_OF_HEAD

    if not file.monitoring.prometheus or os == "al2023":
        return ()
    return PACKAGES_OF_HEAD if _for_head(file, arch) else (EXPORTER,)
