"""`tidegate advise`: which jobs ask more than they use, and what asking less would have saved."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption
from tidegate.cli.written import new_file

if TYPE_CHECKING:
    from tidegate.sim.advise.proof import Advised
    from tidegate.sim.advise.usage import Ran
    from tidegate.sim.replay.trace import Trace
    from tidegate.wire.config import ClusterFile
    from tidegate.wiring.resources import Clients

EXAMPLES = (
    "Examples: tidegate advise --cluster dev.yaml --since 60d;"
    " tidegate advise history.txt --cluster dev.yaml -o json"
)


def advise(
    context: typer.Context,
    cluster: ClusterOption,
    history: Annotated[
        Path | None,
        typer.Argument(metavar="[TRACE]", help="`sacct -P` export, also gzipped; else the head's."),
    ] = None,
    since: Annotated[
        str, typer.Option(metavar="MOMENT", help="Of the head: a span back, or a day in UTC.")
    ] = "30d",
    margin: Annotated[
        float, typer.Option(min=0.1, max=3, help="Above the most that was used: 0.25 is a quarter.")
    ] = 0.25,
    most: Annotated[
        int, typer.Option(min=1, max=100, help="How many classes of jobs are played.")
    ] = 8,
    boot: Annotated[
        float | None, typer.Option(min=0, help="Seconds from launch to joined; else each pool's.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
    is_lenient: Annotated[bool, typer.Option("--lenient", help="Skip broken lines.")] = False,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE", callback=new_file, help="Put it there, for classes that opt in to it."
        ),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show which jobs ask for more than they use.

    GPUs, memory, CPUs or time, and what asking less would have saved: the history is replayed with
    and without. Of what is not sure nothing is said.
    """
    import sys

    from tidegate.cli.live import told
    from tidegate.cli.progress import progress
    from tidegate.core.model.errors import BadConfig
    from tidegate.sim.advise.proof import Studied
    from tidegate.sim.replay.trace import BadTrace
    from tidegate.sim.replay.world import Setting
    from tidegate.wire.config import load_cluster

    with told():
        file = load_cluster(cluster)
        try:
            trace, runs = _read(file, history, since, context.obj, is_lenient=is_lenient)
        except BadTrace as error:
            raise BadConfig(str(error)) from error
        setting = Setting(boot_s=boot, seed=seed)
        studied = Studied(runs, trace, file.cluster, setting, margin, most)
        with progress(f"{file.cluster.name} with smaller requests", sys.stderr) as tell:
            found = studied.advised(tell)
        written = _written(write, found, file, trace, runs) if write else ()
    _tell(found, written, output)


def _tell(found: "Advised", written: tuple[str, ...], output: Output) -> None:
    from tidegate.cli.advised import as_data, lines
    from tidegate.cli.shown import filled, in_format

    if output.is_data:
        import json

        typer.echo(in_format(json.dumps(as_data(found), indent=2), output))
        return
    for line in (*lines(found), *written):
        typer.echo(filled(line, indent=len(line) - len(line.lstrip()) + 2, output=output))


def _written(
    path: Path, found: "Advised", file: "ClusterFile", trace: "Trace", runs: "tuple[Ran, ...]"
) -> tuple[str, ...]:
    """What is said of the table. Errors: BadConfig."""
    import time

    from tidegate.cli.advice_table import lines, table, write
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.advice import MAX_AGE_DAYS

    policy = file.slurm.advice
    made = table(
        found.advice,
        file.advised,
        runs,
        starts_at_s=trace.starts_at_s,
        now_s=time.time(),
        max_age_days=policy.max_age_days if policy else MAX_AGE_DAYS,
    )
    try:
        write(path, file.cluster.name, made)
    except OSError as error:
        raise BadConfig(f"{path} cannot be written: {error.strerror}") from error
    return tuple(lines(path, made, policy))


def _read(
    file: "ClusterFile",
    history: Path | None,
    since: str,
    clients: "Clients | None",
    *,
    is_lenient: bool,
) -> "tuple[Trace, tuple[Ran, ...]]":
    """Errors: BadTrace, BadConfig; without a file those of `head_history`."""
    from tidegate.cli.ran import head_history
    from tidegate.cli.replay import history_of, history_text
    from tidegate.sim.advise.usage import ASKED_COLUMNS, parted, read_usage

    if history:
        text, source = history_text(history), str(history)
    else:
        text = head_history(file, since, ASKED_COLUMNS, clients)
        source = f"sacct of {file.cluster.name}"
    text, told = parted(text)
    trace = history_of(text, source, is_lenient=is_lenient)
    sums_gpus = _sums_gpus(file.slurm.version)
    return trace, read_usage(text, trace, sums_gpus=sums_gpus, gpus_told=told)


def _sums_gpus(version: str) -> bool:
    """Whether this Slurm records what all GPUs of a task did; before 24.05.1 it was the last one's.

    Source: Slurm's change log of 24.05.1, gpu/nvml.
    """
    return tuple(map(int, version.split("."))) > (24, 5)
