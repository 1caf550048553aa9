"""What nodes say of their GPUs is believed when it is theirs, whole and new, and not otherwise."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agent.fakes import FakeBus, FakeClock, FakeSlurm, agent_of, order
from tests.make import job
from tidegate.agent.gpu_use import EVERY_S, FOLDER, GpuUses, sample
from tidegate.core.interruption.gpu_use import GpuUseSample
from tidegate.core.model.gpu_use import GpuUse
from tidegate.core.model.orders import OrderKind, OrderOutcome
from tidegate.core.model.slurm import Job

NODE, OTHER = "i-00000000000000001", "i-00000000000000002"


class Bench:
    """A shared folder into which nodes write, and the agent's look at it every 20 s."""

    def __init__(self, shared: Path, *jobs: Job) -> None:
        self.clock = FakeClock(100_000.0)
        self.uses = GpuUses(shared, self.clock)
        self.folder = shared / FOLDER
        self.jobs = jobs
        self.uses(jobs)
        self.uses.step()

    def say(self, *lines: str, name: str = NODE, age_s: float = 0.0) -> None:
        text = "".join(f"{line}\n" for line in (f"{self.clock.now - age_s:.0f}", *lines))
        (self.folder / name).write_text(text)

    def minutes(self, count: int, *lines: str, name: str = NODE) -> None:
        for _ in range(count):
            self.say(*lines, name=name)
            for _ in range(3):
                self.clock.now += EVERY_S
                self.uses.step()

    def told(self) -> dict[str, GpuUse]:
        return dict(self.uses(self.jobs))


def test_a_job_that_does_little_is_told_after_some_minutes(tmp_path: Path) -> None:
    bench = Bench(tmp_path, job(7, on=[NODE]), job(8, on=[NODE]))

    bench.minutes(4, "7 0", "8 97")
    assert not bench.told()
    bench.minutes(2, "7 0", "8 97")

    assert bench.told() == {"7": GpuUse(100_020.0)}


def test_one_that_works_again_is_told_no_more(tmp_path: Path) -> None:
    bench = Bench(tmp_path, job(7, on=[NODE]))
    bench.minutes(10, "7 0")
    assert bench.told()

    bench.minutes(1, "7 80")

    assert not bench.told()


def test_a_job_whose_neuron_devices_do_nothing_is_told_of_like_one_with_gpus(
    tmp_path: Path,
) -> None:
    of = job(7, gpus=2, on=[NODE])
    of = replace(of, shape=replace(of.shape, gres="neuron"))
    bench = Bench(tmp_path, of, replace(of, job_id="8"))

    bench.minutes(6, "7 of", "8 of 3:97")
    assert bench.told() == {"7": GpuUse(100_020.0)}

    bench.minutes(1, "7 of 0:5 1:80", "8 of 3:97")
    assert not bench.told()
    bench.minutes(10, "7 of 0:3", "8 of 3:97")
    assert bench.told()["7"].below_since_s(5) < bench.clock.now - 500.0
    bench.minutes(1, "7 -", "8 -")
    assert not bench.told()


@pytest.mark.parametrize("why", ["stale", "no line", "not known", "gone", "restarted", "late"])
def test_what_nobody_knows_begins_anew(tmp_path: Path, why: str) -> None:
    bench = Bench(tmp_path, job(7, on=[NODE]))
    bench.minutes(10, "7 0")
    assert bench.told()

    if why == "stale":
        for _ in range(10):
            bench.clock.now += EVERY_S
            bench.uses.step()
    elif why == "no line":
        bench.minutes(1)
    elif why == "not known":
        bench.minutes(1, "7 0", "7 -")
    elif why == "gone":
        (bench.folder / NODE).unlink()
        bench.uses.step()
    elif why == "restarted":
        bench.jobs = (replace(bench.jobs[0], restarts=1),)
    else:  # the file system hung
        bench.clock.now += 200.0
        assert not bench.told()
        bench.say("7 0")
        bench.uses.step()
    assert not bench.told()

    began_s = bench.clock.now
    bench.told()
    bench.minutes(8, "7 0")
    assert bench.told()["7"].since_s >= began_s


def test_all_nodes_of_a_job_have_to_say_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, job(7, nodes=2, on=[NODE, OTHER]))
    for _ in range(10):
        bench.say("7 90", name=OTHER)
        bench.minutes(1, "7 0")
    assert not bench.told()

    for _ in range(10):
        bench.say("7 0", name=OTHER)
        bench.minutes(1, "7 0")

    assert bench.told()


