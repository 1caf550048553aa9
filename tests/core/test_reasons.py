"""Why a job waits: obstacle by obstacle, and in sentences."""

from dataclasses import replace

import pytest

from tests.make import A10G, NOW_S, T4, T4_BIG, cluster, job, offering, pool, snapshot
from tidegate.core.model.cluster import Limits, Reservation
from tidegate.core.model.ec2 import InstanceType, Market
from tidegate.core.model.ledger import Launch
from tidegate.core.model.plan import Plan, Unmet
from tidegate.core.model.resting import Resting
from tidegate.core.model.why import Why, WhyNot, told
from tidegate.core.planner import plan

ZONES = ("us-east-1a", "us-east-1b")


def unmet(made: Plan, job_id: str = "1") -> Unmet:
    return next(each for each in made.unmet if each.job_id == job_id)


def test_each_pool_names_every_dimension_that_it_lacks_and_its_nearest_type() -> None:
    found = unmet(plan(snapshot([job(gpus=5, cpus=99, gpu_type="")])))

    assert [(w.kind, w.pool, w.offering) for w in found.why_nots] == [
        (Why.TOO_SMALL, "a10g", "g5.12xlarge"),
        (Why.TOO_SMALL, "t4", "g4dn.12xlarge"),
    ]
    assert found.why_nots[0].missing == (("gpus", 5.0, 4.0), ("cpus", 99.0, 48.0))
    assert "g5.12xlarge has 4 GPUs, the job asks 5" in found.reason


def test_a_type_of_gpu_that_a_pool_has_not_counts_as_none() -> None:
    found = unmet(plan(snapshot([job(gpus=1, gpu_type="h100")])))

    assert found.why_nots[0].missing == (("gpus", 1.0, 0.0),)


def test_what_rests_has_ec2s_own_words() -> None:
    of = cluster(pool(types=(T4,), markets=(Market.SPOT,)))
    rests = Resting(offering(T4), NOW_S + 60, 1, "InsufficientInstanceCapacity", "none left")

    (found,) = unmet(plan(snapshot([job()], of=of, resting=[rests]))).why_nots

    assert found.words == "InsufficientInstanceCapacity: none left"


def test_a_resting_offering_is_named_with_the_instant_at_which_its_rest_ends() -> None:
    spot = cluster(pool(types=(T4,), markets=(Market.SPOT,)))
    rests = Resting(offering(T4), NOW_S + 60, 1, "InsufficientInstanceCapacity", "none left")

    found = unmet(plan(snapshot([job()], of=spot, resting=[rests])))

    assert [(w.kind, w.offering, w.until_s) for w in found.why_nots] == [
        (Why.RESTING, "g4dn.xlarge/us-east-1a/spot", NOW_S + 60)
    ]


def test_what_passes_is_told_before_what_does_not() -> None:
    of = cluster(pool("a10g", (A10G,)), pool(types=(T4,), limits=Limits(nodes=0)))

    found = unmet(plan(snapshot([job()], of=of)))

    assert [w.kind for w in found.why_nots] == [Why.LIMIT, Why.LIMIT, Why.TOO_SMALL]
    assert found.reason == "pool t4 is limited to 0 nodes; the job asks 1"


def test_a_limit_names_the_offering_that_would_fit() -> None:
    of = cluster(pool(types=(T4, T4_BIG), limits=Limits(gpus=1)))

    found = unmet(plan(snapshot([job(gpus=2)], of=of)))

    assert (found.why_nots[0].kind, found.why_nots[0].offering) == (
        Why.LIMIT,
        "g4dn.12xlarge/us-east-1a/spot",
    )


def test_a_missing_price_and_a_price_of_zero_are_told_and_never_bought() -> None:
    of = cluster(pool(types=(T4,), markets=(Market.SPOT,)))

    for prices in ({}, {offering(T4): 0.0}, {offering(T4): -1.0}):
        made = plan(snapshot([job()], of=replace(of, prices=prices)))

        assert made.actions == ()
        assert unmet(made).why_nots[0].kind is Why.NO_PRICE


