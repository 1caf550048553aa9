"""Steps that a job tells, and what a requeue costs it: real Slurm with files, and the simulated."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from tests.contracts.sim_slurm import SimBench
from tidegate.agent.heartbeats import Heartbeats
from tidegate.agent.lost_work import LostWorks
from tidegate.core.interruption.heartbeat import Beat
from tidegate.core.model.job_files import LostWork
from tidegate.core.model.slurm import Job
from tidegate.sim.beats import told_beats
from tidegate.sim.clock import SimClock

NODE = "i-00000000000057e90"
# The checkpoint holds no more than step 2, however far a run comes. Of the last line the simulated
# Slurm learns how long it would be.
SCRIPT = """\
n=$(( ${{SLURM_RESTART_COUNT:-0}} > 0 ? 2 : 0 ))
while :; do echo "step $n" >{file}; sleep 0.5; n=$((n + 1)); done
sleep 300
"""


@dataclass
class Seen:
    """A cluster, and what its agent makes of each look."""

    slurm: RealSlurm | SimBench
    beats: Callable[[Sequence[Job]], Mapping[str, Beat]]
    now_s: Callable[[], float]
    works: LostWorks
    file: Path
    resumes_at: float
    job: Job | None = None
    lost: LostWork | None = None

    def look(self) -> "Seen":
        jobs = self.slurm.port.read().jobs
        self.job = next(iter(jobs), None)
        beats = self.beats(jobs)
        self.lost = next(iter(self.works(jobs, beats, self.now_s()).values()), None)
        self.told = next((beat.step for beat in beats.values()), None)
        return self

    def has_done(self, number: float) -> bool:
        self.look()
        assert self.told is None or not self.told.problem
        return self.told is not None and self.told.number >= number


@pytest.fixture(params=["simulated", "real"])
def seen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Seen]:
    file = tmp_path / "beat"
    if request.param == "simulated":
        bench = SimBench()
        bench.port.longest_step_s = 1.0
        bench.join(NODE)
        yield Seen(
            bench,
            lambda jobs: told_beats(jobs, bench.port),
            bench.clock.now_s,
            LostWorks(SimClock()),
            file,
            0.0,
        )
        return
    with slurm_of_its_own() as slurm:
        slurm.join(NODE)
        heartbeats = Heartbeats(tmp_path)

        def beats(jobs: Sequence[Job]) -> Mapping[str, Beat]:
            heartbeats(jobs)
            heartbeats.step()
            return heartbeats(jobs)

        yield Seen(slurm, beats, time.time, LostWorks(SimClock()), file, 2.0)


def test_a_requeue_costs_the_steps_that_are_done_again(seen: Seen) -> None:
    asked = ("--gres=gpu:t4:4", f"--comment=tidegate:heartbeat={seen.file}@60")
    job_id = seen.slurm.submit(*asked, script=SCRIPT.format(file=seen.file))
    eventually("it has told some steps", lambda: seen.has_done(12))

    assert seen.slurm.port.requeue([job_id]) == {}
    lost = eventually("its run has ended", lambda: seen.look().lost)
    assert lost is not None
    assert lost.resumed_step is None
    assert lost.step is not None
    assert lost.step >= 12
    eventually("it waits", lambda: (job := seen.look().job) and job.state == "PENDING")
    seen.slurm.pause(1.0)
    seen.slurm.port.start([job_id])
    eventually("it goes on", lambda: (found := seen.look().lost) and found.resumed_step is not None)

    assert seen.lost
    assert seen.lost.gpus == 4
    assert seen.resumes_at <= (seen.lost.resumed_step or 0.0) <= seen.resumes_at + 3
    done_s = seen.lost.stood_since_s - (seen.lost.since_s or 0.0)
    assert 2.0 <= done_s == seen.lost.redone_s <= 30.0
    seen.slurm.cancel(job_id)
