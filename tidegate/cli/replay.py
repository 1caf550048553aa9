"""`tidegate replay`: your own job history on another cluster file, and what it would cost."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import ClustersOption, Output, OutputOption
from tidegate.cli.progress import progress
from tidegate.cli.written import new_file
from tidegate.core.model.frozen import frozen
from tidegate.core.model.text import printable, printable_lines

if TYPE_CHECKING:
    from tidegate.sim.replay.gate import Gate
    from tidegate.sim.replay.market import Conditions
    from tidegate.sim.replay.outcome import Outcome
    from tidegate.sim.replay.run import Replayed
    from tidegate.sim.replay.trace import Trace

EXAMPLES = "Examples: tidegate replay history.txt --cluster dev.yaml --report report.html"


def replay(
    history: Annotated[
        Path, typer.Argument(metavar="TRACE", help="`sacct -P` export or CSV, also gzipped.")
    ],
    cluster: ClustersOption,
    policy: Annotated[
        list[str] | None,
        typer.Option(help="tidegate, or a model of another; several are compared."),
    ] = None,
    boot: Annotated[
        float | None, typer.Option(min=0, help="Seconds from launch to joined; else each pool's.")
    ] = None,
    sigma: Annotated[
        float, typer.Option(min=0, max=3, help="Error of time limits that the history lacks.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
    is_lenient: Annotated[bool, typer.Option("--lenient", help="Skip broken lines.")] = False,
    market: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Spot prices, hazards and capacity; see docs/replay.md."),
    ] = None,
    fail_if: Annotated[
        list[str] | None, typer.Option(help="Exit code 3 if so: 'cost_usd > 1.05 * baseline'.")
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--figures", metavar="FILE", callback=new_file, help="The figures for programs."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", callback=new_file, help="Pictures: one HTML file, no links."),
    ] = None,
    is_frontier: Annotated[
        bool,
        typer.Option(
            "--frontier", help="One cluster file at several prices of waiting, beside its peers."
        ),
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Play a job history on cluster files: cost and waits. Exit code 3: --fail-if says so."""
    names = _policies(policy or ["tidegate"])
    if is_frontier and (len(cluster) > 1 or policy):
        said = "takes one --cluster and no --policy: it plays the peers by itself"
        raise typer.BadParameter(said, param_hint="--frontier")
    asked = _asked(history, cluster, market, fail_if or [], is_lenient=is_lenient)
    told = _Told(history.name, output, json_file, report)
    if is_frontier:
        outcomes = _frontier(asked, told, boot, sigma, seed)
    else:
        outcomes = _compared(asked, told, names, boot, sigma, seed)
    _judge(asked, outcomes)


def _judge(asked: "_Asked", outcomes: "list[Outcome]") -> None:
    failures = [failure for gate in asked.gates for failure in gate.failures(outcomes)]
    for failure in failures:
        typer.echo(f"gate: {failure}", err=True)
    if failures:
        raise typer.Exit(code=3)


@frozen
class _Told:
    """How an answer is told, and of which history."""

    history: str
    output: Output
    json_file: Path | None
    report: Path | None

    def figures(self, table: str, outcomes: "list[Outcome]") -> None:
        """The table or data, and the file of figures that was asked for."""
        from tidegate.cli.shown import in_format
        from tidegate.sim.replay.show import as_json

        figures = as_json(outcomes)
        typer.echo(in_format(figures, self.output) if self.output.is_data else table)
        if self.json_file:
            self.json_file.write_text(figures, encoding="utf-8")


def _frontier(
    asked: "_Asked", told: _Told, boot_s: float | None, sigma: float, seed: int
) -> "list[Outcome]":
    """Play it, and tell it as was asked."""
    import sys

    from tidegate.sim.replay.frontier import as_rows, frontier
    from tidegate.sim.replay.show import columns
    from tidegate.sim.replay.world import Setting

    (of,) = asked.markets
    setting = Setting(boot_s, sigma, seed, of.prices, of.capacity)
    with progress(f"{of.cluster.name} at several prices of waiting", sys.stderr) as tell:
        points = frontier(asked.trace, of.cluster, setting, tell)
    outcomes = [each.outcome for each in points]
    told.figures("\n".join(columns(as_rows(points))), outcomes)
    if told.report:
        from tidegate.sim.replay.frontier_page import as_html

        told.report.write_text(as_html(points, told.history), encoding="utf-8")
    return outcomes


@frozen
class _Asked:
    """What was read; `markets`: each cluster in its market."""

    trace: "Trace"
    markets: "list[Conditions]"
    gates: "list[Gate]"


