"""`tidegate validate`: what is wrong with cluster files, by themselves and in the account."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import CLUSTERS, VARIABLE, Output, OutputOption, named, only_cluster
from tidegate.core.model.frozen import frozen
from tidegate.core.model.text import printable

if TYPE_CHECKING:
    from rich.console import Console

    from tidegate.cli.deployable import Findings
    from tidegate.wire.config import ClusterFile
    from tidegate.wiring.resources import Clients


@frozen
class Verdict:
    """What is to say about one cluster file; it is good when there are no problems.

    `notes`: what it means but cannot have. `not_checked`: what AWS did not answer.
    """

    file: str
    is_good: bool
    summary: str = ""
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()


EXAMPLES = "Examples: tidegate validate clusters/*.yaml; tidegate validate --live dev.yaml"


def validate(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            envvar=VARIABLE,
            default_factory=lambda: [only_cluster()],
            callback=named,
            show_default=f"the only one in {CLUSTERS}/",
            help="Cluster files.",
        ),
    ],
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Ask AWS as well: offerings, quotas, roles, keys, images and what exists.",
        ),
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Check cluster files; show every problem.

    Exit codes: 0 all are good, 1 a file has a problem, 3 AWS did not answer everything.
    """
    from tidegate.cli.shown import encoded, unfolded

    console = unfolded(is_quiet=output.is_data)
    verdicts = [_verdict(file, console, live=live, clients=context.obj) for file in files]
    if output.is_data:
        typer.echo(encoded(verdicts, output))
    if not all(each.is_good for each in verdicts):
        raise typer.Exit(code=1)
    if any(each.not_checked for each in verdicts):
        raise typer.Exit(code=3)


def _verdict(file: Path, console: "Console", *, live: bool, clients: "Clients | None") -> Verdict:
    """Print what is to say about one cluster file, and return it."""
    from tidegate.adapters.clock import SystemClock
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire import boot_budget
    from tidegate.wire.advice import notes as advice_notes
    from tidegate.wire.compat import findings
    from tidegate.wire.config import load_cluster
    from tidegate.wire.offerings import problems
    from tidegate.wire.problems import render
    from tidegate.wire.slurm_faults import slurm_findings

    try:
        read = load_cluster(file)
    except BadConfig as error:
        console.print(str(error), style="red")
        return Verdict(str(file), is_good=False, problems=error.problems or (str(error),))
    found = (*findings(read), *slurm_findings(read))
    wrong = [str(each) for each in found if each.is_error]
    warnings = [str(each) for each in found if not each.is_error]
    verdict = "cannot boot" if wrong else "ok"
    console.print(printable(f"{file}: {verdict}, {read.summary()}"))
    advice, now_s = read.slurm.advice, SystemClock().now_s()
    unheeded = advice_notes(advice, read.advised, now_s) if advice else ()
    notes = (*read.notes, *_ended(read, now_s), *boot_budget.notes(read), *unheeded)
    for note in notes:
        console.print(f"  {note}")
    for each in found:
        console.print(f"  {each}", style="red" if each.is_error else "yellow")
    unknown: list[str] = []
    if live:
        asked = _asked(file, read, console, clients)
        wrong += map(str, asked.problems)
        warnings += map(str, asked.notes)
        unknown = asked.unknown
    elif not_offered := list(problems(read)):
        console.print(render(file, not_offered), style="red")
        wrong += map(str, not_offered)
    return Verdict(
        str(file),
        is_good=not wrong,
        summary=read.summary(),
        problems=tuple(wrong),
        warnings=tuple(warnings),
        notes=notes,
        not_checked=tuple(unknown),
    )


def _ended(read: "ClusterFile", now_s: float) -> Iterator[str]:
    """Reservations that are over: they harm nothing, and nobody buys in them."""
    for index, each in enumerate(read.cluster.reservations):
        if each.ends_at_s is not None and each.ends_at_s <= now_s:
            at = datetime.fromtimestamp(each.ends_at_s, UTC)
            yield f"reservations[{index}]: {each.id} ended on {at:%Y-%m-%d %H:%M} UTC; take it out"


def _asked(
    file: Path, read: "ClusterFile", console: "Console", clients: "Clients | None"
) -> "Findings":
    """Print what the account says of a file, and return it."""
    from functools import cache

    from tidegate.adapters.account import Account
    from tidegate.adapters.clients import client
    from tidegate.cli.deployable import Findings, findings
    from tidegate.wire.problems import Problem, render

    make = clients or cache(lambda name: client(name, read.region))
    nobody = nobody_asks(make)
    found = Findings([Problem((), nobody)]) if nobody else findings(read, Account(make))
    if found.problems:
        console.print(render(f"{file} in {read.region}", found.problems), style="red")
    for each in found.notes:
        console.print(f"  {each}", style="yellow")
    for text in found.unknown:
        console.print(f"  not checked: {text}", style="yellow")
    if not found.problems:
        met = f"{read.region} has what it needs"
        if found.unknown:
            count = f"{len(found.unknown)} check{'s' * (len(found.unknown) != 1)}"
            met = f"nothing missing in {read.region}, but {count} could not ask"
        console.print(printable(f"{file}: {met}"))
    return found


def nobody_asks(clients: "Clients") -> str:
    """That AWS does not know who asks, so that no other question has an answer; "": it does."""
    from tidegate.adapters.aws_errors import aws_call
    from tidegate.adapters.person import who
    from tidegate.cli.live import LOG_IN
    from tidegate.core.model.errors import TidegateError

    try:
        with aws_call():
            sts = clients("sts")
        who(sts)
    except TidegateError as trouble:
        text = f"AWS was not asked, it does not know who asks: {trouble}"
        return f"{text}; {LOG_IN}"
    return ""
