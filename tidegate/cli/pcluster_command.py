"""`tidegate import pcluster FILE`."""

from pathlib import Path
from typing import Annotated

import typer

importing = typer.Typer(help="Translate configurations of other tools.", no_args_is_help=True)


@importing.callback()
def formats() -> None:
    """Keeps `pcluster` a command of its own while it is the only one."""


@importing.command(epilog="Examples: tidegate import pcluster old.yaml >new.yaml")
def pcluster(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="ParallelCluster 3 configuration.")],
    name: Annotated[str, typer.Option(help="Name of the cluster.")] = "imported",
) -> None:
    """Write a cluster file to stdout; say on stderr what is to fill in and what was left out."""
    import yaml

    from tidegate.cli.pcluster import translate
    from tidegate.cli.pcluster_shape import problems
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.problems import refusal
    from tidegate.wire.yaml_file import faults_told, read_text

    try:
        with faults_told(file):
            text = yaml.safe_load(read_text(file))
        if not isinstance(text, dict) or "Scheduling" not in text:
            raise BadConfig(f"{file}: not a ParallelCluster 3 configuration: no Scheduling")
        if found := problems(text):
            raise refusal(file, found)
    except BadConfig as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
    done = translate(text, name)
    typer.echo(yaml.safe_dump(done.file, sort_keys=False), nl=False)
    for title, lines in (("to fill in", done.to_do), ("left out", done.left_out)):
        for line in lines:
            typer.echo(f"{title}: {line}", err=True)