def _policies(names: list[str]) -> list[str]:
    from tidegate.sim.replay.run import POLICIES

    if strange := sorted(set(names) - set(POLICIES)):
        said = f"there is no {', '.join(strange)}; there are {', '.join(POLICIES)}"
        raise typer.BadParameter(said, param_hint="--policy")
    return names


def _asked(
    history: Path, files: list[Path], market: Path | None, gates: list[str], *, is_lenient: bool
) -> _Asked:
    """Everything that is read. What is wrong is told, and ends the command with 1."""
    from tidegate.core.model.errors import BadConfig
    from tidegate.sim.replay.gate import BadGate, Gate
    from tidegate.sim.replay.market import BadMarket, conditions
    from tidegate.sim.replay.trace import BadTrace
    from tidegate.wire.config import load_cluster

    try:
        texts = _market_files(market)
        clusters = [load_cluster(path) for path in files]
        trace = read_history(history, is_lenient=is_lenient)
        markets = [conditions(c.cluster, c.region, texts, trace.starts_at_s) for c in clusters]
        return _Asked(trace, markets, [Gate(text) for text in gates])
    except (BadConfig, BadTrace, BadMarket, BadGate) as error:
        typer.echo(printable_lines(str(error)), err=True)
        raise typer.Exit(code=1) from error


def _played(
    asked: _Asked, names: list[str], *, boot_s: float | None, sigma: float, seed: int
) -> "list[Replayed]":
    """Every policy on every cluster. Errors: BadConfig."""
    import sys

    from tidegate.sim.replay.run import replay as play
    from tidegate.sim.replay.world import Setting

    ended = []
    for each in asked.markets:
        setting = Setting(boot_s, sigma, seed, each.prices, each.capacity)
        for name in names:
            with progress(f"{each.cluster.name} {name}", sys.stderr) as tell:
                ended.append(play(asked.trace, each.cluster, setting, name, progress=tell))
    return ended


def _compared(
    asked: _Asked, told: _Told, names: list[str], boot_s: float | None, sigma: float, seed: int
) -> "list[Outcome]":
    """Play every policy, and tell it as was asked."""
    from tidegate.core.model.errors import BadConfig
    from tidegate.sim.replay.show import as_text

    try:
        ended = _played(asked, names, boot_s=boot_s, sigma=sigma, seed=seed)
    except BadConfig as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=1) from error
    outcomes = [each.outcome for each in ended]
    told.figures(as_text(outcomes), outcomes)
    if told.report:
        from tidegate.sim.replay.draw import as_html

        told.report.write_text(as_html(ended, told.history), encoding="utf-8")
    return outcomes


def _market_files(folder: Path | None) -> dict[str, str]:
    """The texts of a market's files, by name. Errors: BadConfig; BadMarket: the folder has none."""
    from tidegate.sim.replay.market import FILES, BadMarket
    from tidegate.wire.yaml_file import read_text

    if folder is None:
        return {}
    found = {name: read_text(folder / name) for name in FILES if (folder / name).is_file()}
    if not found:
        raise BadMarket(f"{folder}: none of {', '.join(FILES)} is there")
    return found


def read_history(path: Path, *, is_lenient: bool = False) -> "Trace":
    """The history, with what was left out told on stderr. Errors: BadConfig, BadTrace."""
    return history_of(history_text(path), str(path), is_lenient=is_lenient)


def history_text(path: Path) -> str:
    """Of a file, also gzipped. Errors: BadConfig, BadTrace."""
    import gzip
    import zlib

    from tidegate.sim.replay.trace import BadTrace
    from tidegate.wire.yaml_file import as_text, read_bytes

    raw = read_bytes(path)
    try:
        unpacked = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise BadTrace(f"{path}: not a whole gzip file: {error}") from error
    return as_text(unpacked, path)


def _lines(count: int, of: str = "") -> str:
    return f"{count} {of}line{'s' * (count != 1)}"


def history_of(text: str, source: str, *, is_lenient: bool) -> "Trace":
    """The jobs of a text, with what was left out told on stderr. Errors: BadTrace."""
    from tidegate.sim.replay.trace import BadTrace, read_trace

    source = printable(source)
    try:
        trace = read_trace(text, is_lenient=is_lenient)
    except BadTrace as error:
        raise BadTrace(f"{source}: {error}") from error
    for broken in trace.broken[:10]:
        typer.echo(f"{source}: skipped {broken}", err=True)
    if trace.broken:
        typer.echo(f"{source}: {_lines(len(trace.broken), 'broken ')} skipped", err=True)
    for reason, count in trace.skipped:
        typer.echo(f"{source}: {_lines(count)} left out: {reason}", err=True)
    return trace
