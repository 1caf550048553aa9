"""Slurm's commands of the simulated sandbox: what they ask for, and what they say."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from local.demo.cluster import write_cluster_file
from local.sandbox.asked import NeedsInput, NotAsked, asked_by
from local.sandbox.slurm_front import Line, SlurmFront
from tidegate.core.model.slurm import Shape
from tidegate.sim.clock import SimClock
from tidegate.sim.slurm import SimSlurm
from tidegate.sim.slurm_parts import Submit, node_of
from tidegate.wire.config import ClusterFile, load_cluster

MEMORY_MIB = 3891  # of a processor on a g4dn.xlarge


@dataclass
class OneHead:
    file: ClusterFile
    clock: SimClock = field(default_factory=SimClock)
    lock: threading.Lock = field(default_factory=threading.Lock)
    slurm: SimSlurm = field(init=False)
    front: SlurmFront = field(init=False)

    def __post_init__(self) -> None:
        self.slurm = SimSlurm(self.file.cluster, self.clock)
        self.front = SlurmFront(self)

    def pools_of_nodes(self) -> dict[str, str]:
        return dict.fromkeys(self.slurm.nodes, "t4")

    def joins(self, name: str) -> None:
        (t4, *_) = self.file.cluster.pools
        shape = t4.instance_types[0]
        features = t4.features(shape.name, t4.markets[0])
        self.slurm.register(node_of(name, shape, features, is_gated=False))
        self.passes(31.0)

    def passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.slurm.step()


@pytest.fixture
def head(tmp_path: Path) -> OneHead:
    return OneHead(load_cluster(write_cluster_file(tmp_path, SimClock().now_s())))


def asks(head: OneHead, line: str, *, wrap: str = "true", files: Path = Path("/")) -> Submit:
    argv = [*line.split(), "--wrap", wrap]
    return asked_by("sbatch", argv, None, files, "ada", head.file.cluster).submit


def typed(head: OneHead, *words: str, user: str = "ada", piped: str | None = None) -> str:
    """What is said; of what fails the exit code before it."""
    code, said = head.front.answer(Line(words, Path("/"), user, piped))
    return f"{code}: {said}" if code else said


# Source: sbatch(1): --gres is per node, --gpus of the whole job; tasks are spread over the nodes.
SHAPES: Mapping[str, tuple[int, Shape]] = {
    "": (1, Shape(cpus=1, memory_mib=MEMORY_MIB)),
    "--gres=gpu:t4:1": (1, Shape(1, "t4", 1, MEMORY_MIB)),
    "--gres=gpu": (1, Shape(1, "", 1, MEMORY_MIB)),
    "--gres=gpu:a10g": (1, Shape(1, "a10g", 1, MEMORY_MIB)),
    "-N 2 --gres=gpu:2": (2, Shape(2, "", 1, MEMORY_MIB)),
    "-N 2 -G 4": (2, Shape(2, "", 1, MEMORY_MIB)),
    "-N 2 --gpus=t4:3": (2, Shape(2, "t4", 1, MEMORY_MIB)),
    "-N 2 --gpus-per-node=t4:1": (2, Shape(1, "t4", 1, MEMORY_MIB)),
    "-n 6 -N 2 -c 2": (2, Shape(0, "", 6, 6 * MEMORY_MIB)),
    "--ntasks-per-node=3 --mem=2G": (1, Shape(0, "", 3, 2048)),
    "--exclusive --mem=500": (1, Shape(0, "", 1, 500, is_exclusive=True)),
}


@pytest.mark.parametrize("line", SHAPES)
def test_what_a_node_must_give(head: OneHead, line: str) -> None:
    submit = asks(head, line)

    assert (submit.nodes, submit.shape) == SHAPES[line]


@pytest.mark.parametrize(
    ("wrap", "line", "seconds"),
    [
        ("hostname; sleep 20", "", 20.0),
        ("sleep 2m; sleep 1.5s", "", 121.5),
        ("hostname", "", 30.0),
        ("sleep 1h", "-t 10", 600.0),
        ("sleep 1h", "-t 1-0", 3600.0),
        ("sleep 1h", "-t 2:30", 150.0),
        ("sleep 9h", "-t 1:02:03", 3723.0),
        ("sleep 9h", "-t 0-1:30", 5400.0),
    ],
)
def test_a_job_takes_as_long_as_its_script_sleeps(
    head: OneHead, wrap: str, line: str, seconds: float
) -> None:
    assert asks(head, line, wrap=wrap).duration_s == seconds


def test_a_scripts_directives_count_and_the_line_wins(head: OneHead, tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/bash\n#SBATCH -N 3 --gres=gpu:t4:1  # three\n#SBATCH -t 5\nsleep 9\n")

    asked = asked_by("sbatch", ["-N", "2", "train.sh"], None, tmp_path, "ada", head.file.cluster)

    assert asked.name == "train.sh"
    assert (asked.submit.nodes, asked.submit.shape.gpus, asked.submit.duration_s) == (2, 1, 9.0)
    assert asked.submit.time_limit_s == 300.0


def test_a_script_may_be_piped_in(head: OneHead) -> None:
    with pytest.raises(NeedsInput):
        asked_by("sbatch", ["-N", "2"], None, Path("/"), "ada", head.file.cluster)

    assert typed(head, "sbatch", "--parsable", piped="#!/bin/sh\nsleep 9\n") == "1"
    assert typed(head, "sbatch", piped="").startswith("1: sbatch: error: say what to run")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--array=0-9%2", (10, 2)),
        ("-a 1,3,5-6", (4, 0)),
        ("", (0, 0)),
    ],
)
def test_an_array_has_so_many_tasks(head: OneHead, line: str, said: tuple[int, int]) -> None:
    submit = asks(head, line)

    assert (submit.array, submit.throttle) == said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--array=x", "Invalid job array specification: x"),
        ("--mem=lots", "Invalid --mem specification: lots"),
        ("-t soon", "Invalid --time specification: soon"),
        ("-p nowhere", "invalid partition specified: nowhere"),
        ("--het-group=1", "unrecognized arguments"),
        ("-N two", "invalid int value"),
    ],
)
def test_what_is_wrong_is_said(head: OneHead, line: str, said: str) -> None:
    with pytest.raises(NotAsked, match=said):
        asks(head, line)


def test_a_job_from_its_submission_to_its_end(head: OneHead) -> None:
    assert typed(head, "sbatch", "--gres=gpu:t4:1", "--wrap", "sleep 40") == "Submitted batch job 1"
    waits = typed(head, "squeue", "-h", user="grace").split()
    assert waits[:6] == ["1", "gpu", "wrap", "ada", "PD", "0:00"]
    head.joins("i-1")
    assert typed(head, "squeue", "-h", "-t", "R").split()[-1] == "i-1"
    assert typed(head, "squeue", "-h", "-t", "PD") == ""
    assert "mix" in typed(head, "sinfo")
    assert "JobState=RUNNING" in typed(head, "scontrol", "show", "job", "1")
    head.passes(41.0)
    assert typed(head, "squeue", "-h") == ""
    assert "JobState=COMPLETED" in typed(head, "scontrol", "show", "job", "1")


def test_people_hold_drain_and_cancel(head: OneHead) -> None:
    head.joins("i-1")
    update = ("scontrol", "update", "NodeName=i-1")

    assert typed(head, *update, "State=drain").startswith("1: scontrol: error: You must specify")
    assert typed(head, *update, "State=drain", "Reason=fan") == ""
    assert "drain" in typed(head, "sinfo")
    assert typed(head, *update, "State=resume") == ""
    assert "idle" in typed(head, "sinfo")
    typed(head, "sbatch", "-H", "--wrap", "sleep 99")
    assert typed(head, "scontrol", "release", "1") == ""
    head.passes(31.0)
    assert "i-1" in typed(head, "squeue", "-h")
    assert typed(head, "scancel", "1") == ""
    assert typed(head, "squeue", "-h") == ""
    assert typed(head, "scancel", "7") == "1: scancel: error: Invalid job id specified: 7"


@pytest.mark.parametrize("command", ["squeue", "sinfo", "scancel 1", "scontrol show job"])
def test_a_head_that_is_stopped_says_how_it_starts(head: OneHead, command: str) -> None:
    head.slurm.is_up = False

    said = typed(head, *command.split())

    assert said.startswith("1: ")
    assert said.endswith("tidegate keep-up --until 1h")
