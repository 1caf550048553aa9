"""`tidegate status`: queue, pools, what rests and whether the head is heard, on one screen."""

from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption

if TYPE_CHECKING:
    from tidegate.cli.live import LiveCluster
    from tidegate.core.explain.overview import Overview
    from tidegate.wire.config import ClusterFile
    from tidegate.wiring.resources import Clients

# Beside 0, nothing to see to; 1, trouble; 2, a command that cannot be meant.
NEEDS_A_LOOK = 3

# A look at AWS costs about 10 calls; the head reports every few seconds when something happens.
WATCH_S = 5.0

EXAMPLES = "Examples: tidegate status --cluster dev.yaml --watch; tidegate status -o json"


def status(
    context: typer.Context,
    cluster: ClusterOption,
    watch: Annotated[
        bool, typer.Option("--watch", help=f"Again every {WATCH_S:.0f} s, until Ctrl-C.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show queue, pools, hours, and what needs a look.

    Exit codes: 0 nothing to see to, 3 something needs a look (it is said), 1 trouble.
    """
    from tidegate.cli.live import told
    from tidegate.cli.shown import encoded
    from tidegate.wire.config import load_cluster

    if watch and output.is_data:
        raise typer.BadParameter("--watch is for people, --output for programs")
    with told():
        file = load_cluster(cluster)
        if watch:
            _watch(file, context.obj)
            return
        found = seen(file, context.obj)
    if output.is_data:
        typer.echo(encoded(found, output))
    else:
        from tidegate.cli.shown import show
        from tidegate.cli.status_screen import screen

        show(screen(found, is_wrapped=False), output)
    raise typer.Exit(NEEDS_A_LOOK if found.needs_a_look else 0)


def seen(file: "ClusterFile", clients: "Clients | None" = None) -> "Overview":
    """The cluster at a glance. Errors: as `live`."""
    from tidegate.cli.live import alarms, live
    from tidegate.core.explain.overview import overview

    observed: LiveCluster = live(file, clients)
    verdicts = observed.decisions.newest()
    dead = observed.unjudged(verdicts)
    notes = (*observed.notes, *observed.head_trouble())
    return overview(observed.snapshot, verdicts, notes, alarms(file, clients), dead)


def _watch(file: "ClusterFile", clients: "Clients | None") -> None:
    import time

    from rich.console import RenderableType
    from rich.live import Live

    from tidegate.cli.shown import console
    from tidegate.cli.status_screen import screen

    def now() -> RenderableType:
        return screen(seen(file, clients), is_wrapped=True)

    try:
        with Live(now(), console=console(), auto_refresh=False) as live:
            while True:
                time.sleep(WATCH_S)
                live.update(now(), refresh=True)
    except KeyboardInterrupt:
        return
