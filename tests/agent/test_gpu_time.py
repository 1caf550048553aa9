"""GPU-hours that jobs held idle: each minute once, and never more than there was."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agent.fakes import FakeClock
from tests.make import job
from tidegate.agent.gpu_time import FOLDER, KEEP_EVERY_S, LINE, GpuTimes
from tidegate.core.interruption.gpu_use import GpuUseSample
from tidegate.core.model.slurm import Job

NODE, OTHER = "i-00000000000000001", "i-00000000000000002"
NOON_S = 1_795_478_400.0 + 43_200.0  # 2026-11-24
STEP_S = 20.0

type Counts = dict[tuple[str, str], tuple[float, float]]


class Bench:
    """Nodes that tell each minute, and an agent that looks every 20 s.

    `watch`: real time; the head's clock and those of nodes may be off by any amount.
    """

    def __init__(self, shared: Path, *jobs: Job) -> None:
        self.shared, self.jobs = shared, jobs
        self.watch, self.clock = 0.0, FakeClock(NOON_S)
        self.samples: dict[str, GpuUseSample] = {}
        self.partitions: dict[str, tuple[float, float]] = {}
        self.start()

    def start(self) -> None:
        """A new agent, which remembers nothing."""
        self.times = GpuTimes(self.shared, self.clock, self.tell, lambda: self.watch)
        self.times(self.jobs, self.samples)

    def tell(self, partition: str, idle_s: float, busy_s: float) -> None:
        before = self.partitions.get(partition, (0.0, 0.0))
        self.partitions[partition] = before[0] + idle_s, before[1] + busy_s

    def say(self, name: str, *uses: tuple[str, int | None], ahead_s: float = 0.0) -> None:
        self.samples = {**self.samples, name: GpuUseSample(self.clock.now + ahead_s, uses)}

    def pass_by(self, seconds: float) -> None:
        for _ in range(int(seconds // STEP_S)):
            self.watch += STEP_S
            self.clock.now += STEP_S
            self.times(self.jobs, self.samples)

    def minutes(self, count: int, *uses: tuple[str, int | None], name: str = NODE) -> None:
        for _ in range(count):
            self.pass_by(60.0)
            self.say(name, *uses)
            self.times(self.jobs, self.samples)

    def counted(self) -> Counts:
        """Idle and seen GPU-seconds over all days, by job and node, as they are written down."""
        self.watch += KEEP_EVERY_S
        self.times(self.jobs, self.samples)
        found: Counts = {}
        for key, (idle_s, seen_s) in self._written():
            before = found.get(key, (0.0, 0.0))
            found[key] = before[0] + idle_s, before[1] + seen_s
        return found

    def _written(self) -> Iterator[tuple[tuple[str, str], tuple[float, float]]]:
        for path in sorted((self.shared / FOLDER).iterdir()):
            for line in path.read_text().splitlines():
                found = LINE.fullmatch(line)
                assert found, line
                yield (found[1], found[2]), (float(found[4]), float(found[5]))


def started(job_id: int, *names: str, gpus: int = 2) -> Job:
    running = job(job_id, gpus=gpus, nodes=len(names), on=list(names))
    return replace(running, started_at_s=NOON_S, partitions=("gpu",))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, started(7, NODE), started(8, NODE, gpus=1))


def test_each_gpu_counts_for_itself_and_each_minute_once(bench: Bench) -> None:
    bench.minutes(10, ("7", 0), ("7", 97), ("8", 4))

    assert bench.counted() == {("7", NODE): (600.0, 1200.0), ("8", NODE): (600.0, 600.0)}
    assert bench.partitions == {"gpu": (1200.0, 600.0)}


def test_what_cannot_be_told_is_not_seen(bench: Bench) -> None:
    bench.minutes(10, ("7", None), ("7", 0), ("9", 0))

    assert bench.counted() == {("7", NODE): (600.0, 600.0)}


def test_of_a_job_on_two_nodes_the_one_that_died_is_not_seen(tmp_path: Path) -> None:
    bench = Bench(tmp_path, started(7, NODE, OTHER))
    for _ in range(5):
        bench.minutes(1, ("7", 0), ("7", 0))
        bench.say(OTHER, ("7", 80), ("7", 80))
    bench.minutes(5, ("7", 0), ("7", 0))

    found = bench.counted()
    assert found["7", NODE] == (1200.0, 1200.0)
    assert found["7", OTHER] == (0.0, 600.0)


def test_a_node_s_clock_that_runs_fast_makes_no_time(bench: Bench) -> None:
    for number in range(10):
        bench.say(NODE, ("7", 0), ("7", 0), ahead_s=15.0 * number)
        bench.pass_by(60.0)

    assert bench.counted()["7", NODE] == (1080.0, 1080.0)


@pytest.mark.parametrize(("every_s", "counted_s"), [(60, 60), (80, 80), (120, 120), (140, 60)])
def test_a_late_word_has_all_of_its_time_and_after_a_silence_a_minute(
    bench: Bench, every_s: float, counted_s: float
) -> None:
    bench.minutes(1, ("8", 0))
    bench.pass_by(every_s)
    bench.say(NODE, ("8", 0))

    assert bench.counted()["8", NODE] == (60 + counted_s, 60 + counted_s)


def test_a_run_has_nothing_of_what_was_said_before_it_began(bench: Bench) -> None:
    bench.minutes(3, ("7", 0), ("7", 0))
    again = replace(bench.jobs[0], started_at_s=bench.clock.now + 10.0, restarts=1)
    bench.jobs = (again,)
    bench.say(NODE, ("7", 0), ("7", 0), ahead_s=5.0)
    bench.pass_by(40.0)

    assert bench.counted()["7", NODE] == (360.0, 360.0)


def test_an_agent_that_is_started_again_goes_on_with_what_was_written(bench: Bench) -> None:
    bench.minutes(10, ("7", 0), ("7", 0))
    assert bench.counted()["7", NODE] == (1200.0, 1200.0)

    for _ in range(20):
        bench.start()
        bench.pass_by(STEP_S)
    bench.minutes(10, ("7", 0), ("7", 0))

    assert bench.counted()["7", NODE] == (2400.0, 2400.0)


def test_a_day_has_a_file_of_its_own_and_old_ones_go(bench: Bench) -> None:
    bench.minutes(1, ("7", 0))
    bench.counted()
    folder = bench.shared / FOLDER
    (folder / "2026-08-01").write_text("7|i-00000000000000001|1|1|1\n")
    (folder / "notes").write_text("not ours")
    bench.clock.now += 86_400.0
    bench.minutes(1, ("7", 0))
    bench.watch += KEEP_EVERY_S
    bench.pass_by(STEP_S)

    names = {path.name for path in folder.iterdir()}
    assert names == {"2026-11-24", "2026-11-25", "notes"}


def test_a_folder_that_cannot_be_written_is_said_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    (bench.shared / ".tidegate").write_text("a file")
    bench.minutes(20, ("7", 0))

    assert len(caplog.messages) == 1
    assert "How long GPUs idle" in caplog.messages[0]


@pytest.mark.parametrize("seed", range(20))
def test_whatever_goes_wrong_no_more_is_counted_than_was_held(tmp_path: Path, seed: int) -> None:
    """Silent nodes, late and repeated words, clocks that jump, agents that die."""
    chance = random.Random(seed)
    bench = Bench(tmp_path, started(7, NODE, OTHER))
    for _ in range(120):
        bench.pass_by(chance.choice([20.0, 60.0, 60.0, 60.0, 200.0]))
        match chance.randrange(12):
            case 0:
                bench.clock.now += chance.uniform(-3000, 3000)
            case 1:
                bench.start()
            case 2:
                bench.samples = {}
            case 3:
                bench.watch += 500.0
        for name in (NODE, OTHER):
            if chance.random() < 0.8:
                use = chance.choice([0, 3, 50, None])
                bench.say(name, ("7", use), ("7", 0), ahead_s=chance.uniform(-100, 100))

    found = bench.counted()
    assert found
    for idle_s, seen_s in found.values():
        assert 0 <= idle_s <= seen_s <= 2 * bench.watch


def used(bench: Bench) -> dict[str, tuple[str | None, str | None]]:
    """How many GPUs each job had and, as bits, which of them did anything, as it is written."""
    bench.counted()
    lines = [LINE.fullmatch(each) for p in days(bench) for each in p.read_text().splitlines()]
    return {each[1]: (each[6], each[7]) for each in lines if each}


def days(bench: Bench) -> list[Path]:
    return sorted((bench.shared / FOLDER).iterdir())


def test_which_gpus_did_anything_is_kept_one_by_one(bench: Bench) -> None:
    bench.minutes(3, ("7", 4), ("7", 97), ("8", 0))
    assert used(bench) == {"7": ("2", "2"), "8": ("1", "0")}
    bench.start()
    bench.minutes(2, ("7", 0), ("7", 0), ("8", 0))
    assert used(bench)["7"] == ("2", "2"), "another agent goes on from there"
    bench.minutes(1, ("7", 5), ("7", 0), ("8", 0))
    assert used(bench) == {"7": ("2", "3"), "8": ("1", "0")}


def test_a_gpu_of_which_a_minute_is_not_known_counts_as_used(bench: Bench) -> None:
    bench.minutes(3, ("7", 0), ("7", None))
    assert used(bench) == {"7": ("2", "2")}
    bench.minutes(1, ("7", 0))
    assert used(bench) == {"7": ("2", "3")}, "which of them is told nobody knows"


def test_a_day_that_an_older_agent_began_says_nothing_of_it(bench: Bench) -> None:
    bench.minutes(1, ("7", 0), ("7", 0), ("8", 0))
    bench.counted()
    (day,) = days(bench)
    day.write_text(f"7|{NODE}|{NOON_S:.0f}|60|120\n")
    bench.start()
    bench.minutes(2, ("7", 0), ("7", 0))

    assert bench.counted()["7", NODE] == (300.0, 360.0)
    assert used(bench)["7"] == (None, None)


def test_neuron_devices_that_a_job_does_not_compute_on_idle(tmp_path: Path) -> None:
    of = started(7, NODE, gpus=4)
    bench = Bench(tmp_path, replace(of, shape=replace(of.shape, gres="neuron")))
    for used_now in ({5: 97, 2: 4}, {5: 97}, {}, {9: 5}):
        bench.pass_by(60.0)
        bench.samples = {NODE: GpuUseSample(bench.clock.now, (), {"7": used_now, "8": {0: 1}})}
        bench.times(bench.jobs, bench.samples)

    assert bench.counted() == {("7", NODE): (60.0 * (3 + 3 + 4 + 3), 4 * 240.0)}
    assert used(bench) == {"7": ("4", str(1 << 5 | 1 << 9))}
    bench.samples = {NODE: GpuUseSample(bench.clock.now, (), {"7": dict.fromkeys(range(5), 90)})}
    bench.pass_by(60.0)
    assert bench.counted()["7", NODE][1] == 960.0, "more than it holds is nothing to believe"
