"""Queues of jobs that differ in more than their size."""

from dataclasses import replace
from typing import Any

import pytest

from tests.core.reading import launches, why
from tests.make import T4, T4_BIG, cluster, job, pool, snapshot
from tidegate.core.model.cluster import Limits
from tidegate.core.model.ec2 import InstanceType, Market
from tidegate.core.planner import plan

HOUR_S = 3600.0


def test_an_alternative_holds_every_job_of_its_launch() -> None:
    small = InstanceType("g4dm.xlarge", 4, 8192, 1, "t4")
    of = replace(pool(types=(T4,), markets=(Market.SPOT,)), instance_types=(T4, small))
    prices = {each: 0.2 if each.instance_type == T4.name else 0.21 for _, each in of.offerings()}
    both = replace(cluster(pool(types=(T4,))), pools=(of,), prices=prices)
    light, heavy = job(1, memory_mib=1_000), job(2, memory_mib=12_000)
    choosy = job(3, memory_mib=1_000, constraint=T4.name)

    alone = plan(snapshot([light], of=both))

    assert [o.instance_type for o in launches(alone)[0].offerings] == [T4.name, small.name]
    for other in (heavy, choosy):
        (launch,) = launches(plan(snapshot([light, other], of=both)))
        assert launch.for_jobs == ("1", other.job_id)
        assert [o.instance_type for o in launch.offerings] == [T4.name]


@pytest.mark.parametrize("asks", [{"cpus": 20}, {"memory_mib": 80_000}])
def test_an_alternative_holds_all_jobs_of_the_fullest_node(asks: dict[str, Any]) -> None:
    half = InstanceType("g4zz.12xlarge", 24, 98_304, 4, "t4")
    of = replace(pool(types=(T4,), markets=(Market.SPOT,)), instance_types=(T4_BIG, half))
    prices = {each: 1.0 + 0.1 * n for n, (_, each) in enumerate(of.offerings())}
    both = replace(cluster(pool(types=(T4,))), pools=(of,), prices=prices)
    lone = job(1, gpus=4)

    (of_lone,) = launches(plan(snapshot([lone], of=both)))
    (launch,) = launches(plan(snapshot([lone, *(job(n, gpus=2, **asks) for n in (2, 3))], of=both)))

    assert [o.instance_type for o in of_lone.offerings] == [T4_BIG.name, half.name]
    assert (launch.count, len(launch.for_jobs)) == (2, 3)
    assert [o.instance_type for o in launch.offerings] == [T4_BIG.name]


def test_a_gang_that_comes_first_is_not_outbid_by_smaller_jobs() -> None:
    of = cluster(pool(types=(T4,), limits=Limits(nodes=3)))
    jobs = [job(1), job(2), job(9, nodes=3, priority=5)]

    made = plan(snapshot(jobs, of=of))

    assert [(x.count, x.for_jobs) for x in launches(made)] == [(3, ("9",))]
    assert "limited to 3 nodes" in why(made, "1")


def test_a_job_before_a_gang_is_not_outbid_by_it() -> None:
    of = cluster(pool(types=(T4,), limits=Limits(nodes=3)))
    jobs = [job(1, priority=9), job(9, nodes=3, priority=5)]

    made = plan(snapshot(jobs, of=of))

    assert [(x.count, x.for_jobs) for x in launches(made)] == [(1, ("1",))]
    assert "limited to 3 nodes" in why(made, "9")


def test_a_job_that_must_not_be_interrupted_does_not_fill_up_a_spot_node() -> None:
    of = cluster(pool(types=(T4_BIG,)))
    patient = job(1, gpus=3, time_limit_s=HOUR_S * 24, comment="tidegate:ckpt=USR1@60")
    precious = job(2, gpus=1, time_limit_s=HOUR_S * 4, is_requeueable=False)

    made = plan(snapshot([patient, precious], of=of))

    assert {x.for_jobs: x.offerings[0].market for x in launches(made)} == {
        ("1",): Market.SPOT,
        ("2",): Market.ON_DEMAND,
    }


def test_jobs_that_differ_in_what_they_lose_are_not_treated_alike() -> None:
    saving = "tidegate:ckpt=USR1@60"
    jobs = [job(1, time_limit_s=HOUR_S * 8, comment=saving), job(2, time_limit_s=HOUR_S * 8)]

    made = plan(snapshot(jobs, of=cluster(pool(types=(T4,)))))

    assert {x.for_jobs: x.offerings[0].market for x in launches(made)} == {
        ("1",): Market.SPOT,
        ("2",): Market.ON_DEMAND,
    }