def test_spot_that_costs_no_less_than_on_demand_is_not_bought_and_told() -> None:
    of = cluster(pool(types=(T4,), markets=(Market.SPOT,), zones=ZONES))
    of = replace(of, prices=dict.fromkeys(of.prices, 0.5))
    steady = {offering(T4, Market.ON_DEMAND, zone): 0.5 for zone in ZONES}

    dear = plan(snapshot([job()], of=replace(of, prices={**of.prices, **steady})))
    somewhere = {**of.prices, **steady, offering(T4, zone=ZONES[0]): 0.4}
    cheap = plan(snapshot([job()], of=replace(of, prices=somewhere)))

    assert dear.actions == ()
    assert [(each.kind, each.sentence) for each in unmet(dear).why_nots] == [
        (Why.DEAR, f"{offering(T4, zone=zone)} costs no less than on demand") for zone in ZONES
    ]
    (bought,) = (each for each in cheap.actions if isinstance(each, Launch))
    assert bought.offerings == (offering(T4, zone=ZONES[0]),)


@pytest.mark.parametrize("market", [Market.RESERVED, Market.CAPACITY_BLOCK])
@pytest.mark.parametrize(
    ("starts_s", "ends_s", "kind", "said"),
    [
        (3600.0, 90000.0, Why.NOT_BEGUN, "reservation cr-1 of {on} begins at "),
        (-90000.0, -3600.0, Why.LIMIT, "no reservation of {on} has a place left"),
    ],
)
def test_a_reservation_that_has_not_begun_is_named_and_one_that_is_over_is_not_a_price(
    market: Market, starts_s: float, ends_s: float, kind: Why, said: str
) -> None:
    of = cluster(pool(types=(T4,), markets=(Market.SPOT,)))
    of = replace(of, pools=(replace(of.pools[0], markets=(market,)),), prices={})
    on = offering(T4, market)
    held = Reservation("cr-1", T4.name, on.zone, 2, market, NOW_S + starts_s, NOW_S + ends_s)

    made = plan(snapshot([job()], of=replace(of, reservations=(held,))))

    (found,) = unmet(made).why_nots
    assert (found.kind, found.sentence.startswith(said.format(on=on))) == (kind, True)
    assert found.until_s == (NOW_S + starts_s if kind is Why.NOT_BEGUN else None)


def test_a_constraint_that_no_node_of_a_pool_meets_is_told() -> None:
    found = unmet(plan(snapshot([job(constraint="infiniband")], of=cluster(pool()))))

    assert {w.kind for w in found.why_nots} == {Why.CONSTRAINT}
    assert "pool t4 on spot does not meet 'infiniband'" in found.reason


def test_a_constraint_whose_types_are_all_too_small_is_told() -> None:
    found = unmet(plan(snapshot([job(gpus=4, constraint="g4dn.xlarge")], of=cluster(pool()))))

    assert "no type that meets 'g4dn.xlarge' is large enough" in found.reason


def test_a_partition_without_pools_is_told() -> None:
    lonely = replace(job(), partitions=("nowhere",))

    assert unmet(plan(snapshot([lonely]))).reason == "no pool serves its partition"


def test_an_impossible_job_leaves_the_others_alone() -> None:
    made = plan(snapshot([job(1, gpus=99, priority=9), job(2)]))

    assert [each.job_id for each in made.unmet] == ["1"]
    assert [each.job_id for each in made.served] == ["2"]


def test_devices_of_another_kind_are_no_gpus() -> None:
    neuron = InstanceType("inf2.xlarge", 4, 16384, 1, "inferentia2", gres="neuron")
    of = replace(pool(types=(T4,)), instance_types=(neuron,))
    prices = {each: 0.5 for _, each in of.offerings()}
    of_neuron = replace(cluster(pool(types=(T4,))), pools=(of,), prices=prices)
    asks = replace(job(2).shape, gres="neuron", gpu_type="")

    made = plan(snapshot([job(1, gpu_type=""), replace(job(2), shape=asks)], of=of_neuron))

    assert [each.job_id for each in made.served] == ["2"]
    assert "has neuron devices, not gpu" in unmet(made).reason


def test_few_sentences_are_told_and_the_rest_counted() -> None:
    many = [WhyNot(Why.RESTING, f"reason {n}") for n in (1, 2, 2, 3, 4, 5, 6)]

    assert told(many) == "reason 1; reason 2; reason 3; reason 4; and 2 more"
