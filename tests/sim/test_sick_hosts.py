"""GPUs that fail below a job as it starts, and a host that comes back under another id."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from bench.resume import BOOT_S, NODE, XID
from bench.small import T4_BIG, cluster
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Instance, Market
from tidegate.core.model.finding import BELIEVED_MIN_OF_OTHERS
from tidegate.core.model.slurm import SetBy
from tidegate.sim.draw import ZONES
from tidegate.sim.slurm_parts import SimJob, Submit
from tidegate.sim.world import SimWorld

NODES = 8


def two_zones() -> Cluster:
    of = cluster(T4_BIG, markets=(Market.ON_DEMAND,))
    pool = replace(of.pools[0], zones=ZONES[:2])
    (usd,) = of.prices.values()
    dearer = {each: usd + 0.01 * (each.zone != ZONES[0]) for _, each in pool.offerings()}
    return replace(of, pools=(pool,), prices=dearer)


def gets_xids(world: SimWorld, names: Sequence[str], *, apart_s: float) -> None:
    """One after the other, each three times in three seconds: the first one drains its node."""
    for number, name in enumerate(names):
        drains = partial(world.slurm.is_drained_by, SetBy.ROOT, name, XID)
        for again in range(3):
            world.at(world.clock.now_s() + 1 + number * apart_s + again, drains)


@pytest.mark.parametrize("apart_s", [0.0, 1.0, 7.0])
@pytest.mark.parametrize("bad", [1, 5])
def test_a_storm_of_xids_as_a_gang_starts_costs_each_bad_node_once_and_no_good_one(
    bad: int, apart_s: float
) -> None:
    w = SimWorld(cluster(T4_BIG, markets=(Market.ON_DEMAND,)), lambda _: BOOT_S)
    job = w.slurm.jobs[w.slurm.submit(Submit("ada", NODE, 20_000.0, nodes=NODES))]
    started: list[tuple[str, ...]] = []

    def starts(one: SimJob) -> None:
        started.append(one.node_names)
        if len(started) == 1:
            gets_xids(w, one.node_names[-bad:], apart_s=apart_s)

    w.slurm.table.on_start.append(starts)
    w.step(BOOT_S + 30)
    w.step(bad * apart_s + 2 * BOOT_S + 60)

    first, again = set(started[0]), set(started[-1])
    sick = set(started[0][-bad:])
    assert job.state == "RUNNING"
    assert again.isdisjoint(sick)
    assert first - sick <= again
    assert len(w.compute.everything) == NODES + bad
    assert len(w.compute.live()) == NODES
    assert job.requeues <= 2  # once, and again for those that fell ill after it


def test_a_storm_beyond_what_a_kernel_is_believed_of_holds_the_rest_back_and_says_so() -> None:
    """Seven of eight: it may be the driver, or the job. Five go; the rest waits for a person."""
    w = SimWorld(cluster(T4_BIG, markets=(Market.ON_DEMAND,)), lambda _: BOOT_S)
    job = w.slurm.jobs[w.slurm.submit(Submit("ada", NODE, 20_000.0, nodes=NODES))]
    w.slurm.table.on_start.append(lambda one: gets_xids(w, one.node_names[-7:], apart_s=0.0))
    w.step(6 * BOOT_S)

    ((_, history),) = w.ledger.all_pool_history.items()
    assert job.state == "PENDING"
    assert [each.check for each in history.stopped_checks] == ["tidegate-health: xid"]
    assert len(history.findings) == BELIEVED_MIN_OF_OTHERS
    assert len(w.compute.everything) == NODES


def test_a_sick_host_that_comes_back_under_another_id_is_found_and_left_for_another_zone() -> None:
    """In the zone that is cheapest each launch gets the same free host."""
    w = SimWorld(two_zones(), lambda _: BOOT_S)
    on_it: list[str] = []

    def launched(instance: Instance) -> None:
        if instance.offering.zone == ZONES[0]:
            on_it.append(instance.instance_id)

    def starts(job: SimJob) -> None:
        names = [name for name in job.node_names if name in on_it]
        gets_xids(w, names, apart_s=0.0)
        if names:
            w.at(w.clock.now_s() + 20, lambda: w.slurm.table.end(job, "FAILED"))

    w.compute.on_launch.append(launched)
    w.slurm.table.on_start.append(starts)
    ends = []
    for _ in range(4):
        job = w.slurm.jobs[w.slurm.submit(Submit("ada", NODE, 300.0))]
        w.step(BOOT_S + 600)
        ends.append(job.state)

    assert ends == ["FAILED", "FAILED", "COMPLETED", "COMPLETED"]
    assert len(on_it) == len(set(on_it)) == 2
    assert not w.compute.live()


def test_a_sick_host_in_a_gang_s_zone_does_not_hold_the_gang_for_good() -> None:
    w = SimWorld(two_zones(), lambda _: BOOT_S)
    on_it: list[str] = []

    def launched(instance: Instance) -> None:
        live = [name for name in on_it if w.compute.is_live(name)]
        if instance.offering.zone == ZONES[0] and not live:
            on_it.append(instance.instance_id)

    def starts(job: SimJob) -> None:
        gets_xids(w, [name for name in job.node_names if name in on_it], apart_s=0.0)

    w.compute.on_launch.append(launched)
    w.slurm.table.on_start.append(starts)
    job = w.slurm.jobs[w.slurm.submit(Submit("ada", NODE, 20_000.0, nodes=3))]
    w.step(3600)

    assert job.state == "RUNNING"
    assert set(job.node_names).isdisjoint(on_it)
