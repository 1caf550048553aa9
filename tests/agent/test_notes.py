"""Notes on waiting jobs: written when they change, a few at a time, none in a long queue."""

from dataclasses import dataclass, field

import pytest

from tests.agent.fakes import FakeClock, FakeSlurm
from tidegate.agent.notes import READ_EVERY_S, Notes
from tidegate.core.explain.short import note
from tidegate.core.explain.verdicts import Verdict, Verdicts
from tidegate.core.model.errors import SlurmUnavailable, Throttled
from tidegate.core.model.why import Why, WhyNot

BOOTS = Verdict(True, "nodes are booting for it")
SMALL = Verdict(False, "too small", (WhyNot(Why.TOO_SMALL, "g5.xlarge has 1 GPU, it asks 4"),))


@dataclass
class Desk:
    """A head whose planner decides what the test says."""

    of: dict[str, Verdict] = field(default_factory=dict)
    trouble: Exception | None = None
    reads: int = 0

    def __post_init__(self) -> None:
        self.slurm, self.clock = FakeSlurm(), FakeClock()
        self.notes = Notes(self.newest, self.slurm, self.clock)

    def newest(self) -> Verdicts | None:
        self.reads += 1
        if self.trouble:
            raise self.trouble
        known = list(dict.fromkeys(self.of.values()))
        jobs = {job_id: known.index(verdict) for job_id, verdict in self.of.items()}
        return Verdicts("test", "p-1", 0.0, 1, 0.0, tuple(known), jobs, {})

    def written(self, steps: int = 1) -> list[tuple[str, ...]]:
        """What these steps wrote, as far as the verdicts are read anew."""
        self.slurm.calls.clear()
        for _ in range(steps):
            self.notes.step()
            self.clock.sleep(1.0)
        self.clock.sleep(READ_EVERY_S)
        return [call for call in self.slurm.calls if call[0] == "comment"]


def test_a_note_says_what_was_decided_and_is_written_once() -> None:
    desk = Desk({"7": BOOTS, "8": SMALL})

    assert desk.written() == [
        ("comment", "7", "tidegate: starts soon: nodes are booting for it"),
        ("comment", "8", "tidegate: waits: g5.xlarge has 1 GPU, it asks 4"),
    ]
    assert desk.written() == []


def test_a_note_that_changes_is_written_again() -> None:
    desk = Desk({"7": SMALL, "8": SMALL})
    desk.written()

    desk.of["7"] = BOOTS

    assert [call[1] for call in desk.written()] == ["7"]


def test_ten_notes_a_step_and_the_others_in_the_next() -> None:
    desk = Desk({str(number): BOOTS for number in range(25)})

    assert [len(desk.written()) for _ in range(4)] == [10, 10, 5, 0]


@pytest.mark.parametrize(("pending", "some"), [(2_000, True), (2_001, False)])
def test_none_in_a_queue_that_is_too_long(pending: int, some: bool) -> None:
    desk = Desk({str(number): BOOTS for number in range(pending)})

    assert bool(desk.written()) is some


def test_what_slurm_says_better_itself_has_no_note() -> None:
    held = Verdict(False, "its user holds it", (WhyNot(Why.HELD, "its user holds it"),))
    bare = Verdict(False, "it waits for job 6")

    assert Desk({"7": held, "8": bare}).written() == []


def test_no_word_of_a_note_ticks() -> None:
    def said(left_s: int) -> tuple[str, str]:
        kinds = (Why.RESTING, Why.FUTILE)
        found = (WhyNot(kind, f"for {left_s} s more", until_s=1e9) for kind in kinds)
        one, other = (note(Verdict(False, "", (each,))) for each in found)
        return one, other

    assert said(60) == said(30)
    assert "s more" not in "".join(said(60))


def test_a_note_of_what_rests_ends_with_ec2s_own_words() -> None:
    words = "InsufficientInstanceCapacity: We have none."
    rests = WhyNot(Why.RESTING, "it rests", offering="x", until_s=0.0, words=words)

    said = note(Verdict(False, "", (rests,)))

    assert said.startswith("tidegate: waits: what fits rests after EC2 refused them, ")
    assert said.endswith(f"; EC2 said {words}")


def test_the_store_is_asked_every_ten_seconds() -> None:
    desk = Desk({"7": BOOTS})

    for _ in range(20):
        desk.notes.step()
        desk.clock.sleep(1.0)

    assert desk.reads == 2


@pytest.mark.parametrize("trouble", [Throttled("slow down"), SlurmUnavailable("no answer")])
def test_trouble_is_said_once_and_tried_again(
    trouble: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk({"7": BOOTS}, trouble=trouble)
    desk.written()
    desk.written()
    desk.trouble = None

    assert len(desk.written()) == 1
    assert len(caplog.records) == 1
