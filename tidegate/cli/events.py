"""`tidegate events`: what looks did and met, by job, node, pool and time."""

from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption

if TYPE_CHECKING:
    from tidegate.core.explain.history import LookEvent
    from tidegate.wire.config import ClusterFile
    from tidegate.wiring.resources import Clients

EXAMPLES = "Examples: tidegate events --since 2h --job 4711 --cluster dev.yaml; ... --pool t4"

# Looks that are read at most, the newest: each is an object of its own.
LOOKS_MAX = 1000


def events(
    context: typer.Context,
    cluster: ClusterOption,
    job: Annotated[str, typer.Option(help="What was done for this job.")] = "",
    node: Annotated[str, typer.Option(help="What was done with this node.")] = "",
    pool: Annotated[str, typer.Option(help="What was done with this pool.")] = "",
    since: Annotated[str, typer.Option(help="How far back: 90s, 15m, 2h, 7d.")] = "1h",
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what was decided and what EC2 did, oldest first.

    Kept for seven days. Exit codes: 0 also when there are none, 1 trouble.
    """
    from tidegate.cli.live import told
    from tidegate.cli.shown import encoded, filled
    from tidegate.core.explain.repeats import told_once
    from tidegate.core.model.durations import moment
    from tidegate.wire.config import load_cluster

    back_s = span_of(since)
    with told():
        file = load_cluster(cluster)
        every, is_cut = happened(file, back_s, context.obj)
    found = [each for each in every if each.is_about(job=job, node=node, pool=pool)]
    if output.is_data:
        typer.echo(encoded(found, output))
        return
    for told_event in told_once(found):
        each = told_event.event
        line = f"{moment(each.at_s)} {each.kind:<9} {each.sentence}{told_event.often}"
        typer.echo(filled(line, indent=30, output=output))
    if is_cut:
        typer.echo(f"only the newest {LOOKS_MAX} looks were read: give a shorter --since", err=True)


def span_of(since: str) -> float:
    """How far back, in seconds. Errors: a usage error."""
    from tidegate.core.model.durations import span_s

    back_s = span_s(since)
    if back_s is None:
        raise typer.BadParameter(f"--since takes 90s, 15m, 2h or 7d, not {since!r}")
    return back_s


def happened(
    file: "ClusterFile", back_s: float, clients: "Clients | None" = None
) -> "tuple[list[LookEvent], bool]":
    """What looks did since so many seconds ago, oldest first, and whether older ones were left
    out. Errors: as `live`.
    """
    import time

    from tidegate.cli.live import decisions

    looks = decisions(file, clients).since(time.time() - back_s, most=LOOKS_MAX)
    return [event for look in looks for event in look], len(looks) == LOOKS_MAX
