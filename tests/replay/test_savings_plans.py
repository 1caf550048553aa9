"""What Savings Plans pay in a replay, with sums that can be worked out by hand."""

import pytest

from tests.replay.test_replay import EXACT, cluster, trace
from tests.wire.cluster_files import BESIDE
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Market
from tidegate.sim.replay.outcome import as_days, cost_usd
from tidegate.sim.replay.plans_paid import SAVED, UNUSED
from tidegate.sim.replay.run import Replayed, replay

HOUR_S = 3600
# g5.xlarge costs 1.0 on demand, and 0.6 by the plan. Its dates are not those of any history.
PLAN = """
savings_plans:
  - arn: arn:aws:savingsplans::123456789012:savingsplan/0f3a1b2c
    kind: compute
    usd_per_hour: {}
    discount_percent: 40
    starts_at: "2030-01-01T00:00:00Z"
    ends_at: "2031-01-01T00:00:00Z"
"""


def on(market: str = "on-demand", usd: float = 1.2, extra: str = "") -> Cluster:
    return cluster(market=market, more=PLAN.format(usd) + extra)


def played(of: Cluster, *jobs: str) -> Replayed:
    return replay(trace(*jobs), of, EXACT)


def parts(ended: Replayed) -> dict[str, float]:
    return dict(ended.outcome.by_pool)


def test_a_node_costs_the_plans_rate_and_what_nobody_uses_of_it_costs_as_well() -> None:
    ended = played(on(), f"0 {10 * HOUR_S} 1 1")

    (node,) = ended.world.gone
    assert node.ended_s is not None
    hours = (node.ended_s - node.launched_s) / HOUR_S
    assert cost_usd(node) == pytest.approx(hours * (1.0 + BESIDE))
    assert parts(ended)[SAVED] == pytest.approx(-hours * 0.4)
    # Of 1.2 a node uses 0.6; before its launch all of it idles.
    before_h = (node.ended_s - ended.world.runs[0].ready_s) / HOUR_S - hours
    assert parts(ended)[UNUSED] == pytest.approx(hours * 0.6 + before_h * 1.2, abs=0.01)
    total = hours * (1.2 + BESIDE) + before_h * 1.2
    assert ended.outcome.cost_usd == pytest.approx(total, abs=0.01)


def test_days_add_up_to_all_that_was_paid() -> None:
    ended = played(on(), f"0 {30 * HOUR_S} 1 1", f"{26 * HOUR_S} {10 * HOUR_S} 1 1")

    assert sum(usd for _, usd in as_days(ended.world)) == pytest.approx(ended.outcome.cost_usd)
    assert [day for day, _ in as_days(ended.world)] == [0, 1]


def test_the_plan_is_filled_before_spot_is_bought() -> None:
    jobs = [f"0 {HOUR_S} 1 1"] * 4

    ended = played(on("spot, on-demand"), *jobs)

    markets = sorted(each.offering.market.value for each in ended.world.gone)
    assert markets.count("on-demand") == 2, markets
    alone = replay(trace(*jobs), cluster(market="spot, on-demand"), EXACT)
    assert {each.offering.market for each in alone.world.gone} == {Market.SPOT}


def test_a_limit_in_money_counts_what_the_plan_pays_by_its_rate() -> None:
    # Two nodes at 0.6 and one at 1.0, each with its disk, and no room for another one.
    extra = f"limits: {{usd_per_hour: {2.2 + 3 * BESIDE + 0.01}}}\n"

    ended = played(on(extra=extra), *[f"{600 * n} {10 * HOUR_S} 1 1" for n in range(4)])

    assert ended.outcome.most_nodes == 3
    assert ended.outcome.breaches == 0
    assert ended.outcome.most_usd_per_hour == pytest.approx(2.2 + 3 * BESIDE)
