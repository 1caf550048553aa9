"""What Slurm does to the parts of one job at a requeue: array tasks, the nodes of a gang.

On the simulated slurmctld and on the real one.
"""

from tests.contracts.real_slurm import eventually
from tests.contracts.test_slurm_contract import (
    Bench,
    bench,
    cluster,
    fresh_name,
    job,
    real_bench,
    state,
)

__all__ = ["bench", "cluster", "real_bench"]

WHOLE = "--gres=gpu:t4:4"


def test_a_requeue_of_one_task_leaves_the_others_alone(bench: Bench) -> None:
    bench.join(fresh_name())
    array = bench.submit("--array=0-1%2", "--gres=gpu:t4:1")
    tasks = [f"{array}_0", f"{array}_1"]
    eventually("both run", lambda: [state(bench, t) for t in tasks] == ["RUNNING"] * 2)

    assert bench.port.requeue([tasks[0]]) == {}

    eventually("its old run ended", lambda: state(bench, tasks[0]) != "RUNNING")
    assert state(bench, tasks[1]) == "RUNNING"
    eventually("it waits", lambda: state(bench, tasks[0]) == "PENDING")


def test_a_requeued_gang_leaves_all_its_nodes_and_starts_only_with_all(bench: Bench) -> None:
    names = [fresh_name(), fresh_name()]
    bench.join(*names)
    gang = bench.submit("-N2", WHOLE)
    bench.port.poke(names)
    eventually("it runs", lambda: state(bench, gang) == "RUNNING")

    bench.port.drain(names[:1], "tidegate: EC2 reclaims it")
    assert bench.port.requeue([gang]) == {}

    eventually("it waits", lambda: state(bench, gang) == "PENDING")
    bench.port.requeue([gang])
    bench.pause(3.0)
    assert job(bench, gang).node_names == ()
    bench.join(fresh_name())
    bench.port.requeue([gang])
    eventually("it runs again", lambda: state(bench, gang) == "RUNNING")
    assert names[0] not in job(bench, gang).node_names
