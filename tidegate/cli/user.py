"""`tidegate user`: who may use a cluster that has no directory service."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption

if TYPE_CHECKING:
    from tidegate.adapters.head_users import HeadUsers

EXAMPLES = (
    "Examples: tidegate user add ada --key-file ada.pub --cluster dev.yaml;"
    " tidegate user list; tidegate user remove ada"
)
PRIVATE = "PRIVATE KEY"

user = typer.Typer(help="The people of a cluster.", no_args_is_help=True, epilog=EXAMPLES)

NAME_HELP = "As the person logs in."


def _new_names[Names: (str, list[str] | None)](names: Names) -> Names:
    """What the head would refuse is refused before AWS is asked for it. Errors: a usage error."""
    from tidegate.adapters.head_users import NAME

    for each in [names] if isinstance(names, str) else names or ():
        if not re.fullmatch(NAME, each):
            rule = "small letters, digits, - and _, first a letter or _, at most 31"
            raise typer.BadParameter(f"{each!r} is no name here: {rule}")
    return names


@user.callback()
def root() -> None:
    """The people of a cluster, who live on its head and are known to its nodes."""


@user.command("list", epilog=EXAMPLES)
def list_(
    context: typer.Context, cluster: ClusterOption, output: OutputOption = Output.TEXT
) -> None:
    """Show who is known, with their numbers, groups, keys and jobs."""
    from tidegate.cli.live import told
    from tidegate.cli.shown import encoded, fit, show, table

    with told():
        found = _users(context, cluster).all()
    if output.is_data:
        typer.echo(encoded(found, output))
        return
    rows = table("name", "number", "groups", "home", "keys", "jobs")
    for each in found:
        jobs = "?" if each.jobs is None else str(each.jobs)
        groups = ", ".join(each.groups)
        rows.add_row(each.name, str(each.number), groups, each.home, str(each.keys), jobs)
    show(fit(rows), output)


@user.command(epilog=EXAMPLES)
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help=NAME_HELP, callback=_new_names)],
    cluster: ClusterOption,
    key_file: Annotated[
        list[Path] | None,
        typer.Option("--key-file", help="A public SSH key; may be given again."),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            help="A group to be in, made when it is new; may be given again.",
            callback=_new_names,
        ),
    ] = None,
    account: Annotated[
        str, typer.Option("--account", help="Of Slurm's accounting, which must be there.")
    ] = "",
) -> None:
    """Make a person known on head and nodes, or give more to one who is."""
    from tidegate.cli.live import told

    keys = [key for file in key_file or () for key in _keys(file)]
    with told():
        users = _users(context, cluster)
        typer.echo(users.add(name, keys=keys, groups=group or (), account=account))


@user.command(epilog=EXAMPLES)
def remove(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help=NAME_HELP)],
    cluster: ClusterOption,
) -> None:
    """Forget a person who has no jobs; the home stays."""
    from tidegate.cli.live import told

    with told():
        typer.echo(_users(context, cluster).remove(name))


def _users(context: typer.Context, cluster: Path) -> "HeadUsers":
    from tidegate.adapters.head_users import HeadUsers
    from tidegate.cli.head import head_shell
    from tidegate.wire.config import load_cluster

    return HeadUsers(head_shell(load_cluster(cluster), context.obj))


def _keys(file: Path) -> list[str]:
    """The lines of a file that hold a key. Errors: a usage error."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"--key-file {file} cannot be read: {error}") from error
    if PRIVATE in text:
        raise typer.BadParameter(f"--key-file {file} is a private key: give the .pub beside it")
    found = [line for each in text.splitlines() if (line := each.strip()) and line[0] != "#"]
    if not found:
        raise typer.BadParameter(f"--key-file {file} holds no key")
    return found
