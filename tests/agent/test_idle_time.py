"""What idle nodes are for: written as it was seen, and not at all where nobody looked."""

from pathlib import Path

import pytest

from tests.agent.fakes import FakeClock
from tests.make import node
from tidegate.adapters.slurm_accounting import idle_spans
from tidegate.agent.gpu_time import KEEP_EVERY_S
from tidegate.agent.idle_time import EVERY_S, FOLDER, IdleTimes
from tidegate.agent.meter import IDLE_TOLD_FOR_S, Meter
from tidegate.core.explain.verdicts import Verdicts
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.slurm import Node, Reading, SetBy

NODE, OTHER = "i-00000000000000001", "i-00000000000000002"
NOON_S = 1_795_478_400.0 + 43_200.0  # 2026-11-24
DRAINED = "IDLE+DRAIN+DYNAMIC_NORM"
BUSY = "ALLOCATED+DYNAMIC_NORM"


class Head:
    """Slurm and the planner, as the agent hears of them; `watch` is real time."""

    def __init__(self, shared: Path) -> None:
        self.shared = shared
        self.clock, self.watch = FakeClock(NOON_S), FakeClock(0.0)
        self.nodes: dict[str, Node] = {NODE: node(NODE)}
        self.judged: dict[str, str] = {}
        self.is_planner_up = True
        self.start()

    def start(self) -> None:
        """A new agent, which remembers nothing."""
        self.meter = Meter(self.clock.now, stopwatch=self.watch.now_s)
        self.times = IdleTimes(
            self.shared, self.clock, lambda: self.meter.standing, self.watch.now_s
        )
        self.step()

    def step(self) -> None:
        self.meter.looked(Reading("22.05", (), tuple(self.nodes.values())), self.clock.now, 0.1)
        if self.is_planner_up:
            at_s = self.clock.now
            said = Verdicts("dev", f"p-{at_s}", at_s, 1, 0.0, (), {}, {}, idle=dict(self.judged))
            self.meter.judged(said)
        self.times.step()

    def minutes(self, count: float) -> None:
        for _ in range(round(count * 60 / EVERY_S)):
            self.clock.now += EVERY_S
            self.watch.now += EVERY_S
            self.step()

    def is_(self, state: str, reason: str = "", by: SetBy = SetBy.UNKNOWN) -> None:
        self.nodes[NODE] = node(NODE, state=state, reason=reason, set_by=by)

    def told(self) -> list[tuple[float, float, str]]:
        """Minutes from noon, and the use."""
        self.watch.now += KEEP_EVERY_S  # also ends what was open: too long a silence
        self.times.step()
        text = "".join(
            f"%{path.name}|{line}\n"
            for path in sorted((self.shared / FOLDER).iterdir())
            for line in path.read_text().splitlines()
        )
        return [
            (round((s.since_s - NOON_S) / 60, 2), round((s.until_s - NOON_S) / 60, 2), s.use.value)
            for s in idle_spans(text)
            if s.node == NODE
        ]


@pytest.fixture
def head(tmp_path: Path) -> Head:
    return Head(tmp_path)


def test_what_the_planner_says_of_an_idle_node_is_written_for_as_long(head: Head) -> None:
    head.judged = {NODE: "kept"}
    head.minutes(10)
    head.judged = {NODE: "waiting"}
    head.minutes(5)

    assert head.told() == [(0, 10, "kept"), (10, 15, "waiting")]


def test_a_spare_node_that_becomes_sick_is_sick_at_once_whatever_the_planner_said(
    head: Head,
) -> None:
    head.judged = {NODE: "kept"}
    head.minutes(5)
    head.is_(DRAINED, "NHC: check_fs_used", SetBy.ROOT)
    head.minutes(5)
    head.is_("DOWN+DYNAMIC_NORM", "Not responding", SetBy.SLURM)
    head.minutes(5)
    head.is_("IDLE+DYNAMIC_NORM")
    head.minutes(5)

    assert head.told() == [(0, 5, "kept"), (5, 15, "drained"), (15, 20, "kept")]


@pytest.mark.parametrize(
    ("reason", "by", "use"),
    [
        ("", SetBy.UNKNOWN, "waiting"),  # at its gate
        (DrainReason(DrainCode.CLOSED, "kept for larger jobs"), SetBy.US, "waiting"),
        (DrainReason(DrainCode.KEPT, "kept for gang 7", "7"), SetBy.US, "waiting"),
        (DrainReason(DrainCode.EMPTY, "idle for 60 s"), SetBy.US, "waiting"),
        (DrainReason(DrainCode.RELEASE, "released", "o-1"), SetBy.US, "waiting"),
        (DrainReason(DrainCode.UNHEALTHY, "found unhealthy"), SetBy.US, "drained"),
        (DrainReason(DrainCode.CORDON, "AWS Health", "X"), SetBy.US, "drained"),
        (DrainReason(DrainCode.HELD, "held by ada"), SetBy.USER, "drained"),
        ("fan looks odd", SetBy.USER, "drained"),
        ("Kill task failed", SetBy.SLURM, "drained"),
    ],
)
def test_a_drained_node_is_told_by_who_drained_it_and_why(
    head: Head, reason: object, by: SetBy, use: str
) -> None:
    head.judged = {NODE: "kept"}  # of an older look
    head.is_(DRAINED, str(reason), by)
    head.minutes(2)

    assert head.told() == [(0, 2, use)]


