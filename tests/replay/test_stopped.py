"""Stopped nodes in a replay: sooner starts, and disks that cost."""

from dataclasses import replace

import pytest

from tests.make import T4, cluster, pool
from tidegate.core.model.cluster import START_S, Cluster
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.waiting import Waiting
from tidegate.sim.replay.run import replay
from tidegate.sim.replay.steps import Steps
from tidegate.sim.replay.trace import Trace, TraceJob
from tidegate.sim.replay.world import Setting

HOUR_S = 3600.0


def keeping(stopped_nodes: int) -> Cluster:
    of = pool(types=(T4,), markets=(Market.ON_DEMAND,))
    kept = replace(of, stopped_nodes=stopped_nodes, stopped_usd_per_hour=0.01)
    return replace(cluster(kept), waiting=Waiting(0.0))


def test_a_job_that_finds_a_stopped_node_waits_for_a_start_and_its_disk_is_paid_for() -> None:
    one_job = TraceJob("1", 0.0, 600.0, 1, 1, 1, "gpu", gpu_type="t4")
    later = [replace(one_job, job_id=str(n), submit_s=n * HOUR_S) for n in (1, 2)]
    jobs = (replace(one_job, job_id="0"), *later)

    none, one = (replay(Trace(jobs), keeping(n), Setting()).outcome for n in (0, 1))

    boot_s = 300.0
    assert none.waits.p50_s == pytest.approx(one.waits.max_s, abs=3.0)
    assert one.waits.p50_s == pytest.approx(none.waits.p50_s - boot_s + START_S, abs=3.0)
    disks = dict(one.by_pool)["t4 stopped"]
    assert disks == pytest.approx(0.01 * 2, rel=0.5)
    assert one.cost_usd < none.cost_usd + disks


def test_what_ec2_has_no_room_to_start_stands_and_is_started_later() -> None:
    on = Offering(T4.name, "us-east-1a", Market.ON_DEMAND)
    jobs = tuple(TraceJob(str(n), n * HOUR_S, 600.0, 1, 1, 1, "gpu", gpu_type="t4") for n in (0, 1))
    room = Steps(((0.0, 1.0), (0.5 * HOUR_S, 0.0), (1.5 * HOUR_S, 1.0)))
    setting = Setting(capacity={on: room})

    none, one = (replay(Trace(jobs), keeping(n), setting).outcome for n in (0, 1))

    assert one.waits.max_s > 0.5 * HOUR_S
    assert none.waits.max_s - one.waits.max_s == pytest.approx(300.0 - START_S, abs=3.0)


def test_each_start_is_billed_for_a_minute_at_least() -> None:
    brief = [TraceJob(str(n), n * HOUR_S, 2.0, 1, 1, 1, "gpu", gpu_type="t4") for n in range(3)]
    (of,) = keeping(1).pools
    quick = replace(keeping(1), pools=(replace(of, idle_s=1.0),))

    done = replay(Trace(tuple(brief)), quick, Setting(boot_s=5.0)).outcome

    assert done.gpu_hours_billed == pytest.approx(3 * 60.0 / HOUR_S)
