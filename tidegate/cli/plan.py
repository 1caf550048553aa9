"""`tidegate plan`: the dry run. From a snapshot in a file, or from AWS as it is now."""

from pathlib import Path
from typing import Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption
from tidegate.cli.written import new_file

EXAMPLES = "Examples: tidegate plan --cluster dev.yaml --live; ... --snapshot snapshot.json"


def plan(
    cluster: ClusterOption,
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
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what the planner would do and why; change nothing. Exit code 1 on bad input."""
    from tidegate.core.model.errors import BadConfig, TidegateError

    if (snapshot is None) != live:
        raise typer.BadParameter("give either --snapshot FILE or --live")
    if not live and (save or ec2_dry_run):
        raise typer.BadParameter("--save and --ec2-dry-run belong to --live")
    try:
        if snapshot:
            _plan_file(cluster, snapshot, output)
        else:
            _plan_live(cluster, save, output, is_dry_run=ec2_dry_run)
    except (BadConfig, TidegateError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=1) from error


def _plan_file(cluster_path: Path, path: Path, output: Output) -> None:
    from tidegate.core.planner import plan as make_plan
    from tidegate.wire.config import load_cluster
    from tidegate.wire.snapshot import decode_snapshot
    from tidegate.wire.yaml_file import read_text

    cluster = load_cluster(cluster_path).cluster
    read = decode_snapshot(read_text(path), cluster, str(path))
    _show(make_plan(read.snapshot), read.snapshot, read.notes, output)


def _plan_live(cluster_path: Path, save: Path | None, output: Output, *, is_dry_run: bool) -> None:
    from tidegate.cli.live import live
    from tidegate.core.planner import plan as make_plan
    from tidegate.wire.config import load_cluster
    from tidegate.wire.snapshot import encode_snapshot

    observed = live(load_cluster(cluster_path))
    if save:
        save.write_text(encode_snapshot(observed.snapshot), encoding="utf-8")
    made = make_plan(observed.snapshot)
    notes = (*observed.notes, *(observed.dry_run(made) if is_dry_run else ()))
    _show(made, observed.snapshot, notes, output)


def _show(made: object, snapshot: object, notes: tuple[str, ...], output: Output) -> None:
    from tidegate.cli.shown import in_format
    from tidegate.core.explain.plan import describe
    from tidegate.core.model.plan import Plan
    from tidegate.core.model.snapshot import Snapshot
    from tidegate.wire.plan import encode_plan

    assert isinstance(made, Plan)
    assert isinstance(snapshot, Snapshot)
    if output.is_data:
        typer.echo(in_format(encode_plan(made, snapshot, notes), output))
        return
    for note in notes:
        typer.echo(note)
    typer.echo(describe(made))
    typer.echo(f"after it the cluster costs at most {made.usd_per_hour:.2f} USD per hour")