def test_a_drained_node_with_a_job_is_its_jobs(head: Head) -> None:
    head.is_("ALLOCATED+DRAIN+DYNAMIC_NORM", "bad fan", SetBy.USER)
    head.minutes(5)

    assert head.told() == []


def test_until_a_job_or_its_end_was_seen_a_node_was_what_it_had_been(head: Head) -> None:
    head.judged = {NODE: "kept"}
    head.minutes(1)
    head.is_(BUSY)
    head.minutes(1)
    head.is_("IDLE+DYNAMIC_NORM")
    head.minutes(1)
    head.nodes = {}
    head.minutes(1)

    third = round(EVERY_S / 60, 2)
    assert head.told() == [(0, 1 + third, "kept"), (2, 3 + third, "kept")]


def test_a_planner_that_judges_a_moment_later_judges_that_moment_too(head: Head) -> None:
    head.minutes(1)
    head.judged = {NODE: "waiting"}
    head.minutes(1)

    assert head.told() == [(0, 2, "waiting")]


def test_a_node_that_is_drained_before_it_was_judged_was_not_drained_before(head: Head) -> None:
    head.minutes(1)
    head.is_(DRAINED, "bad fan", SetBy.USER)
    head.minutes(1)

    assert head.told() == [(1, 2, "drained")]


def test_a_node_that_slurm_plans_a_job_on_waits_for_it(head: Head) -> None:
    head.judged = {NODE: "kept"}
    head.is_("IDLE+PLANNED+DYNAMIC_NORM")
    head.minutes(1)

    assert head.told() == [(0, 1, "waiting")]


def test_of_a_planner_that_was_silent_for_long_nothing_is_known_meanwhile(head: Head) -> None:
    head.judged = {NODE: "kept"}
    head.minutes(5)
    head.is_planner_up = False
    head.minutes(30)
    head.is_planner_up = True
    head.minutes(5)

    believed = round(5 + (IDLE_TOLD_FOR_S + EVERY_S) / 60, 2)
    assert head.told() == [(0, believed, "kept"), (35, 40, "kept")]


def test_a_drain_is_known_without_the_planner(head: Head) -> None:
    head.is_planner_up = False
    head.is_(DRAINED, "bad fan", SetBy.USER)
    head.minutes(30)

    assert head.told() == [(0, 30, "drained")]


def test_while_slurm_is_silent_nothing_is_known(head: Head) -> None:
    head.judged = {NODE: "kept"}
    head.minutes(5)
    head.meter.slurm_is_silent()
    for _ in range(30):
        head.clock.now += EVERY_S
        head.watch.now += EVERY_S
        head.times.step()
    head.minutes(5)

    assert head.told() == [(0, 5, "kept"), (15, 20, "kept")]


@pytest.mark.parametrize("jump_s", [3600.0, 60.0, -3600.0, -60.0])
def test_a_clock_that_jumps_costs_a_step_and_makes_no_time(head: Head, jump_s: float) -> None:
    head.judged = {NODE: "kept"}
    head.minutes(5)
    head.clock.now += jump_s
    head.minutes(5)

    spans = head.told()
    assert sum(end - begin for begin, end, _ in spans) == pytest.approx(10 - EVERY_S / 60, abs=0.02)


def test_an_agent_that_slept_knows_nothing_of_it(head: Head) -> None:
    head.judged = {NODE: "kept"}
    head.minutes(5)
    head.clock.now += 600.0
    head.watch.now += 600.0
    head.minutes(5)

    assert [round(end - begin, 2) for begin, end, _ in head.told()] == [5, round(5 - 1 / 3, 2)]


def test_a_new_agent_goes_on_beside_what_the_one_before_has_written(head: Head) -> None:
    head.judged = {NODE: "kept"}
    head.minutes(10)  # of which it writes every five minutes, and loses the rest
    head.start()
    head.minutes(5)

    first, second = head.told()
    assert first[0] == 0
    assert 5 <= first[1] <= 10
    assert second == (10, 15, "kept")


def test_a_day_has_a_file_of_its_own_and_old_ones_go(head: Head) -> None:
    old = head.shared / FOLDER / "2026-01-01"
    head.told()
    old.write_text("i-00000000000000001|1|2|kept\n")
    head.judged = {NODE: "kept"}
    head.start()
    head.clock.now = NOON_S + 43_200.0 - 120.0
    head.start()
    head.minutes(4)

    spans = head.told()
    assert not old.exists()
    assert spans == [(718, 720, "kept"), (720, 722, "kept")]
    assert {each.name for each in (head.shared / FOLDER).iterdir()} == {"2026-11-24", "2026-11-25"}


def test_nodes_that_are_no_instances_are_left_out(head: Head) -> None:
    head.nodes = {"cn|7": node("cn|7", state="DOWN+DYNAMIC_NORM")}
    head.minutes(10)

    assert not any(path.read_text() for path in (head.shared / FOLDER).iterdir())


def test_a_folder_that_cannot_be_written_ends_nothing(
    head: Head, caplog: pytest.LogCaptureFixture
) -> None:
    head.judged = {NODE: "kept"}
    (head.shared / ".tidegate").write_text("no folder")
    head.minutes(20)

    assert caplog.text.count("cannot be written down") == 1
