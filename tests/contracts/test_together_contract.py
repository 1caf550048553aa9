"""What Slurm does to the parts of one job: components, array tasks, the nodes of a gang.

On the simulated slurmctld and on the real one.
"""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from tests.contracts.sim_slurm import SimBench
from tests.contracts.test_slurm_contract import (
    Bench,
    bench,
    fresh_name,
    job,
    real_bench,
    running_job,
    state,
)
from tidegate.core.model.ended import EndedJob
from tidegate.core.model.slurm import Job

__all__ = ["bench", "real_bench"]

WHOLE = "--gres=gpu:t4:4"
BOTH_RUN, BOTH_WAIT = ["RUNNING"] * 2, ["PENDING"] * 2
# Components start in a pass of backfill alone, which comes every 30 s otherwise; and a node keeps
# the word PLANNED, with which it cannot be deleted, until the next one.
BACKFILL = "SchedulerParameters=bf_interval=1"


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealSlurm]:
    with slurm_of_its_own(BACKFILL) as slurm:
        yield slurm


def components(bench: Bench, leader: str) -> list[Job]:
    return [one for one in bench.port.read().jobs if one.het_job_id == leader]


def states(bench: Bench, leader: str) -> list[str]:
    return [one.state for one in components(bench, leader)]


def running_together(bench: Bench) -> str:
    """A heterogeneous job of two components, each with a node of its own."""
    bench.join(fresh_name(), fresh_name())
    leader = bench.submit(WHOLE, ":", WHOLE)
    eventually("both run", lambda: states(bench, leader) == BOTH_RUN)
    return leader


def test_components_start_all_at_once_or_not_at_all(bench: Bench) -> None:
    bench.join(fresh_name())
    leader = bench.submit(WHOLE, ":", WHOLE)
    for _ in range(4):
        bench.pause(1.0)
        assert states(bench, leader) == BOTH_WAIT

    bench.join(fresh_name())

    eventually("both run", lambda: states(bench, leader) == BOTH_RUN)
    used = [one.node_names for one in components(bench, leader)]
    assert len(used) == len(set(used)) == 2


def test_a_requeue_of_the_leader_requeues_every_component(bench: Bench) -> None:
    leader = running_together(bench)

    assert bench.port.requeue([leader]) == {}

    eventually("both wait", lambda: states(bench, leader) == BOTH_WAIT)
    bench.pause(1.0)
    bench.port.start([leader])
    eventually(
        "both run again, and not two minutes later", lambda: states(bench, leader) == BOTH_RUN
    )


def test_a_requeue_of_another_component_is_refused(bench: Bench) -> None:
    leader = running_together(bench)
    (other,) = [one.job_id for one in components(bench, leader) if one.job_id != leader]

    refused = bench.port.requeue([other])

    assert refused == {other: "Job not heterogeneous job leader"}
    assert states(bench, leader) == BOTH_RUN


def test_a_node_set_down_takes_its_heterogeneous_job_off_every_node(bench: Bench) -> None:
    """Of a component that is not the first. Of the first one only when it was requeued before."""
    leader = running_together(bench)
    (names,) = [one.node_names for one in components(bench, leader) if one.job_id != leader]

    bench.port.down(names, "tidegate: its instance is gone")

    eventually("both wait", lambda: states(bench, leader) == BOTH_WAIT)


def test_a_requeued_heterogeneous_job_stays_whole_when_its_first_node_is_set_down(
    bench: Bench,
) -> None:
    """Without the requeue Slurm ends the other components when the first one's script ends."""
    leader = running_together(bench)
    names = job(bench, leader).node_names

    assert bench.port.requeue([leader]) == {}
    bench.port.down(names, "tidegate: its instance is gone")

    eventually("both wait", lambda: states(bench, leader) == BOTH_WAIT)
    bench.pause(1.0)
    assert states(bench, leader) == BOTH_WAIT


def test_of_a_dead_first_node_slurm_requeues_the_first_component_alone(bench: Bench) -> None:
    leader = running_together(bench)
    (name,) = job(bench, leader).node_names
    bench.die(name)

    bench.port.down([name], "tidegate: its instance is gone")

    eventually("the first waits", lambda: bench.state(leader) == "PENDING")
    bench.pause(2.0)
    assert sorted(states(bench, leader)) == ["PENDING", "RUNNING"]


def test_a_requeue_of_a_leader_that_waits_requeues_what_still_runs(bench: Bench) -> None:
    leader = running_together(bench)
    (name,) = job(bench, leader).node_names
    bench.die(name)
    bench.port.down([name], "tidegate: its instance is gone")
    eventually("one of two waits", lambda: sorted(states(bench, leader)) == ["PENDING", "RUNNING"])

    assert bench.port.requeue([leader]) == {}

    eventually("both wait", lambda: states(bench, leader) == BOTH_WAIT)


# Which component is signalled, how, and in which ones it arrives.
SIGNALS = [
    ("first", "USR1", [0, 1]),
    ("first", "S:USR1", [0, 1]),
    ("other", "S:USR1", [1]),
    ("other", "USR1", []),
    ("other", "B:USR1", []),
]


