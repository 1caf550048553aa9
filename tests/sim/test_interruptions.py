"""News of nodes that come twice, in the wrong order, too early or for the wrong node."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.make import A10G, T4, T4_BIG, cluster, pool
from tests.sim.test_world import gang, one_gpu, run, world
from tidegate.core.interruption.policy import REBALANCE_HOLDS_S
from tidegate.core.model.cluster import Rebalance
from tidegate.core.model.ec2 import Market
from tidegate.core.model.events import (
    HealthCategory,
    HealthNotice,
    RebalanceRecommendation,
    SpotInterruption,
)
from tidegate.sim.slurm_parts import SimJob
from tidegate.sim.world import SimWorld

LONG_S = 2_000.0
CKPT = "tidegate:ckpt=USR1@20"


def running(of: SimWorld, **more: object) -> SimJob:
    """A job on a node of its own, 10 s after it began."""
    job_id = of.slurm.submit(one_gpu(duration_s=LONG_S, comment=CKPT, **more))
    run(of, 75)
    assert of.slurm.jobs[job_id].state == "RUNNING"
    return of.slurm.jobs[job_id]


def bought(of: SimWorld) -> int:
    return len(of.compute.everything)


def is_done(of: SimWorld, job: SimJob, num_bought: int) -> bool:
    """The job ran to its end on so many nodes, and nothing is left."""
    run(of, 3 * LONG_S, 5.0)
    left = (of.compute.live(), of.slurm.nodes)
    return (job.state, bought(of), *left) == ("COMPLETED", num_bought, (), {})


def test_an_instance_that_ends_before_its_warning_is_replaced_once() -> None:
    w = world()
    job = running(w)
    (name,) = job.node_names
    w.compute.end(name)
    w.tell_of_change(name)
    run(w, 5)
    gone_at_once = name not in w.slurm.nodes

    w.announce(SpotInterruption(name, w.clock.now_s()))

    assert gone_at_once
    assert is_done(w, job, 2)
    assert (job.requeues, job.signals) == (1, [])


def test_a_warning_that_comes_twice_saves_a_job_once() -> None:
    w = world()
    job = running(w)
    (name,) = job.node_names
    w.notice(name)
    run(w, 3)
    w.announce(SpotInterruption(name, w.clock.now_s() - 3))
    run(w, 10)
    w.announce(SpotInterruption(name, w.clock.now_s()))

    assert is_done(w, job, 2)
    assert (job.requeues, job.signals) == (1, ["USR1"])


def test_a_warning_for_a_node_that_was_replaced_already_does_nothing() -> None:
    w = world()
    job = running(w)
    (name,) = job.node_names
    w.notice(name)
    run(w, 300)
    orders = len(w.bus.orders)
    w.announce(SpotInterruption(name, w.clock.now_s()))
    run(w, 2)

    assert job.state == "RUNNING"
    assert not [o for o in w.bus.orders[orders:] if name in (*o.names, *o.on_nodes)]
    assert is_done(w, job, 2)
    assert job.requeues == 1


def test_a_warning_for_a_node_that_boots_buys_another_and_no_job_starts_on_the_first() -> None:
    w = world(boot_s=60.0)
    job_id = w.slurm.submit(one_gpu(duration_s=LONG_S))
    run(w, 20)
    (first,) = w.compute.everything
    w.notice(first)

    run(w, 90)

    job = w.slurm.jobs[job_id]
    assert job.state == "RUNNING"
    assert job.node_names != (first,)
    assert is_done(w, job, 2)
    assert job.starts == 1


@pytest.mark.parametrize("moment", ["drain", "delete"])
def test_a_warning_for_a_node_that_goes_for_idleness_buys_nothing(moment: str) -> None:
    w = world()
    w.slurm.submit(one_gpu(duration_s=10.0))
    warned: list[str] = []

    def warn(command: str, names: Sequence[str]) -> None:
        if command == moment and not warned:
            warned.extend(names)
            w.notice(names[0])

    w.slurm.on_command.append(warn)
    run(w, 600)

    assert warned
    assert bought(w) == 1
    assert w.compute.live() == ()
    assert w.slurm.nodes == {}


def test_a_job_that_may_not_be_requeued_runs_to_its_end() -> None:
    w = world()
    job = running(w, is_requeueable=False)
    (name,) = job.node_names
    w.announce(SpotInterruption(name, w.clock.now_s()))  # and EC2 never does it

    assert is_done(w, job, 1)
    assert (job.requeues, job.signals) == (0, ["USR1"])


def test_a_gang_that_loses_one_node_keeps_the_others() -> None:
    w = world()
    job = w.slurm.jobs[w.slurm.submit(gang(duration_s=LONG_S))]
    run(w, 100)
    lost, *kept = job.node_names
    w.notice(lost)

    run(w, 400)

    assert job.state == "RUNNING"
    assert set(kept) < set(job.node_names)
    assert is_done(w, job, 4)
    assert job.requeues == 1


def test_a_gang_that_spot_suits_no_more_once_it_was_requeued_moves() -> None:
    w = world()
    long = replace(gang(duration_s=LONG_S), time_limit_s=5_400.0)
    job = w.slurm.jobs[w.slurm.submit(long)]
    run(w, 100)
    first = set(job.node_names)
    w.notice(job.node_names[0])

    run(w, 400)

    assert job.state == "RUNNING"
    assert first.isdisjoint(job.node_names)
    assert is_done(w, job, 6)


def test_a_gang_that_loses_two_nodes_one_after_the_other_is_signalled_once() -> None:
    w = world()
    job = w.slurm.jobs[w.slurm.submit(gang(duration_s=LONG_S))]
    run(w, 100)
    first, second, _ = job.node_names
    w.notice(first)
    run(w, 5)
    w.notice(second)

    run(w, 500)

    assert job.state == "RUNNING"
    assert (job.requeues, bought(w)) == (1, 5)


def test_the_job_of_an_instance_that_ends_unannounced_runs_again_at_once() -> None:
    w = world()
    job = running(w)
    (name,) = job.node_names
    w.compute.end(name)
    w.tell_of_change(name)

    run(w, 80)

    assert job.state == "RUNNING"
    assert job.node_names != (name,)


def rebalancing(policy: Rebalance) -> SimWorld:

    t4 = replace(pool(types=(T4, T4_BIG)), rebalance=policy)
    return SimWorld(cluster(t4, pool("a10g", (A10G,))), lambda instance: 60.0)


def test_a_rebalance_recommendation_does_what_the_pool_says() -> None:
    ends: dict[Rebalance, tuple[int, int]] = {}
    for policy in Rebalance:
        w = rebalancing(policy)
        job = running(w)
        w.announce(RebalanceRecommendation(job.node_names[0]))
        run(w, 5)
        is_drained = w.slurm.nodes[job.node_names[0]].is_drain
        assert is_drained is (policy is not Rebalance.IGNORE)
        run(w, 3 * LONG_S, 5.0)
        assert job.state == "COMPLETED"
        ends[policy] = (bought(w), job.requeues)

    assert ends == {Rebalance.IGNORE: (1, 0), Rebalance.CORDON: (1, 0), Rebalance.DRAIN: (2, 1)}


def test_a_node_that_outlives_a_recommendation_takes_jobs_again() -> None:
    w = rebalancing(Rebalance.CORDON)
    job_id = w.slurm.submit(one_gpu(duration_s=3 * REBALANCE_HOLDS_S, comment=CKPT))
    run(w, 75)
    (name,) = w.slurm.jobs[job_id].node_names
    w.announce(RebalanceRecommendation(name))
    run(w, REBALANCE_HOLDS_S - 60, 10.0)
    is_drained_before = w.slurm.nodes[name].is_drain

    run(w, 120, 5.0)

    assert is_drained_before
    assert not w.slurm.nodes[name].is_drain
    assert (w.slurm.jobs[job_id].state, bought(w)) == ("RUNNING", 1)


def test_jobs_leave_a_node_ten_minutes_before_its_maintenance() -> None:
    w = world()
    job = running(w)
    (name,) = job.node_names
    starts_at_s = w.clock.now_s() + 1_000
    code = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
    w.announce(HealthNotice((name,), HealthCategory.SCHEDULED_CHANGE, code, starts_at_s))
    run(w, 390)
    before = (job.requeues, w.slurm.nodes[name].is_drain)

    run(w, 100)

    assert before == (0, True)
    assert (job.requeues, job.signals) == (1, ["USR1"])
    assert is_done(w, job, 2)


def test_a_notice_while_the_head_is_silent_buys_one_node_and_the_job_goes_on_there() -> None:
    w = world()
    job = running(w)
    (name,) = job.node_names
    w.slurm.is_up = False
    run(w, 400, 5.0)
    w.notice(name)
    for _ in range(4):
        run(w, 300, 5.0)
        w.keep_hours("reconcile")
    bought_in_silence = bought(w)

    w.slurm.is_up = True

    assert bought_in_silence == 2
    assert is_done(w, job, 2)


def test_the_ledger_remembers_how_long_spot_nodes_ran_and_which_were_taken_once() -> None:
    w = world()
    job = running(w)
    (name,) = job.node_names
    notice = SpotInterruption(name, w.clock.now_s())
    w.announce(notice)
    w.announce(notice)
    run(w, 120)
    w.compute.end(name)

    assert is_done(w, job, 2)

    seen = [each for known in w.ledger.all_pool_history.values() for each in known.spot]
    lived_s = [
        (each.ended_at_s or 0.0) - each.launched_at_s
        for each in w.ledger.all_nodes.values()
        if each.offering.market is Market.SPOT
    ]
    assert sum(each.taken for each in seen) == pytest.approx(1.0, abs=0.01)
    assert sum(each.node_hours for each in seen) == pytest.approx(sum(lived_s) / 3600, rel=0.05)
