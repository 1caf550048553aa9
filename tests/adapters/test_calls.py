"""How many calls of AWS a look makes, and how long it takes when each of them is slow."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from bench.calls import (
    ASKED_WITHIN_S,
    CALLS_MAX,
    CASES,
    LIVES_S,
    NODES,
    Slow,
    afterwards,
    cluster,
    gangs,
    singles,
    unlike_gangs,
)
from local.cloud import LocalCloud
from local.cloud_resources import CloudNames, create_launch_template
from tests.make import digest
from tidegate.adapters.bus import AwsBus
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.adapters.ec2 import FILTER_CHUNK, Ec2Compute
from tidegate.core.model.ec2 import Template
from tidegate.core.model.slurm import Job
from tidegate.service.control import Control
from tidegate.service.requests import Placement
from tidegate.sim.clock import SimClock

AS_ONE = {
    "view": ("dynamodb:GetItem", "dynamodb:Query"),
    "newest_digest": ("s3:GetObject",),
    "instances": ("ec2:DescribeInstances",),
    "create_fleet": ("ec2:CreateFleet",),
}


@pytest.mark.parametrize("name", CASES)
def test_a_look_is_over_before_its_planner_dies(name: str) -> None:
    slow, jobs = Slow(), CASES[name]()

    slow.look(jobs)

    assert len(slow.compute.live()) == sum(each.nodes for each in jobs)
    assert slow.calls.total() <= CALLS_MAX
    assert slow.asked_s <= ASKED_WITHIN_S
    assert slow.took_s <= LIVES_S


def test_a_thousand_nodes_come_and_go_within_a_planner_s_life() -> None:
    ids: Counter[str] = Counter()
    for name, slow in afterwards():
        ids += Counter({each: slow.calls[each] for each in ("terminate", "by_id")})
        written = {"advance_nodes", "set_orders", "charge"}
        assert written & slow.calls.keys(), name
        assert slow.calls.total() <= CALLS_MAX, f"{name}: {slow.calls}"
        assert slow.took_s <= LIVES_S
    assert ids == {"terminate": NODES // FILTER_CHUNK, "by_id": NODES // FILTER_CHUNK}


def test_where_ec2_has_nothing_a_look_is_over_in_time_all_the_same() -> None:
    slow = Slow()
    for _, offering in slow.of.pools[0].offerings():
        slow.compute.shortages[offering] = 0

    slow.look(unlike_gangs())

    assert slow.took_s <= LIVES_S
    assert slow.calls.total() <= CALLS_MAX


def test_a_queue_of_many_plans_ends_each_look_in_time() -> None:
    """A hundred unlike gangs: more than one look can ask for."""
    slow = Slow()
    jobs = [
        replace(each, job_id=f"{n}{each.job_id}", shape=replace(each.shape, memory_mib=1000 + n))
        for n in range(1, 6)
        for each in unlike_gangs()
    ]
    wanted = sum(each.nodes for each in jobs)

    for _ in range(8):
        slow.look(jobs)
        assert slow.took_s <= LIVES_S

    assert len(slow.compute.live()) == wanted


@pytest.mark.parametrize("jobs", [gangs(5), singles(40)], ids=["gangs", "singles"])
def test_the_calls_that_are_counted_are_those_that_reach_the_cloud(
    cloud: LocalCloud, names: CloudNames, jobs: Sequence[Job]
) -> None:
    slow = Slow()
    slow.look(jobs)
    control = _control(cloud, names)
    control.bus.put_digest(replace(digest(jobs), cluster=names.cluster))
    control.ledger.view()  # draws the lineage of a new table
    before = cloud.aws_calls()

    looked = control.look()

    made = cloud.aws_calls() - before
    assert sum(len(each.outcome.launched) for each in looked.rounds) == 40
    assert made.total() == slow.calls.total(), f"{made} is not {slow.calls}"
    assert _grouped(made) == {name: slow.calls[name] for name in AS_ONE}


def _grouped(made: Counter[str]) -> dict[str, int]:
    return {name: sum(made[each] for each in words) for name, words in AS_ONE.items()}


def _control(cloud: LocalCloud, names: CloudNames) -> Control:
    clock = SimClock()
    template = create_launch_template(cloud, f"{names.cluster}-calls", "#!/bin/sh\n")
    bus = AwsBus(
        cloud.client("s3"),
        cloud.client("events"),
        cloud.client("sqs"),
        cluster=names.cluster,
        bucket=names.bucket,
        event_bus=names.event_bus,
        urgent_queue_url=names.urgent_queue_url,
        routine_queue_url=names.routine_queue_url,
        look_queue_url=names.look_queue_url,
    )
    return Control(
        cluster=replace(cluster(), name=names.cluster),
        compute=Ec2Compute(cloud.client("ec2"), names.cluster, clock),
        ledger=DynamoLedger(cloud.client("dynamodb"), names.table, clock),
        bus=bus,
        clock=clock,
        placement=Placement({"a10g": Template(template, "1")}, names.subnets),
    )
