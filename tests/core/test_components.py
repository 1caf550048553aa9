"""Components of heterogeneous jobs: which of them gets which node."""

from tests.core.reading import launches, orders
from tests.core.test_gangs import booting
from tests.make import (
    A10G,
    NOW_S,
    T4,
    T4_BIG,
    cluster,
    instance,
    job,
    node,
    offering,
    pool,
    record,
    snapshot,
)
from tidegate.core.fleet.resume import kept_for
from tidegate.core.model.ec2 import Market
from tidegate.core.model.orders import OrderKind
from tidegate.core.passes.steer import CLOSED
from tidegate.core.planner import plan


def test_each_component_waits_for_what_was_bought_for_it() -> None:
    """The small one would fit on the nodes of the other as well, which is four nodes then."""
    of = cluster(pool("big", (A10G,)), pool("small", (A10G,), zones=("us-east-1b",)))
    elsewhere = offering(A10G, zone="us-east-1b")
    known = [
        *(record(f"i-{n}", offering(A10G), pool="big", gated_for="7") for n in (1, 2, 3)),
        record("i-4", elsewhere, pool="small", gated_for="7"),
    ]
    jobs = [
        job(7, het_job_id="7", gpus=1, gpu_type="a10g"),
        job(8, het_job_id="7", nodes=3, gpus=1, gpu_type="a10g"),
    ]
    seen = [instance(each.instance_id, each.offering, pool=each.pool) for each in known]

    made = plan(snapshot(jobs, of=of, instances=seen, records=list(map(booting, known))))

    assert launches(made) == []
    assert {each.job_id: each.by for each in made.served} == {
        "7": ("i-4",),
        "8": ("i-1", "i-2", "i-3"),
    }


def test_a_component_leaves_another_the_only_node_that_it_would_not_lose_its_work_on() -> None:
    """All are open: Slurm has not started them yet. The third has its node already."""
    spot = {"big": offering(T4_BIG), "small": offering(T4, zone="us-east-1b")}
    of = cluster(
        pool("big", (T4_BIG,), markets=(Market.SPOT,), weight=10),
        pool("small", (T4,), markets=(Market.SPOT, Market.ON_DEMAND), zones=("us-east-1b",)),
    )
    there = {"i-1": "small", "i-2": "big", "i-3": "big"}
    kinds = {"small": T4, "big": T4_BIG}
    jobs = [
        job(7, het_job_id="7", is_requeueable=False, time_limit_s=3600),
        job(8, het_job_id="7", constraint="spot"),
        job(9, het_job_id="7", memory_mib=100_000),
    ]

    made = plan(
        snapshot(
            jobs,
            [node(name, kinds[where]) for name, where in there.items()],
            of=of,
            instances=[instance(n, spot[where], pool=where) for n, where in there.items()],
            records=[record(n, spot[where], pool=where) for n, where in there.items()],
        )
    )

    assert launches(made) == []
    assert {each.job_id: each.by for each in made.served}["7"] == ("i-1",)


def test_where_a_node_lacks_the_component_with_the_dearest_own_node_keeps_what_is_there() -> None:
    """Either would do with it; what is bought for the small one is cheaper."""
    jobs = [
        job(7, het_job_id="7", gpu_type="", memory_mib=2000),
        job(8, het_job_id="7", gpu_type="a10g"),
    ]
    of, a10g = cluster(pool(types=(T4, A10G))), offering(A10G)
    known = booting(record("i-1", a10g, gated_for="7"))

    made = plan(snapshot(jobs, of=of, instances=[instance("i-1", a10g)], records=[known]))

    assert [(each.offerings[0].instance_type, each.for_jobs) for each in launches(made)] == [
        (T4.name, ("7",))
    ]


def test_a_component_that_lost_its_node_takes_none_that_was_bought_for_another() -> None:
    """A new small one is cheaper than a new large one."""
    of = cluster(pool("big", (A10G,)), pool("small", (T4,)))
    known = [record(f"i-{n}", offering(A10G), pool="big", gated_for="7") for n in (1, 2)]
    jobs = [
        job(7, het_job_id="7", gpus=0),
        job(8, het_job_id="7", nodes=2, gpus=1, gpu_type="a10g"),
    ]
    seen = [instance(each.instance_id, each.offering, pool=each.pool) for each in known]

    made = plan(snapshot(jobs, of=of, instances=seen, records=list(map(booting, known))))

    assert [(each.pool, each.for_jobs) for each in launches(made)] == [("small", ("7",))]


def test_a_component_takes_nodes_first_that_no_other_one_could_use() -> None:
    """Of three nodes the first may have any two, and one of them is of no use to the second."""
    kinds = {"i-1": T4_BIG, "i-2": T4_BIG, "i-3": T4_BIG, "i-4": T4_BIG, "i-5": T4}
    jobs = [
        job(7, het_job_id="7", nodes=2, excluded_nodes=("i-3", "i-4")),
        job(8, het_job_id="7", nodes=3, memory_mib=100_000),
    ]

    made = plan(
        snapshot(
            jobs,
            [node(name, of) for name, of in kinds.items()],
            instances=[instance(name, offering(of)) for name, of in kinds.items()],
            records=[record(name, offering(of)) for name, of in kinds.items()],
        )
    )

    assert launches(made) == []
    assert {each.job_id: "i-5" in each.by for each in made.served} == {"7": True, "8": False}


def test_the_node_that_a_gang_keeps_is_not_left_for_one_that_is_closed_to_small_jobs() -> None:
    """Else the two change places in every plan: what it keeps is closed to nobody of its own, so
    that its small component, whose node boots still, might have it.
    """
    shut, little = "IDLE+DRAIN+DYNAMIC_NORM", offering(T4)
    large = {"i-1": CLOSED, "i-2": kept_for("7", NOW_S + 600)}
    jobs = [
        job(7, het_job_id="7", gpu_type="a10g", is_exclusive=True),
        job(8, het_job_id="7", gpus=0, gpu_type=""),
    ]

    made = plan(
        snapshot(
            jobs,
            [node(name, A10G, state=shut, reason=str(why)) for name, why in large.items()],
            of=cluster(pool(types=(T4, A10G))),
            instances=[
                *(instance(name, offering(A10G)) for name in large),
                instance("i-3", little),
            ],
            records=[
                *(record(name, offering(A10G)) for name in large),
                booting(record("i-3", little, gated_for="7")),
            ],
        )
    )

    assert not orders(made, OrderKind.DRAIN)
    assert not orders(made, OrderKind.UNDRAIN)
    assert {each.job_id: each.by for each in made.served} == {"7": ("i-2",), "8": ("i-3",)}
