"""What every implementation of `ports.Slurm` promises: the real slurmctld and the simulated.

Tests of `real_bench` are about the text of Slurm's commands, which the simulation has not.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from tests.contracts.sim_slurm import SimBench
from tests.make import A10G, T4_BIG, pool
from tests.make import cluster as cluster_of
from tidegate.core.demand.demand import demand
from tidegate.core.model.slurm import Job, Node, SetBy
from tidegate.ports.slurm import Slurm


class Bench(Protocol):
    """A cluster to drive: users submit, machines join, and the port under test."""

    @property
    def port(self) -> Slurm: ...

    def submit(self, *options: str, script: str = ...) -> str: ...

    def state(self, job_id: str) -> str: ...

    def pause(self, seconds: float) -> None: ...

    def die(self, name: str) -> None: ...

    def cancel(self, *job_ids: str) -> None: ...

    def suspend(self, job_id: str) -> None: ...

    def reserve(
        self, name: str, *nodes: str, begins_s: int = ..., minutes: int = ..., flags: str = ...
    ) -> None: ...

    def unreserve(self, name: str) -> None: ...

    def join(
        self, *names: str, gpu_type: str = ..., gpus: int = ..., is_drained: bool = ...
    ) -> None: ...


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealSlurm]:
    with slurm_of_its_own() as slurm:
        yield slurm


@pytest.fixture
def real_bench(cluster: RealSlurm) -> Iterator[RealSlurm]:
    yield cluster
    cluster.clear()


@pytest.fixture(params=["simulated", "real"])
def bench(request: pytest.FixtureRequest) -> Bench:
    """The same promises, kept by the simulated slurmctld and by the real one."""
    if request.param == "simulated":
        return SimBench()
    real: RealSlurm = request.getfixturevalue("real_bench")
    return real


_numbers = iter(range(1, 1_000))


def fresh_name() -> str:
    return f"i-{next(_numbers):017x}"


def job(bench: Bench, job_id: str) -> Job:
    return next(one for one in bench.port.read().jobs if one.job_id == job_id)


def state(bench: Bench, job_id: str) -> str:
    return next((one.state for one in bench.port.read().jobs if one.job_id == job_id), "")


def node(bench: Bench, name: str) -> Node:
    return next(one for one in bench.port.read().nodes if one.name == name)


def names(bench: Bench) -> set[str]:
    return {one.name for one in bench.port.read().nodes}


def running_job(bench: Bench, name: str, *options: str, script: str = "sleep 300") -> str:
    job_id = bench.submit("-w", name, *options, script=script)
    bench.port.poke([name])
    eventually(f"job {job_id} runs", lambda: bench.state(job_id) == "RUNNING")
    return job_id


def test_an_empty_cluster_reads_as_no_jobs_and_no_nodes(bench):
    reading = bench.port.read()

    assert (reading.jobs, reading.nodes, reading.associations) == ((), (), ())
    assert reading.version


def test_a_pending_job_is_read_with_its_shape(bench):
    job_id = bench.submit("-N2", "--gres=gpu:t4:4", "-c6", "--mem=20G", "-t", "90", "-C", "t4")

    found = job(bench, job_id)

    assert (found.state, found.nodes, found.count, found.constraint) == ("PENDING", 2, 1, "t4")
    assert (found.shape.gpus, found.shape.gpu_type, found.shape.cpus) == (4, "t4", 6)
    assert (found.shape.memory_mib, found.time_limit_s) == (20_480, 5_400.0)


def test_a_comment_cannot_forge_a_row(real_bench):
    job_id = real_bench.submit("--comment=a|b\n99~99~\n~PENDING~", "--gres=gpu:t4:1")

    jobs = real_bench.port.read().jobs

    assert [one.job_id for one in jobs] == [job_id]
    assert jobs[0].comment == "a|b\n99~99~\n~PENDING~"


def test_a_job_of_several_kinds_of_nodes_starts_on_what_is_planned_for_it(real_bench):
    """Without -N it needs as many nodes as its constraint counts; each counts for one kind."""
    job_id = real_bench.submit("-C", "[t4*1&a10g*2]", "--gres=gpu:1")
    of = cluster_of(pool("t4", (T4_BIG,)), pool("a10g", (A10G,)))

    needed, _ = demand(real_bench.port.read(), of, frozenset())
    for need in needed:
        real_bench.join(*(fresh_name() for _ in range(need.nodes)), gpu_type=need.constraint)
    real_bench.port.poke(names(real_bench))

    assert [(need.nodes, need.constraint) for need in needed] == [(1, "t4"), (2, "a10g")]
    eventually("the job runs", lambda: real_bench.state(job_id) == "RUNNING", 6.0)
    assert set(job(real_bench, job_id).node_names) == names(real_bench)


def test_an_array_counts_no_more_than_its_throttle(bench):
    job_id = bench.submit("--array=0-99%3", "--gres=gpu:t4:1")

    assert job(bench, job_id).count == 3


def test_a_long_list_of_tasks_is_read_in_full(real_bench):
    job_id = real_bench.submit("--array=1-999:3", "--gres=gpu:t4:1")

    assert job(real_bench, job_id).count == 333


def test_memory_per_cpu_and_per_node_are_told_apart_under_cpus_per_gpu(real_bench):
    options = ("-N1", "--gpus-per-node=2", "--cpus-per-gpu=4")
    per_node = real_bench.submit(*options, "--mem=1500")
    per_cpu = real_bench.submit(*options, "--mem-per-cpu=1500")

    assert job(real_bench, per_node).shape.memory_mib == 1_500
    assert job(real_bench, per_cpu).shape.memory_mib == 12_000


def test_a_joined_node_is_read_with_what_is_used(bench):
    name = fresh_name()
    bench.join(name)
    job_id = running_job(bench, name, "--gres=gpu:t4:3", "-c8")

    found = node(bench, name)

    assert (found.cpus, found.gpus, found.gpu_type, found.memory_mib) == (48, 4, "t4", 187_000)
    assert (found.cpus_alloc, found.gpus_alloc) == (8, 3)
    assert found.state.is_busy
    assert found.address
    assert job(bench, job_id).node_names == (name,)


def test_the_nodes_of_a_wide_job_are_unfolded(bench):
    wide = [fresh_name() for _ in range(3)]
    bench.join(*wide)
    job_id = bench.submit("-N3", "--gres=gpu:t4:1")
    bench.port.poke(wide)
    eventually("the job runs", lambda: bench.state(job_id) == "RUNNING")

    assert sorted(job(bench, job_id).node_names) == sorted(wide)


def test_a_drained_node_takes_no_job_and_an_undrained_one_does(bench):
    name = fresh_name()
    bench.join(name)
    bench.port.drain([name], "with spaces = and [brackets]")

    drained = node(bench, name)
    assert drained.state.is_drain
    assert drained.state.is_deletable
    assert drained.reason == "with spaces = and [brackets]"
    bench.port.undrain([name])
    running_job(bench, name)


def test_a_drain_reason_that_names_an_hour_comes_back_letter_for_letter(bench):
    """In the morning a node is opened only when it still carries the reason of the evening."""
    name, reason = (
        fresh_name(),
        "tidegate: the cluster is stopped until Tue 24 Nov 08:00 Asia/Tokyo",
    )
    bench.join(name)

    bench.port.drain([name], reason)

    assert node(bench, name).reason == reason


def test_unknown_and_impossible_names_do_not_keep_the_others_from_a_drain(bench):
    name = fresh_name()
    bench.join(name)

    bench.port.drain(["i-0000000000000dead", name, "--all", "a;b"], "gone")

    assert node(bench, name).state.is_drain


def test_a_busy_node_is_not_deleted_and_a_free_one_in_the_same_call_is(bench):
    busy, free = fresh_name(), fresh_name()
    bench.join(busy, free)
    job_id = running_job(bench, busy)
    bench.port.drain([busy, free], "going")

    refused = bench.port.delete([busy, free, fresh_name()])

    assert list(refused) == [busy]
    assert "busy" in refused[busy]
    assert names(bench) == {busy}
    assert state(bench, job_id) == "RUNNING"


def test_a_requeued_job_waits_for_nodes_and_not_for_two_minutes(bench):
    name = fresh_name()
    bench.join(name)
    job_id = running_job(bench, name)

    assert bench.port.requeue([job_id]) == {}
    eventually("the old run ended", lambda: bench.state(job_id) == "PENDING")
    assert job(bench, job_id).restarts == 1
    bench.pause(1.0)
    assert job(bench, job_id).reason.startswith("BeginTime")
    bench.port.start([job_id])

    eventually("the job runs again", lambda: bench.state(job_id) == "RUNNING")


def test_a_job_that_runs_is_not_started(bench):
    name = fresh_name()
    bench.join(name)
    job_id = running_job(bench, name)

    bench.port.start([job_id, "999999", "7; reboot"])

    bench.pause(1.0)
    assert state(bench, job_id) == "RUNNING"


def test_a_node_set_down_gives_up_its_jobs_at_once_and_can_be_deleted(bench):
    name = fresh_name()
    bench.join(name)
    again = running_job(bench, name, "--gres=gpu:t4:1")
    once = running_job(bench, name, "--gres=gpu:t4:1", "--no-requeue")

    bench.port.down([name, fresh_name()], "tidegate: its instance is gone")

    assert node(bench, name).state.is_down
    eventually("the job waits", lambda: bench.state(again) == "PENDING", 5.0)
    assert state(bench, once) not in ("RUNNING", "PENDING")
    eventually("it can be deleted", lambda: node(bench, name).state.is_deletable, 5.0)
    assert bench.port.delete([name]) == {}
    assert name not in names(bench)


def test_a_finished_job_is_not_requeued(bench):
    name = fresh_name()
    bench.join(name)
    job_id = bench.submit("-w", name, script="true")
    bench.port.poke([name])
    eventually("the job ended", lambda: bench.state(job_id) == "")

    bench.port.requeue([job_id])

    assert state(bench, job_id) == ""


def test_requeue_reports_the_jobs_that_it_could_not_requeue(bench):
    name = fresh_name()
    bench.join(name)
    stubborn = running_job(bench, name, "--no-requeue")

    refused = bench.port.requeue([stubborn, "999999", "7; reboot"])

    assert set(refused) == {stubborn, "999999", "7; reboot"}
    assert state(bench, stubborn) == "RUNNING"


def test_a_signal_reaches_the_batch_script(real_bench, tmp_path):
    name = fresh_name()
    real_bench.join(name)
    got = f"/tmp/{name}"
    wait = "for i in $(seq 300); do sleep 0.1; done"
    script = f"trap 'touch {got}; exit 0' USR1; touch {got}.ready; {wait}"
    job_id = running_job(real_bench, name, script=script)
    eventually("the trap is set", Path(f"{got}.ready").exists)

    assert real_bench.port.signal([job_id], "USR1") == {}

    eventually("the trap ran", lambda: Path(got).exists())
    Path(got).unlink()
    Path(f"{got}.ready").unlink()


def test_a_running_job_shows_the_signal_that_its_script_asks_for(bench):
    name = fresh_name()
    bench.join(name)

    job_id = running_job(bench, name, script="#SBATCH --signal=B:USR1@20\nsleep 300")

    assert job(bench, job_id).signal == "B:USR1@20"


@pytest.mark.parametrize(
    ("signal", "reached"),
    [("B:USR1", {"script"}), ("S:USR1", {"step"}), ("USR1", {"script", "step"})],
)
def test_a_signal_reaches_whom_it_is_for(real_bench, signal, reached):
    name = fresh_name()
    real_bench.join(name)
    got = f"/tmp/{name}"
    note = "trap 'touch {0}' USR1; {1} touch {0}.ready; for i in $(seq 300); do sleep 0.1; done"
    Path(f"{got}.sh").write_text(note.format(f"{got}.step", ""))
    script = note.format(f"{got}.script", f"srun bash {got}.sh &")
    job_id = running_job(real_bench, name, script=script)
    for part in ("script", "step"):
        eventually(f"the {part} is ready", Path(f"{got}.{part}.ready").exists)

    assert real_bench.port.signal([job_id], signal) == {}

    for part in reached:
        eventually(f"the {part} got it", Path(f"{got}.{part}").exists)
    time.sleep(0.5)
    noted = {part for part in ("script", "step") if Path(f"{got}.{part}").exists()}
    for file in Path("/tmp").glob(f"{name}.*"):
        file.unlink()
    assert noted == reached


def test_signals_that_do_not_exist_and_jobs_that_do_not_run_are_refused(bench):
    assert set(bench.port.signal(["7"], "9; reboot")) == {"7"}
    assert set(bench.port.signal(["999999"], "USR1")) == {"999999"}


def test_a_comment_is_one_line_out_of_the_users_reach(bench):
    job_id = bench.submit("--gres=gpu:t4:1", "--comment=mine")

    bench.port.comment(job_id, "waits for\nfour t4 \x07nodes" + "x" * 2_000)

    assert job(bench, job_id).comment == "mine"
    bench.port.comment("999999", "no such job")
    bench.port.comment("7; reboot", "no such job")


def test_a_poke_starts_a_job_that_registration_alone_would_not(bench):
    job_id = bench.submit("--gres=gpu:t4:1")
    bench.pause(4)  # the pass that follows a submission is over
    name = fresh_name()
    bench.join(name)
    began_s = time.monotonic()

    bench.port.poke([name, fresh_name()])

    eventually("the job runs", lambda: bench.state(job_id) == "RUNNING", 6.0)
    print(f"poke to running: {time.monotonic() - began_s:.2f} s")


def test_a_poke_changes_nothing_about_its_nodes(bench):
    """Neither whose drain it is nor a hint of the planner's."""
    name = fresh_name()
    bench.join(name)
    bench.port.drain([name], "tidegate: kept for larger jobs")
    bench.port.weigh([name], 7)
    before = eventually("it is drained", lambda: (n := node(bench, name)).state.is_drain and n)

    bench.port.poke([name, fresh_name()])

    assert node(bench, name) == before
    assert (before.set_by, before.weight) == (SetBy.US, 7)
