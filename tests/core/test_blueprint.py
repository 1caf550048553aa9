"""What the blueprint chooses from: types for each mix of jobs, and jobs for the rest of a node."""

from dataclasses import replace
from math import ceil

import pytest

from tests.core.reading import launches
from tests.make import T4, ZONE, cluster, job, offering, pool, snapshot
from tidegate.core.buy.fillers import BestFit, Item
from tidegate.core.buy.groups import Group
from tidegate.core.demand.demand import Need
from tidegate.core.model.ec2 import InstanceType, Market, Offering
from tidegate.core.model.plan import Plan
from tidegate.core.model.slurm import Shape
from tidegate.core.offers.catalogue import Catalogue, entry
from tidegate.core.planner import plan


def counts(made: Plan) -> dict[str, int]:
    return {x.offerings[0].instance_type: x.count for x in launches(made)}


def sold(*types: tuple[str, int, int, int, float]) -> Catalogue:
    """Types by name, CPUs, GiB that Slurm sees, T4s and price."""
    entries = []
    for name, cpus, gib, gpus, usd in types:
        kind = InstanceType(name, cpus, ceil(gib * 1024 / 0.95), gpus, "t4" if gpus else "")
        entries.append(entry(kind, [(usd, Offering(name, ZONE, Market.SPOT))]))
    return Catalogue(tuple(sorted(entries, key=lambda each: each.usd_per_hour)))


def named(of: Catalogue, numbers: list[int]) -> list[str]:
    return [of.entries[number].instance_type.name for number in numbers]


def test_for_every_mix_of_cpus_and_memory_the_type_that_gives_most_is_known() -> None:
    """Of m the window is narrow: c and r together are hardly dearer."""
    of = sold(
        ("c", 10, 20, 0, 1.0), ("m", 10, 40, 0, 1.19), ("r", 10, 80, 0, 1.6), ("x", 10, 30, 0, 1.15)
    )

    assert named(of, of.efficient(of.all)) == ["c", "m", "r"]
    assert of.mix(6.0 * 1024) == pytest.approx((0.078, 0.041 / 4096), rel=1e-3)
    assert of.mix(1.0 * 1024) == pytest.approx((0.1, 0.0))
    assert of.mix(9.0 * 1024) == pytest.approx((0.0, 0.16 / 8192), rel=1e-3)


def test_jobs_without_gpus_pay_for_the_room_beside_a_gpu() -> None:
    """4 CPUs more cost 0.06 on the larger one, and 0.2 on nodes of their own."""
    small = InstanceType("g4dn.xlarge", 4, 16384, 1, "t4")
    large = InstanceType("g4dn.2xlarge", 8, 32768, 1, "t4")
    plain = InstanceType("m5.xlarge", 4, 16384, 0, "")
    of = cluster(pool(types=(T4,), markets=(Market.SPOT,)))
    of = replace(
        of,
        pools=(replace(of.pools[0], instance_types=(small, large, plain)),),
        prices={offering(small): 0.2, offering(large): 0.26, offering(plain): 0.2},
    )
    gpus = [job(n, cpus=4, memory_mib=12_000) for n in range(3)]
    others = [job(10 + n, gpus=0, gpu_type="", memory_mib=2_000) for n in range(12)]

    assert counts(plan(snapshot([*gpus, *others], of=of))) == {"g4dn.2xlarge": 3}
    assert counts(plan(snapshot(gpus, of=of))) == {"g4dn.xlarge": 3}


def test_what_fills_a_node_takes_its_share_of_the_memory_first() -> None:
    """The largest would leave the others no memory, and CPUs that nobody can use."""
    sizes = [(0, 2, 9_000), (0, 2, 7_000), (0, 1, 6_000), (0, 1, 500)]
    need = Need("1", 1, 1, Shape(), "", ("t4",))
    items = [Item(Group(need, size, n), 1, [], (), 0.0, 0.0) for n, size in enumerate(sizes)]
    room = [0, 4, 15_000]
    taken: list[int] = []

    for item in BestFit(items).fitting(room):
        taken.append(item.group.size[2])
        for d in range(3):
            room[d] -= item.group.size[d]

    assert (taken, room) == ([7_000, 500, 6_000], [0, 0, 1_500])


def test_a_job_fills_up_one_node_and_no_second_one() -> None:
    """Counted twice on the first it would lack on the next, and a node came in its place."""
    large = InstanceType("g4dn.12xlarge", 48, 196_608, 4, "t4")
    plain = InstanceType("c6i.4xlarge", 16, 32_768, 0, "")
    of = cluster(pool(types=(T4,), markets=(Market.SPOT,)))
    of = replace(
        of,
        pools=(replace(of.pools[0], instance_types=(large, plain)),),
        prices={offering(large): 3.9, offering(plain): 0.3},
    )
    jobs = [job(1, gpus=0, gpu_type="", cpus=5, memory_mib=1_000)]
    jobs += [job(n, gpus=4, cpus=22, memory_mib=90_000) for n in (2, 3)]

    made = plan(snapshot(jobs, of=of))

    assert counts(made) == {"g4dn.12xlarge": 2}
    assert [sorted(each.for_jobs) for each in launches(made)] == [["1", "2", "3"]]
