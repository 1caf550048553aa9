"""Spot and the work that it loses: where a job is not bought, not started, and why."""

from dataclasses import replace

import pytest

from tests.core.reading import launches, orders
from tests.make import (
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
from tidegate.core.buy.steering import Own, Steering
from tidegate.core.demand.constraint import with_feature
from tidegate.core.demand.demand import demand
from tidegate.core.explain.advice import advice
from tidegate.core.model.cluster import Cluster, Limits
from tidegate.core.model.ec2 import Market
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.orders import OrderKind, OrderOutcome, OrderResult
from tidegate.core.model.plan import Plan, Unmet
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why
from tidegate.core.offers.limits import Usage
from tidegate.core.offers.offers import OfferGroups
from tidegate.core.planner import plan

HOUR_S = 3600.0
POOR = cluster(pool(types=(T4,)), limits=Limits(usd_per_hour=0.01))


def short(job_id: int = 1, **more: object) -> Job:
    return job(job_id, **{"time_limit_s": HOUR_S / 2, **more})  # type: ignore[arg-type]


def long(job_id: int = 2, **more: object) -> Job:
    return job(job_id, **{"time_limit_s": 24 * HOUR_S, **more})  # type: ignore[arg-type]


def bought(made: Plan) -> dict[tuple[str, ...], Market]:
    return {each.for_jobs: each.offerings[0].market for each in launches(made)}


def booting(name: str) -> NodeRecord:
    return record(name, offering(T4), age_s=60.0, phase=Phase.LAUNCHED, gated_for="2")


def refused(made: Plan, job_id: str) -> Unmet:
    return next(each for each in made.unmet if each.job_id == job_id)


def beside_spot(*jobs: Job, phase_age_s: float = 3000.0, of: Cluster | None = None) -> Snapshot:
    """An idle spot node of one GPU is there."""
    return snapshot(
        jobs,
        [node("i-1", T4)],
        of=of or cluster(pool(types=(T4,))),
        instances=[instance("i-1", offering(T4), age_s=phase_age_s)],
        records=[record("i-1", offering(T4), age_s=phase_age_s)],
    )


def test_a_gang_that_a_limit_keeps_from_on_demand_waits_and_is_told_what_spot_would_cost() -> None:
    usd = cluster(pool(types=(T4,))).prices[offering(T4, Market.ON_DEMAND)]
    of = cluster(pool(types=(T4,), limits=Limits(usd_per_hour=3.9 * usd)))
    gang = long(nodes=4)

    made = plan(snapshot([gang], of=of))
    unmet = refused(made, "2")

    assert bought(made) == {}
    assert {each.kind for each in unmet.why_nots} == {Why.LIMIT, Why.LOSSY}
    assert "each of its 4 nodes is taken back 0.05 times an hour" in unmet.reason
    assert "expected to run 24.0 h" in unmet.reason
    told = " ".join(advice(gang, unmet.why_nots))
    assert "Comment=tidegate:ckpt" in told
    assert "checkpoint_s" in told
    assert "limits of pool t4 raised" in told
    assert "Requeue=1" not in told


def test_a_job_that_may_not_be_requeued_is_not_told_of_checkpoints_alone() -> None:
    wants = long(is_requeueable=False)

    unmet = refused(plan(snapshot([wants], of=POOR)), "2")

    told = [each.rpartition(" ")[2] for each in advice(wants, unmet.why_nots)]
    assert told.index("Requeue=1") < told.index("Comment=tidegate:ckpt=USR1@60")
    saving = replace(wants, comment="tidegate:ckpt=USR1@60")
    assert not any("Comment=" in each for each in advice(saving, unmet.why_nots))


@pytest.mark.parametrize(
    ("asked", "freed"),
    [("on-demand", ""), ("t4&on-demand", "'t4'"), ("on-demand,t4,g4dn.xlarge", "'t4&g4dn.xlarge'")],
)
def test_a_job_that_was_kept_off_spot_is_told_what_spot_would_cost_it(
    asked: str, freed: str
) -> None:
    """What it asks since is no constraint of its own."""
    wants = long(constraint=asked)

    unmet = refused(plan(snapshot([wants], of=POOR)), "2")

    assert {each.kind for each in unmet.why_nots} == {Why.LIMIT, Why.LOSSY}
    told = advice(wants, unmet.why_nots)
    assert any(each.endswith(f"scontrol update JobId=2 Features={freed}") for each in told)


@pytest.mark.parametrize("is_near", [False, True])
def test_a_job_that_asks_for_on_demand_though_spot_suits_it_hears_of_its_constraint(
    is_near: bool,
) -> None:
    """Unless spot would leave it no time before its deadline: then of that."""
    deadline_s = NOW_S + 1.2 * HOUR_S if is_near else None
    wants = short(time_limit_s=HOUR_S, constraint="on-demand", deadline_s=deadline_s)

    unmet = refused(plan(snapshot([wants], of=POOR)), "1")

    kinds = {each.kind for each in unmet.why_nots}
    assert kinds == {Why.LIMIT, Why.DEADLINE if is_near else Why.CONSTRAINT}


def test_lossy_spot_of_one_type_is_told_beside_another_that_a_limit_refuses() -> None:
    of = cluster(pool(types=(T4, T4_BIG)))
    t4, big = (of.prices[offering(each, Market.ON_DEMAND)] for each in (T4, T4_BIG))
    prices = {**of.prices, offering(T4): 0.8 * t4, offering(T4_BIG): 0.3 * big}
    limits = Limits(usd_per_hour=0.9 * t4)
    of = replace(of, prices=prices, limits=limits)

    unmet = refused(plan(snapshot([job(2, time_limit_s=8 * HOUR_S)], of=of)), "2")

    lossy = [each for each in unmet.why_nots if each.kind is Why.LOSSY]
    assert [each.offering for each in lossy] == [str(offering(T4))]
    assert str(offering(T4_BIG)) in {e.offering for e in unmet.why_nots if e.kind is Why.LIMIT}
    assert f"{offering(T4)} counts" in unmet.reason


@pytest.mark.parametrize("is_lossy_first", [False, True])
def test_jobs_of_one_shape_that_spot_suits_differently_are_weighed_apart(
    is_lossy_first: bool,
) -> None:
    """Each is a kind of its own, whichever Slurm lists first."""
    jobs = [short(1, on=("i-1",)), long(2, is_requeueable=False, on=("i-1",))]
    seen = beside_spot(*(reversed(jobs) if is_lossy_first else jobs))
    steering = Steering(seen, OfferGroups(seen), Usage(seen.cluster, {}))

    sold = {each.need.job_id: steering.own_node(each.need, Market.SPOT) for each in steering.about}

    own = Own(seen.cluster.prices[offering(T4)], is_spare=False, boot_s=300.0)
    assert sold == {"1": own, "2": None}


def test_a_small_job_is_offered_no_zone_either_in_which_spot_is_dearer_than_it_saves() -> None:
    """Of like prices EC2 takes any: there the job would not be started, and more be bought."""
    zones = ("us-east-1a", "us-east-1b")
    of = cluster(pool(types=(T4,), zones=zones))
    near, far = (offering(T4, zone=zone) for zone in zones)
    steady = of.prices[offering(T4, Market.ON_DEMAND)]
    of = replace(of, prices={**of.prices, near: 0.75 * steady, far: 0.8 * steady})

    (of_short,) = launches(plan(snapshot([short()], of=of)))
    (of_both,) = launches(plan(snapshot([short(), short(2, time_limit_s=HOUR_S)], of=of)))

    assert of_short.offerings == (near, far)
    assert of_both.offerings == (near,)


def test_a_gang_is_offered_no_zone_in_which_spot_is_dearer_than_it_saves() -> None:
    zones = ("us-east-1a", "us-east-1b")
    of = cluster(pool(types=(T4,), zones=zones))
    dear, steady = offering(T4, zone=zones[1]), of.prices[offering(T4, Market.ON_DEMAND)]
    of = replace(of, prices={**of.prices, dear: 0.95 * steady})
    seen = snapshot([short(1, nodes=2, time_limit_s=2 * HOUR_S)], of=of)
    (need,), _ = demand(seen.digest.reading, of, frozenset())  # type: ignore[union-attr]

    options = [each.offering for each in OfferGroups(seen).options(need)]

    assert offering(T4) in options
    assert dear not in options


def test_what_it_loses_decides_the_market() -> None:
    made = plan(snapshot([short(), long(), long(3, comment="tidegate:ckpt=USR1@60")]))

    assert bought(made) == {("1", "3"): Market.SPOT, ("2",): Market.ON_DEMAND}


def test_a_job_that_lost_its_work_is_bought_what_nobody_takes_back() -> None:
    made = {n: bought(plan(snapshot([short(restarts=n)]))) for n in (0, 1, 5)}

    assert made == {
        0: {("1",): Market.SPOT},
        1: {("1",): Market.SPOT},
        5: {("1",): Market.ON_DEMAND},
    }


def test_where_only_spot_is_sold_a_job_waits_when_it_would_hardly_ever_end() -> None:
    of = cluster(pool(types=(T4,), markets=(Market.SPOT,)))

    made = plan(snapshot([long(), job(3, time_limit_s=240 * HOUR_S)], of=of))

    assert bought(made) == {("2",): Market.SPOT}
    (why_not,) = refused(made, "3").why_nots
    assert why_not.kind is Why.LOSSY
    assert "without interruptions" in why_not.sentence
    assert "capacity_types" in why_not.remedy


def test_a_spot_node_that_is_there_is_not_counted_on_for_a_job_that_would_lose_its_work() -> None:
    made = plan(beside_spot(long()))

    assert bought(made) == {("2",): Market.ON_DEMAND}
    (order,) = orders(made, OrderKind.CONSTRAIN)
    assert (order.names, order.text, order.only_if) == (("2",), "on-demand", ("PENDING",))


@pytest.mark.parametrize(
    ("outcome", "again"), [(OrderOutcome.FAILED, 0), (OrderOutcome.EXPIRED, 1)]
)
def test_what_slurm_has_refused_of_a_job_is_not_asked_again_at_once(
    outcome: OrderOutcome, again: int
) -> None:
    """The head tells each answer at once, and each is a look: it would go on every second."""
    seen = beside_spot(long())
    said = OrderResult("0-o0", OrderKind.CONSTRAIN, "2", outcome, "Slurm refused")
    assert seen.digest is not None

    made = plan(replace(seen, digest=replace(seen.digest, results=(said,))))

    assert len(orders(made, OrderKind.CONSTRAIN)) == again


def test_a_job_for_which_other_spot_is_bought_is_let_on_that() -> None:
    """A dear spot node that is there must not have it sent on demand."""
    big, small = offering(T4_BIG), offering(T4)
    of = cluster(pool(types=(T4, T4_BIG)))
    steady = of.prices[offering(T4_BIG, Market.ON_DEMAND)]
    of = replace(of, prices={**of.prices, big: 0.99 * steady})
    seen = snapshot(
        [short()],
        [node("i-1", T4_BIG)],
        of=of,
        instances=[instance("i-1", big)],
        records=[record("i-1", big)],
    )

    made = plan(seen)

    assert [each.offerings[0] for each in launches(made)] == [small]
    assert orders(made, OrderKind.CONSTRAIN) == []


def test_slurm_may_start_on_spot_what_spot_suits_and_what_has_nowhere_else_to_go() -> None:
    spot = cluster(pool(types=(T4,), markets=(Market.SPOT,)))

    assert orders(plan(beside_spot(short())), OrderKind.CONSTRAIN) == []
    assert orders(plan(beside_spot(long(), of=spot)), OrderKind.CONSTRAIN) == []
    assert orders(plan(snapshot([long()])), OrderKind.CONSTRAIN) == []  # there is no spot node


@pytest.mark.parametrize(
    "told",
    [
        long(constraint="on-demand"),
        long(constraint="[t4|a10g]"),
        long(required_nodes=("i-1",)),
        long(het_job_id="2"),
    ],
)
def test_a_job_that_was_told_or_cannot_be_is_left_alone(told: Job) -> None:
    assert orders(plan(beside_spot(told)), OrderKind.CONSTRAIN) == []


def test_a_job_stays_off_spot_that_is_bought_for_another() -> None:
    made = plan(snapshot([short(), long()]))

    assert [order.names for order in orders(made, OrderKind.CONSTRAIN)] == [("2",)]


def test_nodes_that_boot_for_a_gang_stay_its_own() -> None:
    """The price was another when they were bought."""
    of = cluster(replace(pool(types=(T4,)), boot_s=300.0))
    names = ("i-1", "i-2")
    seen = snapshot(
        [long(nodes=2)],
        of=of,
        instances=[instance(name, offering(T4), age_s=60.0) for name in names],
        records=[
            record(name, offering(T4), age_s=60.0, phase=Phase.LAUNCHED, gated_for="2")
            for name in names
        ],
    )

    assert bought(plan(seen)) == {}


@pytest.mark.parametrize(
    ("asked", "added"),
    [
        ("", "on-demand"),
        ("t4", "t4&on-demand"),
        ("t4,large", "t4&large&on-demand"),
        ("t4&on-demand", "t4&on-demand"),
        ("t4|a10g", None),
        ("[t4*1&a10g*2]", None),
        ("a;b", None),
    ],
)
def test_a_feature_is_added_where_all_that_is_asked_for_is_asked_of_each_node(
    asked: str, added: str | None
) -> None:
    assert with_feature(asked, "on-demand") == added


@pytest.mark.parametrize("is_in_a_hurry", [False, True])
def test_a_job_for_which_on_demand_is_bought_stays_off_lossy_spot(is_in_a_hurry: bool) -> None:
    """Though a dearer spot type would lose it nothing, or there is no time for an interruption."""
    near, far = (offering(T4, zone=zone) for zone in ("us-east-1a", "us-east-1b"))
    steady = offering(T4, Market.ON_DEMAND)
    of = cluster(pool(types=(T4,) if is_in_a_hurry else (T4, T4_BIG), zones=(near.zone, far.zone)))
    dear = {far: 0.99 * of.prices[steady]}
    if not is_in_a_hurry:
        dear[near] = 0.99 * of.prices[steady]
    of = replace(of, prices={**of.prices, **dear})
    deadline_s = NOW_S + 1.2 * HOUR_S if is_in_a_hurry else None
    asked = job(1, time_limit_s=HOUR_S, deadline_s=deadline_s)
    seen = snapshot(
        [asked],
        [node("i-1", T4)],
        of=of,
        instances=[instance("i-1", far)],
        records=[record("i-1", far)],
    )

    made = plan(seen)

    assert [each.offerings[0].market for each in launches(made)] == [Market.ON_DEMAND]
    assert [order.names for order in orders(made, OrderKind.CONSTRAIN)] == [("1",)]


def test_a_job_does_not_count_on_a_booting_spot_node_that_it_would_be_kept_off() -> None:
    """It came for another, which does not wait for it any more."""
    boots = replace(booting("i-1"), gated_for="")

    def made(asks: Job) -> Plan:
        seen = beside_spot(asks, phase_age_s=60.0)
        return plan(replace(seen, digest=snapshot([asks]).digest, nodes=(boots,)))

    assert bought(made(short())) == {}
    assert bought(made(long())) == {("2",): Market.ON_DEMAND}
