"""`tidegate events`: what looks did and met, by job, node, pool and time."""

from typing import Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption

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
    """Show the decisions of looks that did something, oldest first; kept for seven days.

    Exit codes: 0 also when there are none, 1 trouble.
    """
    import time

    from tidegate.cli.live import decisions, told
    from tidegate.cli.shown import encoded, filled
    from tidegate.core.explain.repeats import told_once
    from tidegate.core.model.durations import clock, moment, span_s
    from tidegate.wire.config import load_cluster

    back_s = span_s(since)
    if back_s is None:
        raise typer.BadParameter(f"--since takes 90s, 15m, 2h or 7d, not {since!r}")
    with told():
        file = load_cluster(cluster)
        looks = decisions(file, context.obj).since(time.time() - back_s, most=LOOKS_MAX)
    every = (event for look in looks for event in look)
    found = [each for each in every if each.is_about(job=job, node=node, pool=pool)]
    if output.is_data:
        typer.echo(encoded(found, output))
        return
    for told_event in told_once(found):
        each, again = told_event.event, ""
        if told_event.again:
            again = f" ({told_event.again} times more until {clock(told_event.last_s)})"
        line = f"{moment(each.at_s)} {each.kind:<9} {each.sentence}{again}"
        typer.echo(filled(line, indent=30, output=output))
    if len(looks) == LOOKS_MAX:
        typer.echo(f"only the newest {LOOKS_MAX} looks were read: give a shorter --since", err=True)
