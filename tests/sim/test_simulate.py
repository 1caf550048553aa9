"""Whole drawn worlds under every invariant, and the command that runs them."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tidegate.cli.main import app
from tidegate.sim.checks import CHECKS, Check
from tidegate.sim.draw import draw
from tidegate.sim.options import FAULTS, WorldOptions
from tidegate.sim.report import command, failure
from tidegate.sim.shrink import narrowed, shrink
from tidegate.sim.slurm_parts import SimJob
from tidegate.sim.story import Ended, Story, many

# Those in which `make mutants` has each deliberate fault found; sweeps have their own command.
NUM_SEEDS = 500
CHUNK = 125


@cache
def played(seed: int) -> Ended:
    """How the world of a seed ends; it is played once for all that ask."""
    return Story(draw(seed)).play()


@pytest.mark.parametrize("first", range(0, NUM_SEEDS, CHUNK))
def test_every_invariant_holds_in_drawn_worlds(first: int) -> None:
    with many():
        for seed in range(first, first + CHUNK):
            ended = played(seed)
            assert ended.broken is None, failure(ended, command(ended.options, ended.options))


@pytest.mark.parametrize(
    "seed",
    [
        2192,
        2200,
        4310,
        5007,
        40_000_248,
        74_001_357,
        74_003_105,
        74_004_495,
        74_101_760,
        74_102_257,
        74_108_856,
        74_200_531,
        74_200_947,
        76_000_224,
        80_022_511,
    ],
)
def test_worlds_that_broke_a_check_once_break_none(seed: int) -> None:
    ended = Story(draw(seed)).play()

    assert ended.broken is None, failure(ended, command(ended.options, ended.options))


# One world of a hundred tests a node that fails it: most nodes work, and are tested when they idle.
FAILS_A_TEST = 174


def test_the_worlds_have_every_fault_and_really_do_something() -> None:
    stories = [played(seed) for seed in (*range(60), FAILS_A_TEST)]

    injected = {name for ended in stories for name in ended.injected}
    assert injected == set(FAULTS)
    assert sum(ended.num_launched for ended in stories) > 150
    assert {ended.options.size for ended in stories} == {"small", "medium", "large"}


def test_a_seed_tells_the_same_story_in_every_process() -> None:
    """Sets of strings have another order in each; the story must not follow it."""
    words = [sys.executable, "-m", "tidegate.cli.main", "simulate", "--seeds", "0:24", "--trace"]
    told: list[str] = []
    for number in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": number}
        ran = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
        told.append(ran.stdout.rsplit("seeds in", 1)[0])

    assert told[0] == told[1]
    assert "EC2 launches" in told[0]


def test_leaving_out_a_fault_or_a_job_leaves_the_rest_as_it_was() -> None:
    whole = draw(25)
    fewer = draw(25, whole.faults - {"spot"})

    assert fewer.shortages == whole.shortages
    assert fewer.arrivals == whole.arrivals
    assert fewer.cluster == whole.cluster
    kept = narrowed(whole, jobs=frozenset({1, 2})).arrivals
    assert kept == tuple(each for each in whole.arrivals if each.number in (1, 2))


class NothingBigStarts(Check):
    """No job with more than one GPU starts."""

    def started(self, job: SimJob) -> None:
        if job.submit.shape.gpus > 1:
            raise self.broken(f"job {job.job_id} did")


def play(options: WorldOptions) -> Ended:
    return Story(options, kinds=(*CHECKS, NothingBigStarts)).play()


def test_a_failure_shows_seed_step_check_decisions_and_the_command_that_repeats_it() -> None:
    ended = play(draw(1, ()))

    told = failure(ended, command(ended.options, draw(1, ())))

    assert told.startswith(f"seed 1, step {ended.step}, ")
    assert "NothingBigStarts: job" in told
    assert "No job with more than one GPU starts." in told
    assert "launch 1 x g4dn.12xlarge" in told
    assert told.endswith("again: tidegate simulate --seeds 1:2 --faults none")


def test_a_shrunk_story_breaks_the_same_check_with_less() -> None:
    whole = play(draw(1, FAULTS))

    short = shrink(whole, play=play)

    assert short.broken is not None
    assert short.broken.check == "NothingBigStarts"
    assert short.options.faults == frozenset()
    assert len(short.options.arrivals) == 1
    assert play(short.options).broken is not None


def test_the_command_names_what_was_left_out() -> None:
    drawn = draw(1, {"spot", "kill"})

    short = narrowed(drawn, frozenset({2}), 60.0)

    assert command(short, drawn) == (
        "tidegate simulate --seeds 1:2 --faults kill,spot --jobs 2 --until 60"
    )


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["simulate", *words])


def test_the_command_prints_figures_and_ends_well() -> None:
    ran = run("--seeds", "3:5", "--faults", "none")

    assert ran.exit_code == 0
    assert "2 seeds in" in ran.output
    assert "failed: none" in ran.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seeds", "x"), "no range"),
        (("--seeds", "5:5"), "no seed in it"),
        (("--seeds", "²:3"), "no range"),
        (("--seeds", "9" * 5000), "no range"),
        (("--seeds", "1:2", "--jobs", "²"), "no list"),
        (("--seeds", "1:2", "--faults", "rain"), "there is no rain"),
        (("--seeds", "1:2", "--size", "huge"), "none of small"),
        (("--seeds", "1:2", "--jobs", "a"), "no list"),
    ],
)
def test_what_cannot_be_read_is_said(words: tuple[str, ...], said: str) -> None:
    ran = run(*words)

    assert ran.exit_code == 2
    assert said in " ".join(ran.output.split())


def test_the_page_on_simulation_names_every_check() -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text()

    assert [check.__name__ for check in CHECKS if check.__name__ not in page] == []
