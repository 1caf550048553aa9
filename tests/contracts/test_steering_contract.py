"""What steering decides, carried out by the head's agent on a real slurmctld."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from tests.make import T4, T4_BIG, cluster, instance, offering, pool, record, snapshot
from tidegate.agent.orders import Worker
from tidegate.core.model.ec2 import InstanceType, Market
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.plan import Send
from tidegate.core.model.slurm import Node
from tidegate.core.passes.steer import CLOSED
from tidegate.core.planner import plan

FIRST, SECOND = "i-00000000000000001", "i-00000000000000002"
STEERS = {OrderKind.WEIGHT, OrderKind.DRAIN, OrderKind.UNDRAIN}


@pytest.fixture
def slurm() -> Iterator[RealSlurm]:
    with slurm_of_its_own() as made:
        made.join(FIRST, SECOND)
        yield made


def steer(slurm: RealSlurm, *types: InstanceType) -> list[Order]:
    """One look: the plan for what Slurm shows, its orders carried out."""
    reading = slurm.port.read()
    big = offering(T4_BIG, Market.ON_DEMAND)
    names = [node.name for node in reading.nodes]
    seen = snapshot(
        reading.jobs,
        reading.nodes,
        of=cluster(pool(types=types, markets=(Market.ON_DEMAND,), idle_s=3600.0)),
        instances=[instance(name, big) for name in names],
        records=[record(name, big) for name in names],
        age_s=0.0,
    )
    now_s = max(job.started_at_s or job.begins_at_s or 0.0 for job in reading.jobs) + 1.0
    digest = replace(seen.digest, written_at_s=now_s)  # type: ignore[type-var]
    made = plan(replace(seen, digest=digest))
    orders = [a.order for a in made.actions if isinstance(a, Send) and a.order.kind in STEERS]
    for order in orders:
        Worker(slurm.port).carry_out([order], order.not_after_s)
    return orders


def node(slurm: RealSlurm, name: str) -> Node:
    return next(one for one in slurm.port.read().nodes if one.name == name)


def where(slurm: RealSlurm, job_id: str) -> tuple[str, ...]:
    def runs_on() -> tuple[str, ...]:
        return next(one.node_names for one in slurm.port.read().jobs if one.job_id == job_id)

    return eventually(f"job {job_id} runs", runs_on)


def test_a_job_lands_on_the_node_that_will_live(slurm: RealSlurm) -> None:
    """By itself Slurm takes the first of its table, which is idle and could go."""
    where(slurm, slurm.submit("-w", SECOND, "--gres=gpu:1", "-t", "600"))
    assert steer(slurm, T4_BIG)
    assert node(slurm, SECOND).weight < node(slurm, FIRST).weight

    assert where(slurm, slurm.submit("--gres=gpu:1", "-t", "10")) == (SECOND,)

    slurm.port.weigh([FIRST, SECOND], 1)  # as after a restart of slurmctld
    steer(slurm, T4_BIG)
    assert node(slurm, SECOND).weight < node(slurm, FIRST).weight


def test_a_node_that_is_kept_gets_the_large_job_and_not_the_small_one(slurm: RealSlurm) -> None:
    slurm.run("scontrol", "update", f"nodename={FIRST}", "state=drain", "reason=not part of this")
    filling = slurm.submit("--gres=gpu:4", "-t", "60")
    assert where(slurm, filling) == (SECOND,)
    small = slurm.submit("--gres=gpu:1", "-t", "60")
    steer(slurm, T4, T4_BIG)
    assert node(slurm, SECOND).reason == str(CLOSED)
    assert slurm.state(filling) == "RUNNING"

    slurm.cancel(filling)
    eventually("the node is idle", lambda: "IDLE" in slurm.node_words(SECOND))
    slurm.port.poke([SECOND])
    slurm.pause(2)
    assert slurm.state(small) == "PENDING"

    slurm.cancel(small)
    large = slurm.submit("--gres=gpu:4", "-t", "60")

    def runs_on() -> tuple[str, ...]:
        """As looks and agent go on: each sees the node as it is by then."""
        steer(slurm, T4, T4_BIG)
        slurm.port.poke([SECOND])
        return next(one.node_names for one in slurm.port.read().jobs if one.job_id == large)

    assert eventually("the large job runs", runs_on) == (SECOND,)
