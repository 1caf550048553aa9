"""Nodes that EC2 reclaims, and what one incomplete answer of EC2 must not do to them."""

from dataclasses import replace

from tests.core.reading import launches, orders
from tests.make import NOW_S, T4, cluster, job, node, offering, placement, pool, record, snapshot
from tidegate.core.actions import LaunchRecord, NodeRecord, OrderKind, Phase
from tidegate.core.ec2 import InstanceType
from tidegate.core.planner import plan
from tidegate.core.pool import Limits
from tidegate.service.requests import fleet_request

BUSY = node(state="MIXED+DRAIN+DYNAMIC_NORM", gpus_alloc=1)


def warned(reclaim_in_s: float) -> NodeRecord:
    return replace(record(phase=Phase.INTERRUPTED), reclaim_at_s=NOW_S + reclaim_in_s)


def test_a_notice_is_not_cut_short_by_one_describe_that_leaves_the_node_out() -> None:
    made = plan(snapshot([job(7, on=["i-1"])], [BUSY], records=[warned(100)]))

    assert [order.delay_s for order in orders(made, OrderKind.REQUEUE)] == [75]


def test_after_its_notice_a_node_that_ec2_does_not_show_is_given_up() -> None:
    made = plan(snapshot([job(7, on=["i-1"])], [BUSY], records=[warned(-1)]))

    assert [order.delay_s for order in orders(made, OrderKind.REQUEUE)] == [0]


def test_a_launch_in_doubt_counts_as_its_largest_alternative() -> None:
    larger = InstanceType("g4dn.12xlarge", vcpus=48, memory_mib=196608, gpus=4, gpu_type="t4")
    both = cluster(pool(types=(T4, larger), limits=Limits(gpus=4)))
    first = launches(plan(snapshot([job(1)], of=both)))[0]
    wide = replace(first, offerings=(offering(T4), offering(larger)))
    in_doubt = LaunchRecord(wide, NOW_S - 1, fleet_request(wide, "test", placement(both)))

    made = plan(snapshot([job(1), job(2, is_exclusive=True)], of=both, launches=[in_doubt]))

    assert launches(made) == []
