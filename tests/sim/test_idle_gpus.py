"""Hours of a cluster whose jobs idle, or whose sensors lie or stop: who ends, and who never does.

The whole loop runs, with the agent's own reader of what nodes write; Slurm and EC2 are simulated.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.make import cluster
from tidegate.agent.gpu_use import FOLDER, GpuUses
from tidegate.core.model.gpu_use import GpuUse, IdleAction, IdleGpus, IdleRule
from tidegate.core.model.slurm import Job, Shape
from tidegate.sim.slurm_parts import Submit
from tidegate.sim.world import SimWorld

RULE = IdleRule(IdleAction.CANCEL, after_s=900.0, use_percent=5, warning_s=300.0)
JOBS = 12
WORKS, IDLES = 60, 0
HOUR_S = 3600.0
TOLD = "less than 5 %"


@dataclass(slots=True)
class Day:
    """`truth`: how much a job uses its GPU; `says`: what its node tells of that, None: nothing."""

    shared: Path
    truth: Callable[[str, float], int]
    says: Callable[[int, float], int | None] = lambda percent, passed_s: percent
    action: IdleAction = IdleAction.CANCEL
    world: SimWorld = field(init=False)
    uses: GpuUses = field(init=False)
    began_s: float = 0.0
    told_at_s: dict[str, float] = field(default_factory=dict)
    ended: list[tuple[str, float]] = field(default_factory=list)
    used_at_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rule = replace(RULE, action=self.action)
        of = replace(cluster(), idle_gpus=IdleGpus(rule))
        self.world = SimWorld(of, lambda instance: 60.0)
        self.world.gpu_uses = self.look
        self.world.slurm.on_command.append(self.note)
        self.began_s = self.world.clock.now_s()
        self.restart()
        for _ in range(JOBS):
            self.world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1_000), 100 * HOUR_S))

    def restart(self) -> None:
        """A new start of the agent."""
        self.uses = GpuUses(self.shared, self.world.head_clock)
        self.world.restart_agent()

    def look(self, jobs: Sequence[Job]) -> Mapping[str, GpuUse]:
        """Nodes write, the agent's thread reads."""
        now_s = self.world.clock.now_s()
        self.uses(jobs)
        self.uses.step()
        lines: dict[str, list[str]] = {}
        for job in jobs:
            if job.state != "RUNNING":
                continue
            percent = self.truth(job.job_id, now_s - self.began_s)
            if percent >= RULE.use_percent:
                self.used_at_s[job.job_id] = now_s
            said = self.says(percent, now_s - self.began_s)
            if said is not None:
                lines.setdefault(job.node_names[0], []).append(f"{job.job_id} {said}\n")
        for name, told in lines.items():
            (self.shared / FOLDER / name).write_text(f"{now_s:.0f}\n{''.join(told)}")
        self.uses.step()
        return self.uses(jobs)

    def note(self, method: str, names: tuple[str, ...]) -> None:
        """What Slurm is told, held against what is promised."""
        now_s = self.world.clock.now_s()
        if method == "tell":
            self.told_at_s.setdefault(names[0], now_s)
        if method in ("scancel", "requeue", "hold"):
            for job_id in names:
                assert any(TOLD in line for line in self.world.slurm.jobs[job_id].output)
                assert now_s - self.told_at_s[job_id] >= RULE.warning_s
                self.ended.append((job_id, now_s))

    def pass_(self, hours: float) -> list[str]:
        """The jobs that ended by then; of all of them no more than may be within any hour."""
        self.world.step(hours * HOUR_S)
        times = [at_s for _, at_s in self.ended]
        for at_s in times:
            assert sum(at_s <= other < at_s + HOUR_S for other in times) <= JOBS // 5
        return [job_id for job_id, _ in self.ended]


def test_those_that_idle_end_and_no_other(tmp_path: Path) -> None:
    idle = {"2", "5", "7"}
    day = Day(tmp_path, lambda job_id, passed_s: IDLES if job_id in idle else WORKS)

    assert set(day.pass_(2.5)) == idle

    states = {job_id: job.state for job_id, job in day.world.slurm.jobs.items()}
    assert {i for i, state in states.items() if state == "RUNNING"} == states.keys() - idle
    assert day.told_at_s.keys() == idle


@pytest.mark.parametrize("action", [IdleAction.TELL, IdleAction.REQUEUE])
def test_what_the_file_does_not_say_is_not_done(tmp_path: Path, action: IdleAction) -> None:
    day = Day(tmp_path, lambda job_id, _: IDLES if job_id == "2" else WORKS, action=action)

    ended = day.pass_(1.5)

    assert ended[:1] == (["2"] if action is IdleAction.REQUEUE else [])
    assert day.told_at_s.keys() == {"2"}
    assert "2" in day.world.slurm.table.active


def test_one_that_computes_now_and_then_is_left_alone(tmp_path: Path) -> None:
    day = Day(tmp_path, lambda _, passed_s: WORKS if passed_s % 840 < 120 else IDLES)

    assert day.pass_(2) == []
    assert not day.told_at_s


def test_one_that_wakes_up_at_the_warning_goes_on(tmp_path: Path) -> None:
    day = Day(tmp_path, lambda _, passed_s: WORKS)
    day.truth = lambda job_id, _: WORKS if job_id in day.told_at_s else IDLES

    assert day.pass_(2) == []
    assert len(day.told_at_s) == JOBS


def test_sensors_that_lie_about_all_cost_a_fifth_in_an_hour(tmp_path: Path) -> None:
    day = Day(tmp_path, lambda _, passed_s: WORKS, says=lambda percent, passed_s: IDLES)

    ended = day.pass_(2.5)

    assert 0 < len(ended) <= 3 * (JOBS // 5)
    assert any("it goes on" in job.admin_comment for job in day.world.slurm.jobs.values())


def test_sensors_that_stop_end_nobody(tmp_path: Path) -> None:
    stops_s = 1_400.0  # the warning has not come yet
    day = Day(
        tmp_path,
        lambda _, passed_s: IDLES,
        says=lambda percent, passed_s: percent if passed_s < stops_s else None,
    )

    assert day.pass_(2) == []


def test_a_new_start_of_the_agent_begins_every_window_anew(tmp_path: Path) -> None:
    day = Day(tmp_path, lambda _, passed_s: IDLES)
    for _ in range(8):
        assert day.pass_(0.3) == []
        day.restart()

    assert day.pass_(1) != []
