"""`tidegate plan`: the dry run. From a snapshot in a file, or from AWS as it is now."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tidegate.cli.written import new_file


class Format(StrEnum):
    """How a plan is shown."""

    TEXT = "text"
    JSON = "json"


EXAMPLES = "Examples: tidegate plan --cluster dev.yaml --live; ... --snapshot snapshot.json"


def plan(
    cluster: Annotated[Path, typer.Option(metavar="FILE", help="The cluster file.")],
    snapshot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A snapshot as JSON.")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Look at AWS now: ledger, EC2 and the head's digest.")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", callback=new_file, help="With --live: keep the snapshot here."
        ),
    ] = None,
    ec2_dry_run: Annotated[
        bool,
        typer.Option("--ec2-dry-run", help="With --live: ask EC2 whether it would take each call."),
    ] = False,
    format: Annotated[Format, typer.Option(help="For people or for programs.")] = Format.TEXT,
) -> None:
    """Show what the planner would do and why; change nothing. Exit code 1 on bad input."""
    from tidegate.core.model.errors import BadConfig, TidegateError

    if (snapshot is None) != live:
        raise typer.BadParameter("give either --snapshot FILE or --live")
    if not live and (save or ec2_dry_run):
        raise typer.BadParameter("--save and --ec2-dry-run belong to --live")
    try:
        if snapshot:
            _plan_file(cluster, snapshot, format)
        else:
            _plan_live(cluster, save, format, is_dry_run=ec2_dry_run)
    except (BadConfig, TidegateError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=1) from error


def _plan_file(cluster_path: Path, path: Path, format: Format) -> None:
    from tidegate.core.planner import plan as make_plan
    from tidegate.wire.config import load_cluster
    from tidegate.wire.snapshot import decode_snapshot
    from tidegate.wire.yaml_file import read_text

    cluster = load_cluster(cluster_path).cluster
    read = decode_snapshot(read_text(path), cluster, str(path))
    _show(make_plan(read.snapshot), read.snapshot, read.notes, format)


def _plan_live(cluster_path: Path, save: Path | None, format: Format, *, is_dry_run: bool) -> None:
    from tidegate.cli.live import live
    from tidegate.core.planner import plan as make_plan
    from tidegate.wire.config import load_cluster
    from tidegate.wire.snapshot import encode_snapshot

    observed = live(load_cluster(cluster_path))
    if save:
        save.write_text(encode_snapshot(observed.snapshot), encoding="utf-8")
    made = make_plan(observed.snapshot)
    notes = (*observed.notes, *(observed.dry_run(made) if is_dry_run else ()))
    _show(made, observed.snapshot, notes, format)


def _show(made: object, snapshot: object, notes: tuple[str, ...], format: Format) -> None:
    from tidegate.core.explain.plan import describe
    from tidegate.core.model.plan import Plan
    from tidegate.core.model.snapshot import Snapshot
    from tidegate.wire.plan import encode_plan

    assert isinstance(made, Plan)
    assert isinstance(snapshot, Snapshot)
    if format is Format.JSON:
        typer.echo(encode_plan(made, snapshot, notes), nl=False)
        return
    for note in notes:
        typer.echo(note)
    typer.echo(describe(made))
    typer.echo(f"after it the cluster costs at most {made.usd_per_hour:.2f} USD per hour")
