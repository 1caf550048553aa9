"""`make demo`: tells the story and exits 0 only when every step of it happened."""

import os
import shutil
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.live import Live

from local.demo.cluster import write_cluster_file
from local.demo.report import report, summary, write
from local.demo.screen import render
from local.demo.sim_stage import SimStage
from local.demo.stage import TIME_SCALE, Stage
from local.demo.story import DidNotHappen, Story, Told
from local.namespaces import can_enter, enter
from tidegate.sim.clock import SimClock
from tidegate.wire.config import load_cluster

REPORT_FILE = Path("demo-report.json")

# A smaller terminal gets a line per step instead of the live table.
MIN_LINES = 40


def main() -> int:
    console = Console()
    wanted = os.environ.get("SLURM", "auto")
    if wanted not in ("auto", "real", "sim"):
        console.print(f"SLURM must be real, sim or auto, is {wanted!r}")
        return 2
    why_not = can_enter()
    if wanted == "real" and why_not:
        console.print(f"SLURM=real is not possible here: {why_not}")
        return 2
    if wanted == "sim" or why_not:
        because = "SLURM=sim asks for it" if wanted == "sim" else why_not
        console.print(f"Simulated Slurm, EC2 and machines, because {because}.")
        return play_simulated(console)
    console.print(
        "Real Slurm daemons in namespaces, the CDK app's own template deployed into moto as AWS.",
        soft_wrap=True,
    )
    console.print(
        "Synthesizing, deploying, booting the head: munged, slurmctld, the agent (about 15 s) ...",
        soft_wrap=True,
    )
    enter()
    return play_real(console)


def play_simulated(console: Console) -> int:
    pace = 0.05 if console.is_terminal else 0.0
    with TemporaryDirectory() as folder:
        file = load_cluster(write_cluster_file(Path(folder), SimClock().now_s()))
    assert file.schedules
    return play(SimStage(file.cluster, file.schedules, pace=pace), console, slurm="sim")


def play_real(console: Console) -> int:
    from local.demo.real_stage import HeadDidNotBoot, RealStage

    with TemporaryDirectory() as folder:
        try:
            with RealStage(write_cluster_file(Path(folder), time.time())) as stage:
                stage.wait(0)
                return play(stage, console, slurm=stage.seen.reading.version)
        except HeadDidNotBoot as trouble:
            console.print(f"[bold red]The demo failed:[/] {trouble}")
            return 1


def play(stage: Stage, console: Console, *, slurm: str) -> int:
    """Tell the story with the live table, or line by line where nobody watches."""
    started_s, failure, told = stage.now_s(), "", Told()
    watched = console.is_terminal and shutil.get_terminal_size().lines >= MIN_LINES
    steps: list[str] = []
    with Live(console=console, auto_refresh=False) if watched else nullcontext() as live:

        def say(what: str) -> None:
            steps.append(what)
            if live is None:
                console.print(f"{stage.now_s() - started_s:6.1f} s  {what}", soft_wrap=True)

        def show() -> None:
            if live is not None:
                last_step = steps[-1] if steps else ""
                live.update(render(stage, started_s, last_step), refresh=True)

        try:
            Story(stage, say, show, told=told).run()
        except DidNotHappen as missing:
            failure = str(missing)
    figures = report(stage, told, time_scale=TIME_SCALE, slurm=slurm)
    write(figures, REPORT_FILE)
    console.print(summary(figures))
    if failure:
        console.print(f"[bold red]The demo failed:[/] {failure}")
        console.print(render(stage, started_s, failure))
        for at_s, text in list(stage.seen.decisions)[-12:]:
            console.print(f"{at_s - started_s:6.1f} s  {text}")
        for line in stage.last_words():
            console.print(line, soft_wrap=True, markup=False)
        return 1
    console.print(f"Every step happened. Figures: {REPORT_FILE}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("Interrupted; nothing is left behind.", file=sys.stderr)
        sys.exit(130)
