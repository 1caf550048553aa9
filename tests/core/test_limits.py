"""Limits of a pool and of the cluster: all questions about one limit get the same answer."""

from dataclasses import replace

import pytest

from tests.make import cluster, pool
from tidegate.core.model.cluster import Limits
from tidegate.core.offers.limits import Load, Usage

NODE = Load(gpus=2, vcpus=8, memory_mib=1000, usd_per_hour=0.3)
# Of each the limit that three such nodes reach; 3 x 0.3 is less than 0.9 in binary fractions.
OF_THREE = [
    Limits(nodes=3),
    Limits(gpus=6),
    Limits(vcpus=24),
    Limits(memory_mib=3000),
    Limits(usd_per_hour=0.9),
]


def usage(limits: Limits, *, is_of_pool: bool, nodes: int = 0) -> Usage:
    of = cluster(pool(limits=limits)) if is_of_pool else cluster(pool(), limits=limits)
    found = Usage(of)
    found.debit("t4", nodes, NODE)
    return found


@pytest.mark.parametrize("is_of_pool", [True, False])
@pytest.mark.parametrize("limits", OF_THREE)
def test_a_limit_is_reached_by_as_many_nodes_whoever_asks(
    limits: Limits, *, is_of_pool: bool
) -> None:
    one, three, four = (usage(limits, is_of_pool=is_of_pool, nodes=n) for n in (1, 3, 4))

    assert one.most("t4", NODE)[0] == 3
    assert one.room("t4", 9, NODE)[0] == 2
    assert one.room("t4", 2, NODE) == (2, "")
    assert one.holds("t4", 2, Load().plus(NODE, 2))
    assert not one.holds("t4", 3, Load().plus(NODE, 3))
    assert (three.room("t4", 1, NODE)[0], three.is_exceeded("t4")) == (0, False)
    assert (four.room("t4", 1, NODE)[0], four.is_exceeded("t4")) == (0, True)


@pytest.mark.parametrize("limits", OF_THREE)
def test_the_limit_of_one_pool_does_not_bind_another(limits: Limits) -> None:
    of = Usage(cluster(pool(limits=limits), pool("other")))
    of.debit("t4", 4, NODE)

    assert of.room("other", 9, NODE) == (9, "")
    assert of.left("other") is None
    assert not of.is_exceeded("other")


@pytest.mark.parametrize(
    ("limits", "fits", "is_too_large"),
    [
        (Limits(gpus=7), replace(NODE, gpus=3), replace(NODE, gpus=4)),
        (Limits(vcpus=18), replace(NODE, vcpus=9), replace(NODE, vcpus=10)),
        (Limits(memory_mib=2002), replace(NODE, memory_mib=1001), replace(NODE, memory_mib=1002)),
        (Limits(usd_per_hour=0.7), replace(NODE, usd_per_hour=0.35), replace(NODE, usd_per_hour=1)),
        (Limits(nodes=2), NODE.plus(NODE, 9), None),
    ],
)
def test_nodes_count_as_a_larger_type_only_where_the_limit_holds_all_of_them(
    limits: Limits, fits: Load, is_too_large: Load | None
) -> None:
    two, as_bought = (usage(limits, is_of_pool=True, nodes=2) for _ in range(2))
    as_bought.debit("t4", -2, NODE)
    as_bought.debit("t4", 2, fits, NODE.usd_per_hour)

    assert two.widen("t4", 2, NODE, fits)
    assert is_too_large is None or not two.widen("t4", 2, fits, is_too_large)
    assert two.nodes("t4") == 2
    assert two.left("t4") == as_bought.left("t4")
    assert two.expected_usd_per_hour == pytest.approx(2 * NODE.usd_per_hour)