@pytest.mark.parametrize(
    "text",
    [
        *("", "\n", "12\n7 0", "12\n7 0 0\n", "12\n7 1000\n", "x\n7 0\n", "12\n7_1 0\n"),
        *("12\n7 -1\n", "12\n7 of 0\n", "12\n7 of 64:1\n", "12\n7 of 0:1000\n", "12\n7 of 0:1"),
    ],
)
def test_half_a_file_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / NODE
    path.write_text(text)

    assert sample(path) is None


def test_what_another_user_could_have_written_is_not_believed(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("12\n7 0\n")
    assert sample(mine) == GpuUseSample(12.0, (("7", 0),))

    link = tmp_path / "link"
    link.symlink_to(mine)
    assert sample(link) is None
    os.mkfifo(tmp_path / "pipe")
    assert sample(tmp_path / "pipe") is None
    mine.chmod(0o666)
    assert sample(mine) is None
    mine.chmod(0o644)
    if os.geteuid() == 0:
        os.chown(mine, 4_001, -1)
        assert sample(mine) is None


def test_a_folder_of_another_user_is_said_and_nothing_in_it_read(tmp_path: Path, caplog) -> None:
    (tmp_path / ".tidegate").mkdir(mode=0o777)
    (tmp_path / ".tidegate").chmod(0o777)

    Bench(tmp_path, job(7, on=[NODE])).uses.step()

    assert len(caplog.messages) == 1
    assert "only root or the agent" in caplog.text


def test_files_of_nodes_that_are_gone_are_taken_away(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.say("7 0")
    bench.say("7 0", name=OTHER)
    os.utime(bench.folder / OTHER, (1.0, 1.0))
    os.utime(bench.folder / NODE, (bench.clock.now, bench.clock.now))

    bench.uses.step()

    assert [each.name for each in bench.folder.iterdir()] == [NODE]


def test_the_digest_tells_what_is_known() -> None:
    slurm, bus, clock = FakeSlurm(), FakeBus(), FakeClock()
    slurm.queue("7", "RUNNING")
    slurm.queue("8", "RUNNING")
    agent = agent_of(slurm, bus, clock, gpu_uses=lambda jobs: {"7": GpuUse(12.0)})

    agent.tick()

    assert [each.gpu_use for each in bus.digests[-1].reading.jobs] == [GpuUse(12.0), None]


def test_a_job_is_told_in_its_output_and_its_comment() -> None:
    slurm, clock = FakeSlurm(), FakeClock()
    slurm.queue("7", "RUNNING")
    agent = agent_of(slurm, FakeBus(), clock)

    (told,) = agent.on_orders([order(OrderKind.TELL, "7", text="wake up", only_if=("RUNNING",))])

    assert told.outcome is OrderOutcome.DONE
    assert slurm.did("tell") == slurm.did("comment") == [("7", "wake up")]


def test_an_output_that_cannot_be_written_is_no_reason_to_tell_again() -> None:
    slurm, clock = FakeSlurm(refuses={"7": "no output"}), FakeClock()
    slurm.queue("7", "RUNNING")

    (told,) = agent_of(slurm, FakeBus(), clock).on_orders([order(OrderKind.TELL, "7", text="x")])

    assert told.outcome is OrderOutcome.DONE
    assert "not its output: no output" in told.detail


@pytest.mark.parametrize("kind", [OrderKind.CANCEL, OrderKind.TELL, OrderKind.REQUEUE])
def test_an_order_about_one_run_leaves_the_next_one_alone(kind: OrderKind) -> None:
    slurm, clock = FakeSlurm(), FakeClock()
    slurm.queue("7", "RUNNING", restarts=1)
    agent = agent_of(slurm, FakeBus(), clock)

    (late,) = agent.on_orders([order(kind, "7", restarts=0)])
    assert late.outcome is OrderOutcome.KEPT
    assert not slurm.calls

    (done,) = agent.on_orders([order(kind, "7", restarts=1, order_id="o2")])
    assert done.outcome is OrderOutcome.DONE
    assert slurm.calls


def test_a_refused_cancel_says_why() -> None:
    slurm, clock = FakeSlurm(refuses={"7": "Access denied"}), FakeClock()
    slurm.queue("7", "RUNNING")

    (found,) = agent_of(slurm, FakeBus(), clock).on_orders([order(OrderKind.CANCEL, "7")])

    assert (found.outcome, found.detail) == (OrderOutcome.FAILED, "Slurm refused: Access denied.")
