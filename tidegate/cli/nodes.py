"""`tidegate nodes`: the life of each node, what it has cost, and what would end it."""

from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption, require_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rich.console import RenderableType

    from tidegate.core.explain.node_report import NodeReport
    from tidegate.wire.config import ClusterFile
    from tidegate.wiring.resources import Clients

# Between two columns of a table.
GAP = 3

# Of a node, in a table that is not wide.
COLUMNS = ("node", "pool, offering", "stage", "age", "USD", "jobs", "ends when", "held by")
MOST_JOBS = 3

# Each costs a call to EC2.
MAX_ASKED = 10

EXAMPLES = "Examples: tidegate nodes --cluster dev.yaml; tidegate nodes --pool t4 --cluster ..."


def nodes(
    context: typer.Context,
    cluster: ClusterOption,
    pool: Annotated[str, typer.Option(help="Those of this pool only.")] = "",
    output: OutputOption = Output.TEXT,
) -> None:
    """Show each node: stage, age, cost, what would end it."""
    from tidegate.cli.live import told
    from tidegate.cli.shown import columns, encoded, show
    from tidegate.wire.config import load_cluster

    with told():
        found = paid_for(load_cluster(cluster), pool, context.obj)
    if output.is_data:
        typer.echo(encoded(found, output))
        return
    show(screen(found, columns(output), is_wide=output.is_wide) if found else "no nodes", output)


def paid_for(
    file: "ClusterFile", pool: str = "", clients: "Clients | None" = None
) -> "list[NodeReport]":
    """The nodes of the pool, "": of all. Errors: as `live`; a usage error for an unknown pool."""
    from tidegate.adapters.console import console_text
    from tidegate.cli.live import clients_of, live
    from tidegate.core.explain.node_report import node_reports

    if pool:
        require_pool(file, pool)
    snapshot = live(file, clients).snapshot
    make = clients_of(file, clients)
    chosen = (each for each in node_reports(snapshot) if pool in ("", each.pool))
    return list(with_stages(chosen, lambda name: console_text(make("ec2"), name)))


def screen(
    found: "Sequence[NodeReport]", width: int | None, *, is_wide: bool = False
) -> "RenderableType":
    """A table; where the terminal is too narrow for its longest words, a paragraph for each.

    `is_wide`: with all jobs of a node.
    """
    from rich.console import Group

    from tidegate.cli.shown import fit, lines, table

    checked = ("checked",) if any(each.checked for each in found) else ()
    made = table(*COLUMNS, *checked)
    for each in found:
        cells = _cells(each, most=len(each.jobs) if is_wide else MOST_JOBS)
        made.add_row(*cells, *((each.checked,) if checked else ()))
    least = sum((each.min_width or 0) + GAP for each in fit(made).columns)
    if width is None or least <= width:
        return made
    return Group(*(line for each in found for line in lines(_paragraph(each), is_wrapped=False)))


def _cells(each: "NodeReport", most: int = MOST_JOBS) -> tuple[str, ...]:
    from tidegate.core.model.durations import span

    jobs = ", ".join(each.jobs[:most]) + (" ..." if len(each.jobs) > most else "")
    what, usd = f"{each.pool}, {each.offering}", f"{each.usd:.2f}"
    return (each.name, what, each.stage, span(each.age_s), usd, jobs, each.ends, each.held)


def _paragraph(each: "NodeReport") -> "Iterator[str]":
    name, what, stage, age, usd, jobs, ends, held = _cells(each)
    yield f"{name} {what}"
    yield f"  {stage}; {age}, {usd} USD" + (f"; jobs {jobs}" if jobs else "")
    if ends:
        yield f"  ends when: {ends}"
    if held:
        yield f"  held by: {held}"
    if each.checked:
        yield f"  checked: {each.checked}"


def with_stages(
    reports: "Iterable[NodeReport]", console: "Callable[[str], str]"
) -> "Iterator[NodeReport]":
    """How far the boot of each has come, by its console, which lags a little behind.

    Who may not read it, or asks while the node has just ended, sees `booting` alone.
    """
    from dataclasses import replace

    from tidegate.core.explain.node_report import BOOTING
    from tidegate.core.model.errors import BadConfig, NotAuthorized
    from tidegate.wire.console import last_stage

    left = MAX_ASKED
    for each in reports:
        said = ""
        if each.stage == BOOTING and left:
            left -= 1
            try:
                said = last_stage(console(each.name))
            except (BadConfig, NotAuthorized):
                left = 0
        yield replace(each, stage=f"{each.stage}, {said}") if said else each
