"""What the drill counts and what it does not accept, on a cluster of words."""

import re
from dataclasses import dataclass, field

import pytest

from local.drill.restore import PATIENCE_S, Drill, NotRestored, Restored, sentence

BOOT_S = 20.0
DEPLOY_S = 10.0


@dataclass
class Played:
    """Slurm's answers as text. `saves_every_s`: what is younger goes with the head."""

    saves_every_s: float = 5.0
    forgets: str = ""  # what a new head lacks, besides
    at_s: float = 1000.0
    up_at_s: float = 0.0
    queue: dict[int, tuple[float, str, str]] = field(default_factory=dict)
    records: list[str] = field(default_factory=list)
    dumped: list[str] = field(default_factory=list)

    def now_s(self) -> float:
        return self.at_s

    def wait(self, seconds: float) -> None:
        self.at_s += seconds

    def run(self, line: str) -> str | None:
        if self.at_s < self.up_at_s:
            return None
        if found := re.search(r"--job-name=(\S+).*--wrap '(.+)'", line):
            return self._submit(found[1], found[2], is_held="--hold" in line)
        if line.startswith("sacct"):
            return "\n".join(self.records)
        if "%i" in line:
            return "\n".join(map(str, self.queue))
        if found := re.search(r"squeue -h -j (\d+)", line):
            return "RUNNING i-1 2026-11-24T01:56:20 0" if int(found[1]) in self.queue else ""
        if line == "tidegate-accounting dump":
            self.dumped = [*self.records]
        if "scancel" in line:
            self.queue.clear()
        return "Slurmctld(primary) is UP"

    def _submit(self, name: str, wrapped: str, *, is_held: bool) -> str:
        number = max(self.queue, default=len(self.records)) + 1
        if is_held or wrapped != "true":
            self.queue[number] = (self.at_s, name, wrapped)
        else:
            self.records.append(f"{number}|{name}|COMPLETED|{self.at_s}|{self.at_s}")
        return str(number)

    def lose_head(self) -> None:
        self.up_at_s = float("inf")
        kept = self.at_s - self.saves_every_s
        self.queue = {
            number: job
            for number, job in self.queue.items()
            if job[0] <= kept and job[2] != self.forgets
        }
        if self.forgets == "accounting":
            self.records.clear()

    def lose_nodes(self) -> None:
        assert "drill" not in str(self.queue), "jobs are ended before their nodes are"

    def lose_volume(self) -> None:
        self.queue.clear()
        self.records = [] if self.forgets == "dump" else [*self.dumped]

    def replace_head(self) -> None:
        self.at_s += DEPLOY_S
        self.up_at_s = self.at_s + BOOT_S

    def is_heard(self) -> bool:
        return self.at_s > self.up_at_s + 2


def drilled(cluster: Played) -> tuple[tuple[Restored, ...], list[str]]:
    said: list[str] = []
    return Drill(cluster, said.append).run(), said


def test_rto_is_from_the_loss_until_the_planner_hears_the_head():
    (head, volume), _ = drilled(Played())

    assert head.answers_s == volume.answers_s == DEPLOY_S + BOOT_S
    assert head.rto_s == volume.rto_s > DEPLOY_S + BOOT_S + 2


@pytest.mark.parametrize(("saves_every_s", "rpo_s"), [(0.0, 0.0), (1.5, 1.0), (4.5, 4.0)])
def test_rpo_is_the_age_of_the_oldest_job_that_was_lost(saves_every_s, rpo_s):
    (head, _), said = drilled(Played(saves_every_s))

    assert head.rpo_s == rpo_s
    assert f"{8 - int(rpo_s)} of 8 jobs of the last seconds are in the queue" in said


def test_that_nothing_was_lost_is_said():
    (head, _), _ = drilled(Played(0.0))

    assert "RPO 0 s, nothing was lost" in sentence(head)


@pytest.mark.parametrize(
    ("forgets", "words"),
    [
        ("sleep 900", "job 2 runs on, where and since when it ran"),
        ("accounting", "accounting knows job 1"),
        ("dump", "accounting has all 2 jobs of the dump"),
    ],
)
def test_what_does_not_come_back_fails_the_drill(forgets, words):
    with pytest.raises(NotRestored, match=f"not so: {words}"):
        drilled(Played(forgets=forgets))


def test_a_head_that_never_comes_fails_it_in_time(monkeypatch):
    cluster = Played()
    monkeypatch.setattr(cluster, "replace_head", lambda: None)

    with pytest.raises(NotRestored, match="after 300 s still not: slurmctld answers"):
        drilled(cluster)
    assert cluster.at_s < 1000 + PATIENCE_S + 30
