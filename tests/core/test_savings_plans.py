"""Savings Plans: what of them nobody uses costs nothing more, and beyond them on demand counts."""

from dataclasses import replace

import pytest

from tests.core.reading import launches, orders
from tests.make import (
    A10G,
    NOW_S,
    T4,
    T4_BIG,
    ZONE,
    at_estimates,
    cluster,
    instance,
    job,
    node,
    placement,
    pool,
    record,
    snapshot,
)
from tidegate.core.explain.overview import overview
from tidegate.core.fleet.members import members
from tidegate.core.fleet.node_price import usd_per_hour
from tidegate.core.model.cluster import Cluster, Limits
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ledger import Launch, LaunchRecord, Phase
from tidegate.core.model.market import Quote, SeenMarket
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Reprice
from tidegate.core.model.savings_plans import Committed, PlanKind, PlanRate, SavingsPlan
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.market import at_market
from tidegate.core.offers.spend import bill, repriced
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

ARN = "arn:aws:savingsplans::123456789012:savingsplan/0f3a"
ON_DEMAND = Offering(T4.name, ZONE, Market.ON_DEMAND)
USD, RATE, DISK_USD = 0.526, 0.3, 0.026


def savings_plan(usd: float = 0.6, **more: object) -> SavingsPlan:
    """Of T4s: 0.3 USD of the 0.5 that one costs on demand without its disk."""
    rates = {T4.name: PlanRate(RATE, USD - DISK_USD), T4_BIG.name: PlanRate(2.4, 3.912 - DISK_USD)}
    made = SavingsPlan(ARN, PlanKind.COMPUTE, usd, rates, NOW_S - 900, NOW_S + 9000)
    return replace(made, **more)  # type: ignore[arg-type]


def committing(usd: float = 0.6, **more: object) -> Cluster:
    of = cluster(pool(), pool("a10g", (A10G,)))
    return replace(of, savings_plans=(savings_plan(usd, **more),))


def bought(seen: Snapshot) -> list[tuple[str, Market, int]]:
    """What is asked for first in each launch, and how often."""
    found = ((each.offerings[0], each.count) for each in launches(plan(seen)))
    return sorted((on.instance_type, on.market, count) for on, count in found)


def jobs(count: int) -> list[Job]:
    return [job(number) for number in range(1, count + 1)]


def running(count: int, of: Cluster) -> Snapshot:
    names = [f"i-{number}" for number in range(1, count + 1)]
    records = [record(name, on=ON_DEMAND) for name in names]
    nodes = [node(name, state="ALLOCATED", gpus_alloc=1) for name in names]
    busy = [job(900 + number, on=[name]) for number, name in enumerate(names)]
    shown = [instance(name, ON_DEMAND) for name in names]
    return snapshot(busy, nodes, of=of, instances=shown, records=records)


def noted(seen: Snapshot) -> Snapshot:
    """What the next look sees: the prices that this one's plan notes."""
    found = {a.instance_id: a for a in plan(seen).actions if isinstance(a, Reprice)}
    nodes = (
        replace(each, usd_per_hour=to.usd_per_hour, committed=to.committed)
        if (to := found.get(each.instance_id))
        else each
        for each in seen.nodes
    )
    return replace(seen, nodes=tuple(nodes))


def also(seen: Snapshot, *more: Job) -> Snapshot:
    reading = seen.heard.reading
    digest = replace(seen.heard, reading=replace(reading, jobs=(*reading.jobs, *more)))
    return replace(seen, digest=digest)


def test_what_nobody_uses_of_a_plan_is_bought_before_spot_and_spot_beyond_it() -> None:
    assert bought(snapshot(jobs(1), of=cluster())) == [(T4.name, Market.SPOT, 1)]

    found = bought(snapshot(jobs(4), of=committing(0.6)))

    assert found == [(T4.name, Market.ON_DEMAND, 2), (T4.name, Market.SPOT, 2)]


def test_nodes_that_run_on_demand_use_it() -> None:
    seen = also(running(1, committing(0.6)), *jobs(2))

    assert bought(seen) == [(T4.name, Market.ON_DEMAND, 1), (T4.name, Market.SPOT, 1)]
    full = also(running(2, committing(0.6)), *jobs(2))
    assert bought(full) == [(T4.name, Market.SPOT, 2)]


