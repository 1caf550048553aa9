"""`tidegate probe`: what an account really says, on the first day in it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.written import new_file

if TYPE_CHECKING:
    from tidegate.cli.probe.facts import Fact, Report

EXAMPLES = "Examples: tidegate probe dev.yaml; tidegate probe dev.yaml --report probe.md"


def probe(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.")],
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH.md",
            callback=new_file,
            help="Write a report to show to others, and the same as PATH.json.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Ask an account everything that a cluster needs of it, and report each fact.

    Exit codes: 0 all is confirmed, 1 something is refuted, 3 something could not be asked.
    """
    from functools import cache

    from tidegate.adapters.account import Account
    from tidegate.adapters.clients import client
    from tidegate.cli.live import told
    from tidegate.cli.probe.before import answers
    from tidegate.cli.probe.facts import fact_of, lines
    from tidegate.cli.validate import nobody_asks
    from tidegate.wire.config import load_cluster

    with told():
        read = load_cluster(file)
    make = context.obj or cache(lambda name: client(name, read.region))
    if nobody := nobody_asks(make):
        typer.echo(nobody, err=True)
        raise typer.Exit(1)
    facts = []
    for answer in answers(read, Account(make)):
        facts.append(fact_of(answer))
        if not json:
            typer.echo("\n".join(lines(facts[-1:])))
    _end(_reported(read.cluster.name, read.region, tuple(facts)), report, json=json)


def _reported(cluster: str, region: str, facts: "tuple[Fact, ...]") -> "Report":
    from datetime import UTC, datetime
    from importlib.metadata import version

    from tidegate.adapters.clock import SystemClock
    from tidegate.cli.probe.facts import Report

    at = datetime.fromtimestamp(SystemClock().now_s(), UTC).isoformat(timespec="seconds")
    return Report(cluster, region, version("tidegate"), at, facts)


def _end(found: "Report", path: Path | None, *, json: bool) -> None:
    """Show and write it; leave with its code."""
    from tidegate.cli.probe.facts import as_data, as_markdown

    if path:
        path.write_text(as_markdown(found))
        path.with_suffix(".json").write_text(as_data(found))
    if json:
        typer.echo(as_data(found), nl=False)
    else:
        typer.echo(f"{found.cluster} in {found.region}: {found.summary()}")
    raise typer.Exit(found.exit_code)
