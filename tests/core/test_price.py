"""What a job is told that it costs."""

from dataclasses import replace

from tests.make import (
    NOW_S,
    T4,
    T4_BIG,
    cluster,
    instance,
    job,
    offering,
    pool,
    record,
    snapshot,
)
from tidegate.core.explain.needs import pools_of
from tidegate.core.explain.price import likely_price, price
from tidegate.core.fleet.members import members
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Market
from tidegate.core.model.slurm import Job

HOUR_S = 3600.0
BIG = offering(T4_BIG)


def told(asks: Job, *usd_per_hour: float, of: Cluster | None = None) -> list[str]:
    """On as many nodes with four GPUs as there are prices."""
    names = [f"i-{number}" for number, _ in enumerate(usd_per_hour)]
    records = [
        replace(record(name, BIG), usd_per_hour=usd)
        for name, usd in zip(names, usd_per_hour, strict=True)
    ]
    instances = [instance(name, BIG) for name in names]
    seen = snapshot([asks], instances=instances, records=records, of=of)
    return list(price(asks, members(seen), seen))


def test_a_running_job_hears_of_its_part_and_of_what_it_may_come_to():
    runs = job(1, state="RUNNING", on=["i-0"], time_limit_s=4 * HOUR_S)
    runs = replace(runs, started_at_s=NOW_S - HOUR_S / 2)

    assert told(runs, 2.0) == [
        "it pays 0.50 USD an hour for its part of it, 0.25 so far, at most 2.00 by its time limit"
    ]


def test_a_job_whose_nodes_boot_hears_the_same_without_what_was():
    assert told(job(1, nodes=2, time_limit_s=HOUR_S), 2.0, 4.0) == [
        "it pays 1.50 USD an hour for its part of them, at most 1.50 by its time limit"
    ]


def test_who_shares_a_gpu_pays_its_part_of_that():
    """50 of a hundred mps of one of four GPUs, and two of four shards."""
    for gres, gpus, per_gpu in (("mps", 50, 100), ("shard", 2, 4)):
        shared = replace(T4_BIG, shards_per_gpu=per_gpu, shared_gres=gres)
        asks = job(1, time_limit_s=None)
        asks = replace(asks, shape=replace(asks.shape, gpus=gpus, gpu_type="", gres=gres, cpus=1))
        of = cluster(pool("t4", (shared,)))

        assert told(asks, 2.0, of=of) == ["it pays 0.25 USD an hour for its part of it"]


def test_who_has_the_node_alone_pays_all_of_it():
    alone = job(1, time_limit_s=None)
    alone = replace(alone, shape=replace(alone.shape, is_exclusive=True))

    assert told(alone, 2.0) == ["it pays 2.00 USD an hour for its part of it"]


def test_of_nodes_that_are_not_known_yet_or_cost_nothing_nothing_is_said():
    assert told(job(1, nodes=2), 2.0) == []
    assert told(job(1), 0.0) == []
    assert told(job(1)) == []


def likely(asks: Job, *, usd: float = 0.4, of: Cluster | None = None) -> list[str]:
    """On spot nodes with one GPU for 0.3 USD an hour, or with four for `usd`."""
    if of is None:
        of = cluster(pool("t4", (T4, T4_BIG)))
        of = replace(of, prices={**of.prices, offering(T4): 0.3, offering(T4_BIG): usd})
    seen = snapshot([asks], of=of)
    return list(likely_price(asks, pools_of(asks, seen), seen))


def test_a_job_for_which_nothing_is_bought_hears_what_it_would_pay():
    assert likely(job(1, nodes=2, time_limit_s=HOUR_S)) == [
        "it would pay 0.20 USD an hour for its part of g4dn.12xlarge spot, the cheapest that fits,"
        " at most 0.20 by its time limit"
    ]
    assert likely(job(1, time_limit_s=None), usd=8.0) == [
        "it would pay 0.30 USD an hour for its part of g4dn.xlarge spot, the cheapest that fits"
    ]
    four = job(1, gpus=4, time_limit_s=None)
    assert "pay 3.00 USD an hour for its part of g4dn.12xlarge spot" in likely(four, usd=3.0)[0]


def test_of_what_does_not_fit_or_has_no_price_nothing_is_said():
    assert likely(job(1, gpus=8)) == []
    assert likely(job(1, gpu_type="h100")) == []
    assert likely(job(1, constraint="large")) == []
    assert likely(replace(job(1), partitions=("other",))) == []
    reserved = replace(pool("t4", (T4,)), markets=(Market.RESERVED,))
    assert likely(job(1), of=replace(cluster(), pools=(reserved,))) == []
    assert likely(job(1), of=replace(cluster(), prices={})) == []
