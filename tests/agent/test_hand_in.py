"""Who ran is handed in once for each period, whatever the head and its clock did meanwhile."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.agent.fakes import FakeClock
from tests.core.test_periods import at_s
from tidegate.adapters.slurm_accounting import Here, SlurmAccounting, accounted_in
from tidegate.adapters.slurm_command import CommandRunner
from tidegate.agent.gpu_time import FOLDER
from tidegate.agent.hand_in import PERIODS_MAX, HandIn
from tidegate.core.model.errors import SlurmUnavailable, Throttled
from tidegate.core.model.gpu_use import GpuTime
from tidegate.core.offers.periods import Every

DAY_S = 86_400.0
WEDNESDAY = "2026-11-25T12:00:00"


@dataclass
class Head:
    """`broken`: what fails, "" nothing."""

    state: Path | None
    every: Every = Every.WEEK
    clock: FakeClock = field(default_factory=lambda: FakeClock(at_s(WEDNESDAY)))
    broken: str = ""
    asked: list[tuple[float, float]] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)

    def runs(self, since_s: float, until_s: float) -> bytes:
        if self.broken == "sacct":
            raise SlurmUnavailable("slurmdbd does not answer")
        self.asked.append((since_s, until_s))
        return b"runs"

    def put(self, period: str, runs: bytes) -> None:
        if self.broken == "S3":
            raise Throttled("SlowDown")
        self.stored.append(period)

    def start(self) -> HandIn:
        return HandIn(self.every, self.runs, self.put, self.clock, self.state)


@pytest.fixture
def head(tmp_path: Path) -> Head:
    return Head(tmp_path)


def test_the_last_week_is_handed_in_once_with_the_one_before_it(head: Head) -> None:
    agent = head.start()
    for _ in range(3):
        agent.step()
    head.start().step()

    assert head.stored == ["2026-W47"]
    assert head.asked == [(at_s("2026-11-09"), at_s("2026-11-23"))]


def test_a_week_is_not_handed_in_before_its_last_jobs_are_recorded(head: Head) -> None:
    agent = head.start()
    agent.step()
    head.clock.now = at_s("2026-11-30T00:19:00")
    agent.step()
    assert head.stored == ["2026-W47"]

    head.clock.now = at_s("2026-11-30T00:20:00")
    agent.step()
    assert head.stored == ["2026-W47", "2026-W48"]


def test_what_ended_while_the_head_was_stopped_is_handed_in_at_its_start(head: Head) -> None:
    head.every = Every.DAY
    head.start().step()
    head.clock.now += 3 * DAY_S
    head.start().step()

    assert head.stored == ["2026-11-24", "2026-11-25", "2026-11-26", "2026-11-27"]

    head.clock.now += 100 * DAY_S
    head.start().step()
    assert len(head.stored) == 4 + PERIODS_MAX


@pytest.mark.parametrize("broken", ["sacct", "S3"])
def test_what_could_not_be_handed_in_is_tried_again_and_said_once(
    head: Head, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    head.broken = broken
    agent = head.start()
    agent.step()
    agent.step()
    assert head.stored == []
    assert len(caplog.messages) == 1

    head.broken = ""
    agent.step()
    assert head.stored == ["2026-W47"]


def test_a_clock_that_was_ahead_costs_no_week(head: Head) -> None:
    head.clock.now += 7 * DAY_S
    agent = head.start()
    agent.step()
    head.clock.now -= 7 * DAY_S
    agent.step()
    assert head.stored == ["2026-W48", "2026-W47"]

    head.clock.now += 7 * DAY_S
    agent.step()
    assert head.stored[2:] == ["2026-W48"], "what was handed in too early is replaced"


def test_another_length_begins_with_the_last_one_of_it(head: Head) -> None:
    head.start().step()
    for every in (Every.DAY, Every.WEEK, Every.MONTH):
        head.every = every
        head.start().step()

    assert head.stored == ["2026-W47", "2026-11-24", "2026-W47", "2026-10"]


def test_without_a_folder_each_start_hands_in_again(head: Head) -> None:
    head.state = None
    head.start().step()
    head.start().step()

    assert head.stored == ["2026-W47", "2026-W47"]


def test_sacct_is_asked_on_the_head_itself(tmp_path: Path) -> None:
    """With stand-ins for Slurm's two commands."""
    run = "7|ada|vision|gpu|COMPLETED|2026-11-16T00:00:00|2026-11-16T00:01:00|"
    run += "2026-11-16T01:01:00|cpu=8,mem=32G,gres/gpu=2|i-[1-2]|1001|a|b"
    for name, said in (("sacct", f"echo '{run}'"), ("scontrol", "printf 'i-1\\ni-2\\n'")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{said}\n")
        (tmp_path / name).chmod(0o755)
    here = Here(CommandRunner(prefix=("env", f"PATH={tmp_path}:/usr/bin:/bin")))

    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    for day in ("2026-11-15", "2026-11-16", "2026-11-23"):
        (folder / day).write_text(f"7|i-2|{at_s('2026-11-16T00:01:00'):.0f}|60|120\n7|i-1|1|9|9\n")

    window = at_s("2026-11-16"), at_s("2026-11-22T12:00:00")
    asked = SlurmAccounting(here, str(tmp_path))
    (found,) = accounted_in(asked.exported(*window), window[1]).runs
    assert found.gpu_times == (GpuTime("i-2", "2026-11-16", 60.0, 120.0),)
    assert (found.user, found.nodes, found.gpus, found.name) == ("ada", ("i-1", "i-2"), 1.0, "a|b")

    (tmp_path / "sacct").write_text("#!/bin/sh\necho no slurmdbd >&2\nexit 1\n")
    with pytest.raises(SlurmUnavailable, match="no slurmdbd"):
        SlurmAccounting(here).exported(*window)
