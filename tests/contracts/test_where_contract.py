"""On which nodes Slurm starts a job, as `demand.where` tells it: what the planner must not count.

Each test shows what Slurm does, and that the planner, given Slurm's own reading, thinks the same.
"""

import time

from local.waiting import eventually
from tests.contracts.sim_slurm import SimBench
from tests.contracts.test_slurm_contract import (
    Bench,
    bench,
    cluster,
    fresh_name,
    job,
    names,
    node,
    real_bench,
    state,
)
from tidegate.core.demand.where import Places, Where
from tidegate.core.model.slurm import Job

__all__ = ["bench", "cluster", "real_bench"]

GPUS = "--gres=gpu:t4:4"


def where(bench: Bench, job_id: str) -> Where | None:
    return places(bench).of(job(bench, job_id))


def places(bench: Bench) -> Places:
    now_s = bench.clock.now_s() if isinstance(bench, SimBench) else time.time()
    return Places(bench.port.read(), now_s)


def waits(bench: Bench, job_id: str, seconds: float = 3.0) -> Job:
    """The job after Slurm has looked at it and left it waiting."""
    bench.port.poke(sorted(names(bench)))
    bench.pause(seconds)
    bench.port.poke(sorted(names(bench)))
    eventually("it was looked at", lambda: job(bench, job_id).reason not in ("None", "Priority"))
    assert state(bench, job_id) == "PENDING"
    return job(bench, job_id)


def starts_on(bench: Bench, job_id: str) -> tuple[str, ...]:
    bench.port.poke(sorted(names(bench)))
    eventually(f"job {job_id} runs", lambda: bench.state(job_id) == "RUNNING")
    return job(bench, job_id).node_names


def test_who_wants_a_node_for_itself_is_told_from_who_does_not(bench):
    """In 26.05 OverSubscribe, which told it, says NO of both, once a pass has looked at them."""
    name = fresh_name()
    bench.join(name)
    shares, alone = bench.submit("-w", name, GPUS), bench.submit("-w", name, "--exclusive")
    assert starts_on(bench, shares) == (name,)

    assert waits(bench, alone).shape.is_exclusive
    assert not job(bench, shares).shape.is_exclusive


def test_no_job_starts_on_a_node_that_it_excludes(bench):
    one, two = fresh_name(), fresh_name()
    bench.join(one, two)
    not_here = bench.submit("-x", f"{one},{two}", GPUS)
    there = bench.submit("-x", one, GPUS)

    assert starts_on(bench, there) == (two,)
    # Slurm has its own order of names: 0f comes after 10 there.
    assert sorted(waits(bench, not_here).excluded_nodes) == sorted((one, two))
    found = where(bench, not_here)
    assert found is not None
    assert not found.takes(one)
    assert found.takes(fresh_name())


def test_a_job_for_a_node_that_was_deleted_takes_no_other(bench):
    gone, other = fresh_name(), fresh_name()
    bench.join(gone, other, is_drained=True)  # one that joins later may take the place of the first
    job_id = bench.submit("-w", gone)
    assert bench.port.delete([gone]) == {}
    bench.port.undrain([other])

    waiting = waits(bench, job_id)

    assert waiting.required_nodes == (gone,)
    assert f"asks for {gone} by name" in places(bench).never(waiting)


def test_a_reserved_node_is_for_those_who_ask_for_the_reservation(bench):
    mine, free = fresh_name(), fresh_name()
    bench.join(mine, free, is_drained=True)
    bench.reserve("lab", mine)
    bench.port.undrain([mine, free])
    own = bench.submit("--reservation=lab", "-t", "5", GPUS)
    first = bench.submit("-t", "5", GPUS)
    second = bench.submit("-t", "5", GPUS)

    assert starts_on(bench, own) == (mine,)
    assert starts_on(bench, first) == (free,)
    bench.cancel(own)
    assert waits(bench, second).reservation == ""
    assert node(bench, mine).state.is_reserved
    found = where(bench, second)
    assert found is not None
    assert not found.takes(mine)
    assert found.takes(free)