@pytest.mark.parametrize(("whom", "signal", "reached"), SIGNALS)
def test_a_simulated_signal_to_the_first_component_reaches_all(
    whom: str, signal: str, reached: list[int]
) -> None:
    """Only the first one has a script, without which scancel --full reaches no step either."""
    bench = SimBench()
    leader = running_together(bench)
    ids = sorted(one.job_id for one in components(bench, leader))

    assert bench.port.signal([ids[whom == "other"]], signal) == {}

    assert [n for n, each in enumerate(ids) if bench.port.jobs[each].signals] == reached


def _are_there(files: list[Path]) -> bool:
    return all(each.exists() for each in files)


def test_a_real_signal_to_the_first_component_reaches_all(real_bench: RealSlurm) -> None:
    """All of `SIGNALS` on one job, as its steps note them."""
    real_bench.join(fresh_name(), fresh_name())
    with TemporaryDirectory(prefix="tgs", dir="/tmp") as folder:
        step = Path(folder, "step.sh")
        step.write_text(
            f"trap 'touch {folder}/got$1' USR1; touch {folder}/ready$1\n"
            "for i in $(seq 600); do sleep 0.1; done\n"
        )
        steps = [f"srun --het-group={n} bash {step} {n} &" for n in (0, 1)]
        script = " ".join(("trap : USR1;", *steps, "for i in $(seq 600); do sleep 0.1; done"))
        leader = real_bench.submit(WHOLE, ":", WHOLE, script=script)
        ready = [Path(folder, f"ready{n}") for n in (0, 1)]
        eventually("the steps run", lambda: all(each.exists() for each in ready))
        ids = sorted(one.job_id for one in components(real_bench, leader))
        got = [Path(folder, f"got{n}") for n in (0, 1)]
        for whom, signal, reached in SIGNALS:
            assert real_bench.port.signal([ids[whom == "other"]], signal) == {}
            eventually("the signal comes", partial(_are_there, [got[n] for n in reached]))
            real_bench.pause(1.0)  # and no other step gets it
            assert [n for n in (0, 1) if got[n].exists()] == reached, (whom, signal)
            for each in got:
                each.unlink(missing_ok=True)


def test_a_requeue_of_one_task_leaves_the_others_alone(bench: Bench) -> None:
    bench.join(fresh_name())
    array = bench.submit("--array=0-1%2", "--gres=gpu:t4:1")
    tasks = [f"{array}_0", f"{array}_1"]
    eventually("both run", lambda: [state(bench, t) for t in tasks] == ["RUNNING"] * 2)

    assert bench.port.requeue([tasks[0]]) == {}

    eventually("its old run ended", lambda: bench.state(tasks[0]) != "RUNNING")
    assert state(bench, tasks[1]) == "RUNNING"
    eventually("it waits", lambda: bench.state(tasks[0]) == "PENDING")


def test_a_requeued_gang_leaves_all_its_nodes_and_starts_only_with_all(bench: Bench) -> None:
    names = [fresh_name(), fresh_name()]
    bench.join(*names)
    gang = bench.submit("-N2", WHOLE)
    bench.port.poke(names)
    eventually("it runs", lambda: bench.state(gang) == "RUNNING")

    bench.port.drain(names[:1], "tidegate: EC2 reclaims it")
    assert bench.port.requeue([gang]) == {}

    eventually("it waits", lambda: bench.state(gang) == "PENDING")
    bench.pause(1.0)
    bench.port.start([gang])
    bench.pause(3.0)
    assert job(bench, gang).node_names == ()
    bench.join(fresh_name())
    bench.port.start([gang])
    eventually("it runs again", lambda: bench.state(gang) == "RUNNING")
    assert names[0] not in job(bench, gang).node_names


def test_jobs_that_end_by_themselves_are_told_with_their_nodes(bench):
    one, two = sorted((fresh_name(), fresh_name()))
    bench.join(one, two)
    both = bench.submit("-N2", "--gres=gpu:t4:4", script="sleep 1")
    cancelled = running_job_after(bench, both, one)
    bench.cancel(cancelled)

    found = eventually("it is told", lambda: ends(bench, both))

    assert [(sorted(each.node_names), each.is_failed) for each in found] == [([one, two], False)]
    now_s = bench.clock.now_s() if isinstance(bench, SimBench) else time.time()
    assert now_s - 60 < found[0].ended_at_s <= now_s
    assert ends(bench, cancelled) == []


def test_a_job_that_fails_is_told_as_failed(real_bench):
    name = fresh_name()
    real_bench.join(name)
    job_id = real_bench.submit("-w", name, script="exit 3")
    real_bench.port.poke([name])

    found = eventually("it is told", lambda: ends(real_bench, job_id))

    assert [(each.node_names, each.is_failed) for each in found] == [((name,), True)]


def ends(bench: Bench, job_id: str) -> list[EndedJob]:
    return [each for each in bench.port.read().ended if each.job_id == job_id]


def running_job_after(bench: Bench, first: str, name: str) -> str:
    """A job that runs once the first has ended."""
    bench.port.poke([name])
    eventually(f"job {first} has ended", lambda: not bench.state(first))
    return running_job(bench, name)