def test_so_do_launches_of_which_nobody_knows_what_they_brought() -> None:
    of = committing(0.6)
    launch = Launch("l-9", "t4", (ON_DEMAND,), 2, 1, ("77",), USD, "", "why")
    doubted = LaunchRecord(launch, NOW_S - 10, fleet_request(launch, "test", placement(of)))
    seen = snapshot(jobs(4), of=of, launches=[doubted])

    assert {market for _, market, _ in bought(seen)} == {Market.SPOT}


@pytest.mark.parametrize(
    "over", [{"ends_at_s": NOW_S - 1}, {"ends_at_s": NOW_S + 30}, {"starts_at_s": NOW_S + 1}]
)
def test_a_plan_that_is_over_or_to_come_pays_nothing(over: dict[str, float]) -> None:
    assert bought(snapshot(jobs(1), of=committing(0.6, **over))) == [(T4.name, Market.SPOT, 1)]


def test_of_what_it_covers_that_is_bought_which_uses_least_of_it() -> None:
    found = bought(snapshot(jobs(2), of=committing(100.0)))

    assert found == [(T4.name, Market.ON_DEMAND, 2)]


def test_a_type_that_it_does_not_cover_is_bought_as_before() -> None:
    a10g = snapshot([job(1, gpu_type="a10g")], of=committing(100.0))

    assert bought(a10g) == [(A10G.name, Market.SPOT, 1)]


def test_what_is_left_may_pay_a_part_of_a_node() -> None:
    # 3.912 on demand, 1.5 on spot; of 2.4 the plan pays 2.0, and 0.65 is left to pay.
    big = job(1, gpus=4)

    assert bought(snapshot([big], of=committing(2.0))) == [(T4_BIG.name, Market.ON_DEMAND, 1)]
    assert bought(snapshot([big], of=committing(0.5))) == [(T4_BIG.name, Market.SPOT, 1)]


def test_a_gang_goes_where_a_plan_pays_for_all_of_it() -> None:
    gang = job(1, nodes=2)

    assert bought(snapshot([gang], of=committing(0.6))) == [(T4.name, Market.ON_DEMAND, 2)]
    assert bought(snapshot([gang], of=committing(0.5))) == [(T4.name, Market.SPOT, 2)]


def test_limits_count_what_ec2_bills_where_others_have_used_the_plan_up() -> None:
    of = committing(0.6)
    tight = replace(of, limits=Limits(usd_per_hour=0.6))

    # The second would be 1.052 on demand; beside the first there is room for no spot either.
    assert bought(snapshot(jobs(2), of=tight)) == [(T4.name, Market.ON_DEMAND, 1)]


@pytest.mark.parametrize(("limit", "market"), [(0.3, Market.SPOT), (0.6, Market.ON_DEMAND)])
def test_where_a_limit_has_no_room_for_the_price_on_demand_spot_is_bought(
    limit: float, market: Market
) -> None:
    tight = replace(committing(0.6), limits=Limits(usd_per_hour=limit))

    assert bought(snapshot(jobs(1), of=tight)) == [(T4.name, market, 1)]


def test_the_reason_names_the_plan_and_what_was_unused() -> None:
    (one,) = launches(plan(also(running(1, committing(0.6)), *jobs(1))))

    assert "1 x g4dn.xlarge/us-east-1a/on-demand at 0.526 USD per hour" in one.reason
    assert (
        "; Savings Plan 0f3a has paid for what it uses of 0.60 USD per hour, of which 0.30 were"
        " unused" in one.reason
    )
    assert one.reservation == "", "no launch names a plan"


def test_a_running_node_costs_what_the_plan_pays_and_its_disk() -> None:
    seen = running(3, committing(0.45))

    found = [usd_per_hour(seen, each) for each in members(seen)]

    # A whole one, half of one, and one beyond the plan.
    assert found == pytest.approx([RATE + DISK_USD, USD - 0.5 * 0.2, USD])


def test_the_ledger_notes_what_the_plan_pays_and_when_it_does_no_more() -> None:
    of = committing(0.3)
    seen = running(2, of)

    (noted,) = (a for a in plan(seen).actions if isinstance(a, Reprice))

    assert noted.instance_id == "i-1"
    assert (noted.usd_per_hour, noted.committed) == (0.326, Committed(ARN, 0.3))
    assert "of which a Savings Plan pays 0.300" in noted.reason
    known = replace(seen.nodes[0], usd_per_hour=0.326, committed=noted.committed)
    held = replace(seen, nodes=(known, *seen.nodes[1:]))
    assert [a for a in plan(held).actions if isinstance(a, Reprice)] == []
    without = replace(held, cluster=replace(of, savings_plans=()))
    assert [a for a in plan(without).actions if isinstance(a, Reprice)] == [
        Reprice("i-1", USD, "EC2 bills it as on-demand now, 0.526 USD per hour")
    ]


