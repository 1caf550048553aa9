"""The whole loop in virtual time: real planner, service and agent, a cruel world around them."""

import pytest

from tests.make import A10G, T4, T4_BIG, cluster, pool
from tidegate.core.model.cluster import Limits
from tidegate.core.model.slurm import Shape
from tidegate.sim.faults import Killed, no_faults
from tidegate.sim.slurm_parts import Submit
from tidegate.sim.world import SimWorld

BOOT_S = 60.0


def world(boot_s: float = BOOT_S, limits: Limits | None = None) -> SimWorld:
    of = cluster(
        pool(types=(T4, T4_BIG), limits=limits or Limits()),
        pool("a10g", (A10G,)),
    )
    return SimWorld(of, lambda instance: boot_s)


def one_gpu(duration_s: float = 100.0, **more: object) -> Submit:
    return Submit("ada", Shape(1, "t4", 1, 1000), duration_s, **more)  # type: ignore[arg-type]


def gang(nodes: int = 3, duration_s: float = 100.0) -> Submit:
    return Submit("ada", Shape(4, "a10g", 4, 1000), duration_s, nodes=nodes, priority=5)


def run(of: SimWorld, seconds: float, step_s: float = 1.0) -> None:
    for _ in range(int(seconds / step_s)):
        of.step(step_s)


def states(of: SimWorld) -> dict[str, str]:
    return {job_id: job.state for job_id, job in of.slurm.jobs.items()}


def test_jobs_run_from_zero_and_nothing_is_left() -> None:
    w = world()
    for _ in range(3):
        w.slurm.submit(one_gpu())
    w.slurm.submit(gang())

    run(w, 600)

    assert set(states(w).values()) == {"COMPLETED"}
    assert w.compute.live() == ()
    assert w.slurm.nodes == {}
    assert len(w.compute.everything) == 6


def test_small_jobs_do_not_rob_a_gang_whose_nodes_join_one_by_one() -> None:
    boots = iter((10.0, 70.0, 130.0))
    w = SimWorld(cluster(pool("a10g", (A10G,))), lambda instance: next(boots, 200.0))
    small = Submit("bob", Shape(1, "a10g", 1, 1000), 5000.0)
    gang_id = w.slurm.submit(gang())
    w.slurm.submit(small)

    run(w, 140)

    assert w.slurm.jobs[gang_id].state == "RUNNING"


def test_an_array_runs_no_wider_than_its_limit_and_buys_no_more() -> None:
    w = world()
    w.slurm.submit(one_gpu(duration_s=30.0, array=6, throttle=2))

    run(w, 900)

    assert set(states(w).values()) == {"COMPLETED"}
    assert len(w.compute.everything) == 2


def test_slow_boots_are_not_bought_twice() -> None:
    w = world(boot_s=500.0)
    w.slurm.submit(one_gpu())

    run(w, 490)

    assert len(w.compute.everything) == 1


def test_a_boot_that_never_finishes_is_replaced_after_its_bound() -> None:
    boots = iter((10_000.0,))
    w = SimWorld(cluster(pool(types=(T4,))), lambda instance: next(boots, 60.0))
    job_id = w.slurm.submit(one_gpu())

    run(w, 1200)

    assert w.slurm.jobs[job_id].state == "COMPLETED"
    assert len(w.compute.everything) == 2


def test_a_gang_with_a_member_that_never_comes_starts_once_that_one_is_replaced() -> None:
    boots = iter((60.0, 60.0, 10_000.0))
    w = SimWorld(cluster(pool("a10g", (A10G,))), lambda instance: next(boots, 60.0))
    gang_id = w.slurm.submit(gang())
    small = w.slurm.submit(Submit("bob", Shape(1, "a10g", 1, 1000), 2000.0))
    run(w, 800)
    waiting = w.slurm.jobs[gang_id].state

    run(w, 300)

    assert waiting == "PENDING"
    assert w.slurm.jobs[gang_id].state in ("RUNNING", "COMPLETED")
    assert w.slurm.jobs[small].state == "RUNNING"
    assert len(w.compute.everything) == 5