def test_a_full_reservation_takes_in_no_new_node(bench):
    mine, new = fresh_name(), fresh_name()
    bench.join(mine)
    bench.reserve("lab", mine)
    first = bench.submit("--reservation=lab", "-t", "5", GPUS)
    second = bench.submit("--reservation=lab", "-t", "5", GPUS)
    assert starts_on(bench, first) == (mine,)
    bench.join(new)

    waits(bench, second)

    found = where(bench, second)
    assert found is not None
    assert found.only == frozenset({mine})
    assert found.is_bound


def test_a_job_starts_only_where_it_ends_before_a_reservation_begins(bench):
    name = fresh_name()
    bench.join(name, is_drained=True)
    bench.reserve("later", name, begins_s=1800)
    bench.port.undrain([name])
    long = bench.submit("-t", "60", GPUS)
    assert waits(bench, long)
    found = where(bench, long)
    assert found is not None
    assert not found.takes(name)

    short = bench.submit("-t", "10", GPUS)

    assert starts_on(bench, short) == (name,)


def test_while_all_nodes_are_reserved_a_new_one_takes_nobody_else(bench):
    """Slurm enters the new node into the reservation when it next looks, and shows it only then."""
    old, new = fresh_name(), fresh_name()
    bench.join(old)
    bench.reserve("maint", "ALL", flags="maint,ignore_jobs")
    job_id = bench.submit("-t", "5", GPUS)
    bench.join(new)

    waiting = waits(bench, job_id)

    assert "the reservation maint has all nodes" in places(bench).never(waiting)


def test_the_first_job_of_a_closed_partition_waits_for_no_node(real_bench):
    """Slurm says of it at first what it says of a job that no node can take."""
    update = ("scontrol", "update", "partitionname=gpu")
    real_bench.run(*update, "state=DOWN")
    try:
        job_id = real_bench.submit(GPUS)
        assert job(real_bench, job_id).reason == "PartitionDown"
        real_bench.run(*update, "state=INACTIVE")
        eventually("it is seen", lambda: job(real_bench, job_id).reason == "PartitionInactive")
    finally:
        real_bench.run(*update, "state=UP")


def test_a_node_in_a_reservation_that_has_begun_is_not_deleted(bench):
    name = fresh_name()
    bench.join(name)
    bench.reserve("lab", name)
    eventually("it has begun", lambda: node(bench, name).state.is_reserved)
    bench.port.drain([name], "going")

    assert "busy" in bench.port.delete([name])[name]
    bench.unreserve("lab")
    assert bench.port.delete([name]) == {}


def test_with_its_last_node_a_reservation_that_has_not_begun_is_gone(bench):
    name = fresh_name()
    bench.join(name)
    bench.reserve("later", name, begins_s=3600)
    assert [one.name for one in bench.port.read().reservations] == ["later"]
    bench.port.drain([name], "going")

    assert bench.port.delete([name]) == {}

    eventually("it is gone", lambda: bench.port.read().reservations == ())


def test_a_feature_more_keeps_a_job_off_a_node_that_has_room(bench):
    job_id = bench.submit("-c1")
    wrong, right = fresh_name(), fresh_name()

    assert set(bench.port.constrain([job_id], "unheard-of")) == {job_id}
    assert bench.port.constrain([job_id], "gpu&t4") == {}
    bench.join(wrong, gpu_type="a10g")
    bench.port.poke([wrong])
    bench.pause(3)

    found = job(bench, job_id)
    assert (found.state, found.constraint) == ("PENDING", "gpu&t4")
    bench.join(right)
    bench.port.poke([right])
    eventually("it runs there", lambda: job(bench, job_id).node_names == (right,))
    assert set(bench.port.constrain([job_id], "gpu")) == {job_id}
    assert set(bench.port.constrain(["7; reboot"], "gpu")) == {"7; reboot"}
    assert job(bench, job_id).constraint == "gpu&t4"


def test_a_feature_more_is_asked_for_by_all_tasks_of_an_array_that_wait(bench):
    job_id = bench.submit("-c1", "--array=0-2%1")
    name = fresh_name()
    assert bench.port.constrain([job_id], "gpu") == {}
    bench.join(name)
    bench.port.poke([name])
    eventually("a task runs", lambda: any(each.is_running for each in bench.port.read().jobs))

    said = bench.port.constrain([job_id], "gpu&t4")

    found = {each.state: each.constraint for each in bench.port.read().jobs}
    assert found == {"RUNNING": "gpu", "PENDING": "gpu&t4"}
    assert set(said) <= {f"{job_id}_0"}