def idling(of: Cluster) -> Snapshot:
    """One on spot, and one on demand, for long enough to go."""
    kinds = {"i-1": ON_DEMAND, "i-2": replace(ON_DEMAND, market=Market.SPOT)}
    return snapshot(
        [],
        [node(name, idle_s=900.0) for name in kinds],
        of=of,
        instances=[instance(name, on) for name, on in kinds.items()],
        records=[record(name, on=on) for name, on in kinds.items()],
        age_s=0.0,
    )


@pytest.mark.parametrize(("usd", "first"), [(0.6, "i-1"), (0.01, "i-2")])
def test_slurm_fills_what_a_plan_has_paid_for_before_spot(usd: float, first: str) -> None:
    of = committing(usd)
    kept = replace(of, pools=tuple(replace(each, idle_s=3600.0) for each in of.pools))

    found = {
        name: int(each.text)
        for each in orders(plan(idling(kept)), OrderKind.WEIGHT)
        for name in each.names
    }

    assert min(found, key=lambda name: found[name]) == first
    assert found["i-1"] != found["i-2"]


@pytest.mark.parametrize(("limit_usd", "is_bought"), [(1.3, True), (0.9, False)])
def test_a_node_that_describe_leaves_out_may_be_paid_by_no_plan_any_more(
    limit_usd: float, is_bought: bool
) -> None:
    """Limits have room for its price on demand: nobody says whether the plan still pays."""
    of = cluster(pool(limits=Limits(usd_per_hour=limit_usd), markets=(Market.ON_DEMAND,)))
    seen = running(1, of)
    paid = replace(seen.nodes[0], usd_per_hour=0.326, committed=Committed(ARN, 0.3, 0.2))
    hidden = replace(also(seen, job(1)), instances=(), nodes=(paid,))

    assert bool(bought(hidden)) == is_bought


@pytest.mark.parametrize(("usd", "goes"), [(0.6, "i-2"), (0.01, "i-1")])
def test_of_idle_nodes_that_goes_first_whose_end_saves_most(usd: float, goes: str) -> None:
    of = committing(usd)
    kept = replace(of, pools=tuple(replace(each, min_nodes=1) for each in of.pools[:1]))

    (order,) = orders(plan(idling(kept)), OrderKind.RELEASE)

    assert order.names == (goes,)


@pytest.mark.parametrize(("usd", "is_kept"), [(2.4, False), (0.01, True)])
def test_no_node_is_kept_for_larger_jobs_that_a_plan_has_paid_for(
    usd: float, is_kept: bool
) -> None:
    big = replace(ON_DEMAND, instance_type=T4_BIG.name)
    large = job(9, gpus=4, on=["i-1"], time_limit_s=3600.0, started_at_s=NOW_S - 60)
    seen = snapshot(
        [large, job(1, gpus=1, time_limit_s=3600.0)],
        [node("i-1", T4_BIG, state="MIXED+DYNAMIC_NORM", gpus_alloc=4)],
        of=committing(usd),
        instances=[instance("i-1", big)],
        records=[record("i-1", on=big)],
    )

    assert bool(orders(plan(seen), OrderKind.DRAIN)) == is_kept


@pytest.mark.parametrize("zones", [(), ("us-east-1b",)])
def test_a_node_that_no_pool_buys_any_more_costs_the_same_look_after_look(
    zones: tuple[str, ...],
) -> None:
    seen = running(1, committing(0.3))
    seen = noted(seen)
    assert seen.nodes[0].usd_per_hour == 0.326

    left = {Offering(T4.name, zone, Market.ON_DEMAND): USD for zone in zones}
    gone = replace(seen, cluster=replace(seen.cluster, prices=left))
    for _ in range(3):
        gone = noted(gone)
        assert gone.nodes[0].usd_per_hour == 0.326
    half = noted(replace(gone, cluster=replace(gone.cluster, savings_plans=(savings_plan(0.15),))))
    assert half.nodes[0].usd_per_hour == pytest.approx(0.426)
    over = noted(replace(half, cluster=replace(half.cluster, savings_plans=())))
    assert (over.nodes[0].usd_per_hour, over.nodes[0].committed) == (USD, None)
    assert noted(over).nodes[0].usd_per_hour == USD