def test_a_notice_moves_the_job_in_time() -> None:
    w = world()
    job_id = w.slurm.submit(one_gpu(duration_s=400.0, comment="tidegate:ckpt=USR1@20"))
    run(w, 100)
    victim = w.slurm.jobs[job_id].node_names[0]

    w.notice(victim)
    run(w, 60)

    job = w.slurm.jobs[job_id]
    assert job.signals == ["USR1"]
    assert job.requeues == 1
    assert victim not in {node.instance_id for node in w.ledger.view().nodes if node.phase < 3}
    run(w, 800)
    assert job.state == "COMPLETED"


def test_a_node_that_dies_without_a_word_loses_no_job() -> None:
    w = world()
    job_id = w.slurm.submit(one_gpu(duration_s=300.0))
    run(w, 100)

    w.compute.end(w.slurm.jobs[job_id].node_names[0])
    run(w, 1500)

    assert w.slurm.jobs[job_id].state == "COMPLETED"
    assert w.slurm.jobs[job_id].requeues == 1
    assert w.compute.live() == ()


def test_while_slurm_is_down_nothing_happens_and_then_all_goes_on() -> None:
    w = world()
    job_id = w.slurm.submit(one_gpu(duration_s=50.0))
    run(w, 2)
    w.slurm.is_up = False
    run(w, 100)
    bought = len(w.compute.everything)

    w.slurm.is_up = True
    for instance in w.compute.live():
        w._register(instance)  # slurmd tries to register until slurmctld answers
    run(w, 600)

    assert bought == 1
    assert w.slurm.jobs[job_id].state == "COMPLETED"
    assert w.compute.live() == ()


def test_orders_delivered_twice_and_late_do_no_harm() -> None:
    w = world()
    first = w.slurm.submit(one_gpu(duration_s=60.0))
    run(w, 300)
    for order in list(w.bus.orders):
        w.bus.repeat(order)
    second = w.slurm.submit(one_gpu(duration_s=60.0))

    run(w, 600)

    assert [w.slurm.jobs[each].state for each in (first, second)] == ["COMPLETED"] * 2
    assert w.compute.live() == ()


def test_a_limit_holds_at_every_instant() -> None:
    w = world(limits=Limits(gpus=3))
    for _ in range(9):
        w.slurm.submit(one_gpu(duration_s=40.0))

    for _ in range(1200):
        w.step(1.0)
        assert len(w.compute.live()) <= 3

    assert set(states(w).values()) == {"COMPLETED"}


def run_dying(w: SimWorld, every: int) -> None:
    """Each n-th call of a port kills the planner in the first minutes; then all goes well."""
    calls = 0

    def kill(point: str) -> None:
        nonlocal calls
        calls += point.startswith("before")
        if calls % every == 0 and point.startswith(("before", "after")):
            raise Killed(point)

    for number in range(900):
        is_cruel = number < 300 and number % 2 == 0
        for port in (w.compute, w.ledger):
            port.faults = kill if is_cruel else no_faults
        try:
            w.step(1.0)
        except Killed:
            w.bus.look("the queue delivers the look again")


@pytest.mark.parametrize("every", [3, 7, 11])
def test_a_planner_that_keeps_dying_still_gets_there_and_buys_nothing_twice(every: int) -> None:
    """Each n-th call of any port kills the planner, all along."""
    w = world()
    w.slurm.submit(gang())
    w.slurm.submit(one_gpu())

    run_dying(w, every)

    assert set(states(w).values()) == {"COMPLETED"}
    assert len(w.compute.everything) == 4
    assert w.compute.live() == ()


def test_what_a_suspended_job_does_not_do_is_neither_saved_nor_lost() -> None:
    w = world()
    job_id = w.slurm.submit(one_gpu(duration_s=300.0))
    run(w, BOOT_S + 30)
    job = w.slurm.jobs[job_id]
    job.save(w.clock.now_s())
    saved_s, now_s = job.saved_s, w.clock.now_s()
    assert saved_s > 0

    w.slurm.suspend(job_id)
    run(w, 100)
    w.slurm.resume(job_id)

    assert job.saved_s == saved_s  # it dies right then, and goes on from what it saved
    assert job.ends_at_s == now_s + 300.0 - saved_s + 100.0
