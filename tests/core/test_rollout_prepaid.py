"""What is paid for has templates of its own: nothing is made from one that was given up."""

from dataclasses import replace

import pytest

from tests.core.reading import launches
from tests.core.test_drift import OLD
from tests.core.test_rollout import BAD, TENTH, world
from tests.make import NOW_S, T4, ZONE, job
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.ec2 import Market
from tidegate.core.model.plan import Plan
from tidegate.core.model.rollout import Rollout
from tidegate.core.model.why import Why
from tidegate.core.planner import plan

ALL = (Market.RESERVED, Market.CAPACITY_BLOCK, Market.ON_DEMAND)


def planned(
    rollout: Rollout, paid: Market = Market.RESERVED, markets: tuple[Market, ...] = ALL
) -> Plan:
    """A job waits, and there is a free place that is paid for."""
    held = Reservation("cr-1", T4.name, ZONE, 1, paid, NOW_S - 3600, NOW_S + 86400)
    seen = world(rollout, jobs=[job(time_limit_s=3600.0)])
    pools = tuple(replace(each, markets=markets) for each in seen.cluster.pools)
    return plan(replace(seen, cluster=replace(seen.cluster, pools=pools, reservations=(held,))))


@pytest.mark.parametrize("paid", [Market.RESERVED, Market.CAPACITY_BLOCK])
def test_once_a_template_is_given_up_nothing_is_made_from_it_where_capacity_is_paid_for(
    paid: Market,
) -> None:
    """EC2 puts what is bought on demand into an open reservation by itself."""
    (before,) = launches(planned(TENTH, paid))
    (after,) = launches(planned(BAD, paid))

    assert before.offerings[0].market is paid
    assert (after.offerings[0].market, after.template) == (Market.ON_DEMAND, OLD)


def test_a_job_that_could_run_nowhere_else_hears_why_and_what_somebody_may_do() -> None:
    made = planned(BAD, markets=(Market.RESERVED,))

    assert launches(made) == []
    (unmet,) = made.unmet
    (why,) = (each for each in unmet.why_nots if each.kind is Why.FAILING)
    assert why.sentence == (
        "pool t4: what is paid for is made from template new-2 alone, which is given up"
    )
    assert why.remedy.endswith("have it tried once more: tidegate retry t4")