def test_a_node_of_which_nobody_knows_a_price_costs_what_it_uses_of_the_plan() -> None:
    seen = running(1, replace(committing(0.3), prices={}))

    (member,) = members(replace(seen, nodes=()))

    assert usd_per_hour(seen, member) == 0.3


def test_a_node_that_boots_is_paid_by_the_plan_from_its_launch_on() -> None:
    booting = replace(record(on=ON_DEMAND, phase=Phase.LAUNCHED), launched_at_s=NOW_S - 40)
    seen = snapshot(of=committing(), records=[booting])
    paid = Committed(ARN, 0.3)

    stretch = repriced(booting, 0.326, seen, by_s=NOW_S, committed=paid)

    assert (stretch.until_s, stretch.charges, stretch.bill) == (NOW_S - 40, (), None)
    later = repriced(replace(booting, phase=Phase.JOINED), 0.326, seen, by_s=NOW_S, committed=paid)
    assert later.until_s == NOW_S
    line = bill(replace(booting, usd_per_hour=0.326, committed=paid), NOW_S)
    assert line is not None
    assert line.committed == paid


def test_spot_is_never_covered() -> None:
    spot = replace(ON_DEMAND, market=Market.SPOT)
    seen = snapshot(
        [job(1, on=["i-1"])],
        [node("i-1", state="ALLOCATED", gpus_alloc=1)],
        of=committing(0.6),
        instances=[instance("i-1", spot)],
        records=[record("i-1", on=spot)],
    )

    (member,) = members(seen)

    assert usd_per_hour(seen, member) == 0.2
    assert bought(also(seen, *jobs(2))) == [(T4.name, Market.ON_DEMAND, 2)]


def test_what_the_market_asks_moves_rates_that_are_a_part_of_the_list() -> None:
    rates = {T4.name: PlanRate(0.3, 0.5, discount=0.4), T4_BIG.name: PlanRate(2.4, 3.886)}
    of = replace(at_estimates(cluster(), DISK_USD), savings_plans=(savings_plan(rates=rates),))
    quotes = (Quote(T4.name, 0.6), Quote(T4_BIG.name, 4.0))

    seen = at_market(
        replace(of, discount=0.1), SeenMarket(on_demand=quotes, on_demand_at_s=NOW_S), NOW_S
    )

    (found,) = seen.savings_plans
    # A plan's discount is off the list; what is beyond it has the contract's.
    small, big = found.rates[T4.name], found.rates[T4_BIG.name]
    assert (small.usd_per_hour, small.on_demand_usd_per_hour) == pytest.approx((0.36, 0.54))
    assert (big.usd_per_hour, big.on_demand_usd_per_hour) == pytest.approx((2.4, 3.6))


def test_a_rate_that_is_no_lower_than_on_demand_after_a_price_cut_covers_nothing() -> None:
    of = replace(at_estimates(cluster(pool()), DISK_USD), savings_plans=(savings_plan(9.0),))
    cut = (Quote(T4.name, 0.3), Quote(T4_BIG.name, 3.0))

    seen = at_market(of, SeenMarket(on_demand=cut, on_demand_at_s=NOW_S), NOW_S)

    (found,) = seen.savings_plans
    assert found.rates == {T4_BIG.name: PlanRate(2.4, 3.0)}
    assert [each.committed for each in members(running(1, seen))] == [None]
    again = (Quote(T4.name, 0.31),)
    back = at_market(of, SeenMarket(on_demand=again, on_demand_at_s=NOW_S), NOW_S)
    assert back.savings_plans[0].rates[T4.name] == PlanRate(0.3, 0.31)


@pytest.mark.parametrize(
    ("ends_in_s", "says"),
    [
        (15 * 86_400.0, ()),
        (3 * 86_400.0, ("Savings Plan 0f3a ends in 3.0 d, and what it covers costs",)),
        (-1.0, ("Savings Plan 0f3a has ended, and what it covered costs",)),
    ],
)
def test_status_tells_of_a_plan_that_ends(ends_in_s: float, says: tuple[str, ...]) -> None:
    of = committing(ends_at_s=NOW_S + ends_in_s)

    found = overview(snapshot(of=of), None).needs_a_look

    assert len(found) == len(says)
    assert all(each.startswith(said) for each, said in zip(found, says, strict=True)), found
