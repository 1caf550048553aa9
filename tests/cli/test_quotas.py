"""Quotas of vCPUs against what pools may grow to."""

import pytest

from tests.make import pool
from tidegate.cli.quotas import needed_vcpus, problems, quota_name
from tidegate.core.model.cluster import Limits
from tidegate.core.model.ec2 import InstanceType, Market

G_SPOT = "All G and VT Spot Instance Requests"
NAMES = (
    "All P4, P3 and P2 Spot Instance Requests",
    "All P5 Spot Instance Requests",
    G_SPOT,
    "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
    "All Trn Spot Instance Requests",
    "Running On-Demand G and VT instances",
    "Running On-Demand HPC instances",
    "Running On-Demand P instances",
    "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
    "Running Dedicated p5 Hosts",
)
SMALL = InstanceType("g5.xlarge", 4, 16384, 1, "a10g")
LARGE = InstanceType("g5.48xlarge", 192, 786432, 8, "a10g")


@pytest.mark.parametrize(
    ("instance_type", "market", "name"),
    [
        ("p5en.48xlarge", Market.SPOT, "All P5 Spot Instance Requests"),
        ("p4d.24xlarge", Market.SPOT, "All P4, P3 and P2 Spot Instance Requests"),
        ("p5.48xlarge", Market.ON_DEMAND, "Running On-Demand P instances"),
        ("gr6.4xlarge", Market.SPOT, G_SPOT),
        ("g5.xlarge", Market.ON_DEMAND, "Running On-Demand G and VT instances"),
        ("hpc7a.96xlarge", Market.ON_DEMAND, "Running On-Demand HPC instances"),
        (
            "m6i.large",
            Market.ON_DEMAND,
            "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
        ),
        ("trn1.2xlarge", Market.SPOT, "All Trn Spot Instance Requests"),
        ("p6-b200.48xlarge", Market.SPOT, ""),
    ],
)
def test_each_type_counts_against_the_quota_of_its_family(instance_type, market, name):
    assert quota_name(instance_type, market, NAMES) == name


@pytest.mark.parametrize(
    ("limits", "needed"),
    [
        (Limits(), None),
        (Limits(nodes=3), (12, "nodes")),
        (Limits(gpus=16), (64, "gpus")),
        (Limits(vcpus=40, nodes=100), (40, "vcpus")),
    ],
)
def test_the_tightest_limit_says_how_many_vcpus_are_needed(limits, needed):
    assert needed_vcpus(limits, [SMALL, LARGE]) == needed


def told(quota: float, limits: Limits = Limits()) -> list[str]:  # noqa: B008
    made = pool("a", types=(SMALL, LARGE), markets=(Market.SPOT,), limits=limits)
    return list(map(str, problems([made], {G_SPOT: quota})))


def test_a_quota_below_the_smallest_node_starts_nothing():
    (only,) = told(0)

    assert only.startswith("pools.a.capacity_types[0]: the quota `All G and VT Spot Instance")
    assert "is 0 vCPUs, g5.xlarge has 4: none of this kind could ever start" in only


def test_a_quota_below_the_limit_is_told_at_the_limit():
    (only,) = told(32, Limits(gpus=16))

    assert only.startswith("pools.a.limits.gpus: needs 64 vCPUs as spot, the quota `All G and VT")


@pytest.mark.parametrize(("quota", "limits"), [(4, Limits()), (64, Limits(gpus=16))])
def test_a_quota_that_is_enough_says_nothing(quota, limits):
    assert told(quota, limits) == []
