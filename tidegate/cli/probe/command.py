"""`tidegate probe`: what an account really says, on the first day in it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption
from tidegate.cli.written import new_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.cli.probe.facts import Fact, Report, Stage
    from tidegate.wire.config import ClusterFile
    from tidegate.wiring.resources import Clients

# 128 and the number of SIGINT.
INTERRUPTED = 130

EXAMPLES = "Examples: tidegate probe --cluster dev.yaml --report probe.md; tidegate probe --launch"


def probe(
    context: typer.Context,
    cluster: ClusterOption,
    launch: Annotated[
        bool,
        typer.Option(
            "--launch", help="Launch one node too, for a job; it costs money, and asks before."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before a launch.")] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH.md",
            callback=new_file,
            help="Write a report to show to others, and the same as PATH.json.",
        ),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Ask an account for all that a cluster needs of it.

    Exit codes: 0 all is confirmed, 1 something is refuted, 3 something could not be asked.
    """
    from functools import cache

    from tidegate.adapters.account import Account
    from tidegate.adapters.clients import client
    from tidegate.cli.live import told
    from tidegate.cli.probe import before, deployed
    from tidegate.cli.probe.facts import Fact, Stage, fact_of, lines
    from tidegate.cli.validate import nobody_asks
    from tidegate.wire.config import load_cluster

    with told():
        read = load_cluster(cluster)
    make = context.obj or cache(lambda name: client(name, read.region))
    if nobody := nobody_asks(make):
        typer.echo(nobody, err=True)
        raise typer.Exit(1)
    facts: list[Fact] = []
    stages: list[Stage] = []

    def tell(fact: Fact) -> None:
        facts.append(fact)
        if not output.is_data:
            typer.echo("\n".join(lines([fact])))

    account = Account(make)
    try:
        for answers in (before.answers, deployed.answers):
            for answer in answers(read, account):
                tell(fact_of(answer))
        if launch:
            _launched(read, make, tell, stages, is_agreed=yes)
    except KeyboardInterrupt:
        typer.echo("interrupted; what was begun is gone again", err=True)
        _end(_reported(read, facts, stages), report, output, is_whole=False)
    _end(_reported(read, facts, stages), report, output)


def _launched(
    file: "ClusterFile",
    clients: "Clients",
    tell: "Callable[[Fact], None]",
    stages: "list[Stage]",
    *,
    is_agreed: bool,
) -> None:
    """Say what it takes, ask, and do it; that there is nothing to launch is a fact as well."""
    from functools import partial

    from tidegate.adapters.clock import SystemClock
    from tidegate.cli.probe import launch
    from tidegate.cli.probe.facts import Fact, Standing
    from tidegate.cli.probe.parts import bell_of, trial_of
    from tidegate.core.model.errors import TidegateError

    try:
        trial = trial_of(file, clients, SystemClock(), tell)
    except TidegateError as trouble:
        tell(Fact("launch", "A launch can be tried.", Standing.NOT_ASKED, (str(trouble),)))
        return
    trial.say = partial(typer.echo, err=True)
    typer.echo(trial.told_before(), err=True)
    if not is_agreed:
        typer.confirm("Launch it?", abort=True, err=True)
    try:
        launch.ring(bell_of(file, clients), tell)
        trial.run()
    finally:
        stages += trial.stages


def _reported(file: "ClusterFile", facts: "list[Fact]", stages: "list[Stage]") -> "Report":
    from datetime import UTC, datetime
    from importlib.metadata import version

    from tidegate.adapters.clock import SystemClock
    from tidegate.cli.probe.facts import Report

    return Report(
        file.cluster.name,
        file.region,
        version("tidegate"),
        datetime.fromtimestamp(SystemClock().now_s(), UTC).isoformat(timespec="seconds"),
        tuple(facts),
        tuple(stages),
    )


def _end(found: "Report", path: Path | None, output: Output, *, is_whole: bool = True) -> None:
    """Show and write it; leave with its code, or as a shell names an interrupt."""
    from tidegate.cli.probe.facts import as_data, as_markdown, stage_lines
    from tidegate.cli.shown import in_format

    if path:
        path.write_text(as_markdown(found))
        path.with_suffix(".json").write_text(as_data(found))
    if output.is_data:
        typer.echo(in_format(as_data(found), output))
    else:
        for line in stage_lines(found.stages):
            typer.echo(line)
        typer.echo(f"{found.cluster} in {found.region}: {found.summary()}")
    raise typer.Exit(found.exit_code if is_whole else INTERRUPTED)
