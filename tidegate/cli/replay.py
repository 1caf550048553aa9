"""`tidegate replay`: your own job history on another cluster file, and what it would cost."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tidegate.sim.replay.trace import Trace

PROGRESS_S = 1.0


def replay(
    history: Annotated[
        Path, typer.Argument(metavar="TRACE", help="`sacct -P` export or CSV, also gzipped.")
    ],
    cluster: Annotated[
        list[Path], typer.Option(metavar="FILE", help="A cluster file; several are compared.")
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(help="tidegate, or a model of another; several are compared."),
    ] = None,
    boot: Annotated[float, typer.Option(min=0, help="Seconds from launch to joined.")] = 300.0,
    sigma: Annotated[
        float, typer.Option(min=0, max=3, help="Error of time limits that the history lacks.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
    is_lenient: Annotated[bool, typer.Option("--lenient", help="Skip broken lines.")] = False,
    market: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="spot_prices.csv, hazards.csv, capacity.csv."),
    ] = None,
    fail_if: Annotated[
        list[str] | None, typer.Option(help="Exit code 3 if so: 'cost_usd > 1.05 * baseline'.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="The figures for programs.")
    ] = None,
) -> None:
    """Play a job history on cluster files; show cost, waits and launches side by side."""
    from tidegate.core.errors import BadConfig
    from tidegate.sim.replay.gate import BadGate, Gate
    from tidegate.sim.replay.market import BadMarket, capacities, with_market
    from tidegate.sim.replay.run import POLICIES, TIDEGATE
    from tidegate.sim.replay.run import replay as play
    from tidegate.sim.replay.show import as_json, as_text
    from tidegate.sim.replay.trace import BadTrace
    from tidegate.sim.replay.world import Setting
    from tidegate.wire.config import load_cluster

    names = policy or [TIDEGATE]
    if strange := sorted(set(names) - set(POLICIES)):
        said = f"there is no {', '.join(strange)}; there are {', '.join(POLICIES)}"
        raise typer.BadParameter(said, param_hint="--policy")
    try:
        trace = _read(history, is_lenient=is_lenient)
        files = _market_files(market)
        clusters = [with_market(load_cluster(path).cluster, files) for path in cluster]
        held = [capacities(each, files) for each in clusters]
        gates = [Gate(text) for text in fail_if or ()]
    except (BadConfig, BadTrace, BadMarket, BadGate) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=1) from error
    ended = [
        play(
            trace,
            each,
            Setting(boot_s=boot, error_sigma=sigma, seed=seed, capacity=capacity),
            name,
            progress=_progress(f"{each.name} {name}"),
        )
        for each, capacity in zip(clusters, held, strict=True)
        for name in names
    ]
    outcomes = [each.outcome for each in ended]
    typer.echo(as_text(outcomes))
    if json_file:
        json_file.write_text(as_json(outcomes), encoding="utf-8")
    failures = [failure for gate in gates for failure in gate.failures(outcomes)]
    for failure in failures:
        typer.echo(f"gate: {failure}", err=True)
    if failures:
        raise typer.Exit(code=3)


def _market_files(folder: Path | None) -> dict[str, str]:
    """The texts of a market's files, by name. Errors: BadMarket when the folder has none."""
    from tidegate.sim.replay.market import BadMarket

    if folder is None:
        return {}
    names = ("spot_prices.csv", "hazards.csv", "capacity.csv")
    found = {name: (folder / name).read_text() for name in names if (folder / name).is_file()}
    if not found:
        raise BadMarket(f"{folder}: none of {', '.join(names)} is there")
    return found


def _read(path: Path, *, is_lenient: bool) -> "Trace":
    """The history, with what was left out told on stderr. Errors: BadTrace."""
    import gzip

    from tidegate.sim.replay.trace import BadTrace, read_trace

    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise BadTrace(f"{path}: {error}") from error
    try:
        trace = read_trace(text, is_lenient=is_lenient)
    except BadTrace as error:
        raise BadTrace(f"{path}: {error}") from error
    for broken in trace.broken[:10]:
        typer.echo(f"{path}: skipped {broken}", err=True)
    if trace.broken:
        typer.echo(f"{path}: {len(trace.broken)} broken lines skipped", err=True)
    for reason, count in trace.skipped:
        typer.echo(f"{path}: {count} lines left out: {reason}", err=True)
    return trace


def _progress(what: str) -> Callable[[int, int], None]:
    """Tells how far a replay is, on stderr, where it is a terminal."""
    import sys

    told_s = time.monotonic()

    def tell(done: int, of: int) -> None:
        nonlocal told_s
        if sys.stderr.isatty() and (time.monotonic() - told_s > PROGRESS_S or done == of):
            told_s = time.monotonic()
            full = 30 * done // of
            bar = "#" * full + "." * (30 - full)
            typer.echo(f"\r{what} [{bar}] {done} of {of} jobs", nl=done == of, err=True)

    return tell
