"""`tidegate simulate`: the real control loop in drawn worlds, under every invariant."""

import re
import sys
import time
from typing import Annotated

import typer

from tidegate.cli.progress import progress

EXAMPLES = "Examples: tidegate simulate --seeds 0:300; ... --seeds 7:8 --trace"


def simulate(
    seeds: Annotated[str, typer.Option(metavar="A:B", help="Seeds from A up to B, without B.")],
    faults: Annotated[
        str,
        typer.Option(help="none, some (each seed has its own), all, or names: kill,spot."),
    ] = "some",
    size: Annotated[str, typer.Option(help="Only small, medium or large worlds.")] = "",
    jobs: Annotated[str, typer.Option(help="Only these submissions: 0,3 or none.")] = "",
    until: Annotated[float | None, typer.Option(help="Faults end after so many seconds.")] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show every decision.")] = False,
    shrinks: Annotated[bool, typer.Option("--shrink", help="Make a failure short.")] = False,
    goes_on: Annotated[bool, typer.Option("--keep-going", help="Not only the first.")] = False,
) -> None:
    """Run drawn worlds, with faults, against the planner.

    Exit codes: 0 every invariant holds in all of them, 1 one breaks.
    """
    from tidegate.sim.draw import draw
    from tidegate.sim.report import Tally, command, failure
    from tidegate.sim.shrink import narrowed, shrink
    from tidegate.sim.story import Story, many

    first, end = _range(seeds)
    kinds, numbers, size = _faults(faults), _jobs(jobs), _size(size)
    tally = Tally()
    began_s, cpu_from_s = time.monotonic(), time.process_time()
    with progress("worlds", sys.stderr) as tell:
        for seed in range(first, end):
            tell(seed - first, end - first)
            options = narrowed(draw(seed, kinds, size), numbers, until)
            with many():
                ended = Story(options, keeps_all=trace).play()
            tally.add(ended)
            if ended.broken:
                short = shrink(ended, size) if shrinks else ended
                again = command(short.options, draw(seed, short.options.faults, size), size)
                typer.echo(failure(short, again, is_whole=trace))
            elif trace:
                typer.echo("\n".join((options.describe(), *ended.trace)))
            if ended.broken and not goes_on:
                break
    typer.echo(tally.summary(time.monotonic() - began_s, time.process_time() - cpu_from_s))
    if tally.broken:
        raise typer.Exit(code=1)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,18}", text) is not None


def _range(text: str) -> tuple[int, int]:
    first, colon, end = text.partition(":")
    if not _is_number(first) or (colon and not _is_number(end)):
        raise typer.BadParameter(f"{text!r} is no range like 0:100", param_hint="--seeds")
    seeds = int(first), int(end) if colon else int(first) + 1
    if seeds[0] >= seeds[1]:
        raise typer.BadParameter(f"{text!r} has no seed in it", param_hint="--seeds")
    return seeds


def _faults(text: str) -> frozenset[str] | None:
    """None: each seed draws its own."""
    from tidegate.sim.options import FAULTS

    few = {"some": None, "none": frozenset[str](), "all": frozenset(FAULTS)}
    if text in few:
        return few[text]
    names = frozenset(text.split(","))
    if strange := sorted(names.difference(FAULTS)):
        said = f"there is no {', '.join(strange)}; there are {', '.join(FAULTS)}"
        raise typer.BadParameter(said, param_hint="--faults")
    return names


def _size(text: str) -> str:
    from tidegate.sim.draw import SIZES

    if text and text not in SIZES:
        raise typer.BadParameter(f"{text!r} is none of {', '.join(SIZES)}", param_hint="--size")
    return text


def _jobs(text: str) -> frozenset[int] | None:
    words = [word for word in text.split(",") if word and word != "none"]
    if not all(map(_is_number, words)):
        raise typer.BadParameter(f"{text!r} is no list like 0,3", param_hint="--jobs")
    return frozenset(map(int, words)) if text else None
