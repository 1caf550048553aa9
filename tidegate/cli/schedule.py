"""`tidegate schedule`: what will happen when, and who overrode what."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption

if TYPE_CHECKING:
    from tidegate.core.model.calendar import ScheduleOverride
    from tidegate.wire.calendar import Change, Schedules

DAY_S = 86400.0

EXAMPLES = (
    "Examples: tidegate schedule --next 7d --cluster dev.yaml; tidegate schedule --offline ...;"
    " tidegate schedule --cancel 1a2b3c4d ..."
)


def schedule(
    context: typer.Context,
    cluster: ClusterOption,
    next_: Annotated[str, typer.Option("--next", metavar="SPAN", help="How far, like 7d.")] = "7d",
    cancel: Annotated[str, typer.Option(metavar="ID", help="End this override now.")] = "",
    offline: Annotated[
        bool, typer.Option("--offline", help="By the file alone: AWS is not asked for overrides.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show when the cluster goes up and down, and overrides."""
    import time

    from tidegate.cli.live import overrides, told
    from tidegate.cli.shown import encoded
    from tidegate.core.model.durations import span_s
    from tidegate.wire.calendar import Schedules, changes
    from tidegate.wire.config import load_cluster

    horizon_s = span_s(next_)
    if horizon_s is None or horizon_s > 366 * DAY_S:
        raise typer.BadParameter(f"--next {next_} is not a span of at most a year, like 7d")
    if cancel and offline:
        raise typer.BadParameter("--cancel needs AWS")
    with told():
        file = load_cluster(cluster)
        if cancel:
            _cancel(context, cluster, cancel)
        held = () if offline else overrides(file, context.obj)
    schedules = file.schedules or Schedules("UTC")
    now_s = time.time()
    open_overrides = [one for one in held if one.until_s > now_s]
    found = list(changes(schedules, now_s, now_s + horizon_s, open_overrides))
    if output.is_data:
        typer.echo(encoded(found, output))
        return
    _show(found, open_overrides, schedules, output)


def _cancel(context: typer.Context, cluster: Path, override_id: str) -> None:
    import time
    from dataclasses import replace

    from tidegate.cli.live import override, overrides
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.config import load_cluster

    file = load_cluster(cluster)
    found = next(
        (one for one in overrides(file, context.obj) if one.override_id == override_id), None
    )
    if found is None:
        raise BadConfig(f"there is no override {override_id}; tidegate schedule lists them")
    now_s = time.time()
    ended = replace(found, until_s=min(found.until_s, now_s), from_s=min(found.from_s, now_s))
    override(file, ended, context.obj)


def _show(
    found: "list[Change]", held: "list[ScheduleOverride]", schedules: "Schedules", output: Output
) -> None:
    from tidegate.cli.shown import fit, show, table

    made = table("from", "the cluster is", "nodes ready")
    for change in found:
        ready = ", ".join(f"{pool} {n}" for pool, n in sorted(change.wanted.warm_nodes.items()))
        made.add_row(schedules.told(change.at_s), change.wanted.sentence, ready)
    show(fit(made), output)
    if not held:
        return
    listed = table("override", "from", "until", "who", "what, why")
    for one in held:
        jobs = f", jobs: {one.on_running_jobs}" if one.on_running_jobs else ""
        what = f"{one.kind}{jobs}{f': {one.why}' if one.why else ''}"
        from_, until = schedules.told(one.from_s), schedules.told(one.until_s)
        listed.add_row(one.override_id, from_, until, one.who, what)
    show(fit(listed), output)
