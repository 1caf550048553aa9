"""What is told of prices to who submits: the lowest of each type, and no type that nobody buys."""

from dataclasses import replace

from tests.make import T4, T4_BIG, ZONE, cluster, pool
from tidegate.core.model.cluster import Cluster, Partition
from tidegate.core.model.ec2 import InstanceType, Market, Offering
from tidegate.core.offers.price_list import price_list

CPU = InstanceType("c7i.large", 2, 4096, 0, "")


def sold(usd: dict[InstanceType, float]) -> Cluster:
    """A pool of these types, spot at this price, and on demand at three times of it."""
    of = cluster(pool("all", (T4,)))
    own = replace(of.pools[0], instance_types=tuple(usd))
    prices = {
        offering: usd[kind] * (3.0 if offering.market is Market.ON_DEMAND else 1.0)
        for kind, offering in own.offerings()
    }
    return replace(of, pools=(own,), prices=prices)


def names(of: Cluster, partition: str = "gpu") -> list[str]:
    return [each.instance_type for each in price_list(of) if each.partition == partition]


def test_of_zones_and_markets_the_lowest_price_counts() -> None:
    (found,) = price_list(sold({T4: 0.2}))

    assert (found.partition, found.instance_type, found.usd_per_hour) == ("gpu", T4.name, 0.2)
    assert (found.gpus, found.gpu_type, found.cpus) == (T4.gpus, "t4", T4.vcpus)
    assert found.memory_mib == T4.slurm_memory_mib


def test_a_type_that_is_dearer_and_no_larger_is_left_out() -> None:
    worse = replace(T4, name="g4dn.older", vcpus=2)
    larger = replace(T4, name="g4dn.larger", vcpus=64)

    assert names(sold({T4: 0.2, worse: 0.3, larger: 0.3})) == [T4.name, "g4dn.larger"]
    assert names(sold({T4: 0.3, worse: 0.2})) == ["g4dn.older", T4.name]


def test_another_gpu_is_another_thing_and_a_node_without_may_be_one_with() -> None:
    other = replace(T4, name="g5.xlarge", gpu_type="a10g")

    assert names(sold({T4: 0.2, other: 0.5, CPU: 0.3})) == [T4.name, other.name]
    assert names(sold({T4: 0.2, other: 0.5, CPU: 0.1})) == [CPU.name, T4.name, other.name]


def test_a_partition_has_the_types_of_its_pools_and_what_is_prepaid_costs_nobody() -> None:
    of = cluster(pool("t4", (T4,)), pool("big", (T4_BIG,)))
    prepaid = Offering(T4_BIG.name, ZONE, Market.CAPACITY_BLOCK)
    pools = (of.pools[0], replace(of.pools[1], markets=(Market.CAPACITY_BLOCK,)))
    partitions = (Partition("small", ("t4",)), Partition("all", ("t4", "big")))
    made = replace(of, pools=pools, partitions=partitions, prices={**of.prices, prepaid: 0.0})

    assert names(made, "small") == names(made, "all") == [T4.name]
    assert names(of, "small") == []
