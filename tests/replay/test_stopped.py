"""Stopped nodes in a replay: sooner starts, and disks that cost."""

from dataclasses import replace

import pytest

from tests.make import T4, cluster, pool
from tidegate.core.model.cluster import START_S, Cluster
from tidegate.core.model.ec2 import Market
from tidegate.core.model.waiting import Waiting
from tidegate.sim.replay.run import replay
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
