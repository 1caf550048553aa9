"""`tidegate keep-up` and `tidegate stop`: what a person wants instead of what the calendar says."""

from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import ClusterOption
from tidegate.core.model.calendar import OnRunningJobs

if TYPE_CHECKING:
    from tidegate.core.model.calendar import ScheduleOverride
    from tidegate.wire.config import ClusterFile
    from tidegate.wiring.resources import Clients

# Whoever wants more than this wants another cluster file.
LONGEST_S = 14 * 24 * 3600.0

KEEP_UP_EXAMPLES = (
    "Examples: tidegate keep-up --until 23:00 --why 'demo tonight' --cluster dev.yaml;"
    " tidegate keep-up --until 3h ..."
)
STOP_EXAMPLES = (
    "Examples: tidegate stop now --cluster dev.yaml; tidegate stop 18:30 --until 2d ...;"
    " tidegate stop now --jobs requeue ..."
)

Why = Annotated[str, typer.Option(help="For the others: shown wherever the hours are.")]


def keep_up(
    context: typer.Context,
    cluster: ClusterOption,
    until: Annotated[str, typer.Option(metavar="WHEN", help="A time like 23:00, or a span: 3h.")],
    why: Why = "",
) -> None:
    """Keep the cluster up, whatever its schedules say.

    It is brought up if it is down; the override ends by itself.
    """
    from tidegate.cli.live import told
    from tidegate.core.model.calendar import OverrideKind
    from tidegate.wire.config import load_cluster

    with told():
        file = load_cluster(cluster)
        now_s = _now_s()
        until_s = _moment_s(file, until, now_s)
        made = _override(OverrideKind.KEEP_UP, now_s, until_s, why)
        _send(file, made, context.obj)


def stop(
    context: typer.Context,
    when: Annotated[str, typer.Argument(metavar="WHEN", help="now, a time like 18:30, or 2h.")],
    cluster: ClusterOption,
    until: Annotated[
        str, typer.Option(metavar="WHEN", help="The schedules' next start when left out.")
    ] = "",
    jobs: Annotated[
        OnRunningJobs | None,
        typer.Option(help="What becomes of running jobs; as the cluster file says when left out."),
    ] = None,
    keep_head: Annotated[
        bool, typer.Option("--keep-head", help="Only the nodes go; the head stays.")
    ] = False,
    why: Why = "",
) -> None:
    """Stop the cluster, whatever its schedules say.

    First its nodes, then its head; the override ends by itself.
    """
    from dataclasses import replace

    from tidegate.cli.live import told
    from tidegate.core.model.calendar import OverrideKind
    from tidegate.wire.config import load_cluster

    with told():
        file = load_cluster(cluster)
        now_s = _now_s()
        from_s = _moment_s(file, when, now_s)
        until_s = _moment_s(file, until, now_s) if until else _next_start_s(file, from_s)
        made = _override(OverrideKind.STOP, from_s, until_s, why)
        _send(file, replace(made, on_running_jobs=jobs, keeps_head=keep_head), context.obj)


def _now_s() -> float:
    import time

    return time.time()


def _moment_s(file: "ClusterFile", text: str, now_s: float) -> float:
    from tidegate.cli.moments import moment_s

    return moment_s(text, now_s, file.schedules.time_zone if file.schedules else "UTC")


def _next_start_s(file: "ClusterFile", from_s: float) -> float:
    """When the schedules bring the cluster up after it would be stopped."""
    from tidegate.wire.calendar import changes

    if file.schedules and file.schedules.windows:
        was_up = True
        for change in changes(file.schedules, from_s, from_s + LONGEST_S):
            if change.wanted.is_up and not was_up:
                return change.at_s
            was_up = change.wanted.is_up
    raise typer.BadParameter("no schedule starts the cluster again: say --until, like --until 8:00")


def _override(kind: str, from_s: float, until_s: float, why: str) -> "ScheduleOverride":
    import uuid

    from tidegate.core.model.calendar import OverrideKind, ScheduleOverride

    now_s = _now_s()
    if until_s <= max(from_s, now_s):
        raise typer.BadParameter("it would end before it begins")
    if until_s - now_s > LONGEST_S:
        days = LONGEST_S / 86400
        raise typer.BadParameter(f"longer than {days:.0f} days: change the cluster file instead")
    why = " ".join(why.split())[:200]
    return ScheduleOverride(
        uuid.uuid4().hex[:8], OverrideKind(kind), from_s, until_s, now_s, "", why
    )


def _send(file: "ClusterFile", made: "ScheduleOverride", clients: "Clients | None") -> None:
    """Write it down, and have the hours kept at once."""
    from tidegate.cli.live import override

    kept = override(file, made, clients)
    typer.echo(f"{file.cluster.name} will be {kept.sentence} (override {made.override_id})")
