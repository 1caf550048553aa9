"""`tidegate validate`: what is wrong with cluster files, by themselves and in the account."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from tidegate.wire.config import ClusterFile
    from tidegate.wiring.resources import Clients


def validate(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Cluster files.")],
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Ask AWS as well: offerings, quotas, roles, keys, images and what exists.",
        ),
    ] = False,
) -> None:
    """Check cluster files; show every problem. Exit code 1 if any file has one."""
    verdicts = [_verdict(file, live=live, clients=context.obj) for file in files]
    if not all(verdicts):
        raise typer.Exit(code=1)


def _verdict(file: Path, *, live: bool, clients: "Clients | None") -> bool:
    """Print what is to say about one cluster file; whether it is good."""
    from rich.console import Console

    from tidegate.core.errors import BadConfig
    from tidegate.wire.compat import findings
    from tidegate.wire.config import load_cluster
    from tidegate.wire.offerings import problems
    from tidegate.wire.problems import render

    # Names of the file are data: no markup, no guessing at colours, no folding of lines.
    console = Console(markup=False, highlight=False, soft_wrap=True)
    try:
        read = load_cluster(file)
    except BadConfig as error:
        console.print(str(error), style="red")
        return False
    found = findings(read)
    is_good = not any(each.is_error for each in found)
    console.print(f"{file}: {'ok' if is_good else 'cannot boot'}, {read.summary()}")
    for note in read.notes:
        console.print(f"  {note}")
    for each in found:
        console.print(f"  {each}", style="red" if each.is_error else "yellow")
    if live:
        return _asked(file, read, console, clients) and is_good
    if not_offered := list(problems(read)):
        console.print(render(file, not_offered), style="red")
    return is_good and not not_offered


def _asked(file: Path, read: "ClusterFile", console: "Console", clients: "Clients | None") -> bool:
    """Print what the account says of a file; whether it has what the file needs."""
    from functools import cache

    from tidegate.adapters.account import Account
    from tidegate.adapters.clients import client
    from tidegate.cli.deployable import findings
    from tidegate.wire.problems import render

    found = findings(read, Account(clients or cache(lambda name: client(name, read.region))))
    if found.problems:
        console.print(render(f"{file} in {read.region}", found.problems), style="red")
    for each in found.notes:
        console.print(f"  {each.path}: {each.text}", style="yellow")
    for text in found.unknown:
        console.print(f"  not checked: {text}", style="yellow")
    if not found.problems:
        rest = f", {len(found.unknown)} checks could not ask" if found.unknown else ""
        console.print(f"{file}: {read.region} has what it needs{rest}")
    return not found.problems
