"""What a node costs when EC2 bills it otherwise than it was bought."""

from dataclasses import replace

import pytest

from tests.core.reading import orders
from tests.core.test_markets import RESERVED, after_its_reservation, reserving
from tests.make import NOW_S, ZONE, digest, instance, node, record, snapshot
from tidegate.core.explain.overview import overview
from tidegate.core.fleet.members import members
from tidegate.core.fleet.node_price import usd_per_hour
from tidegate.core.model.ec2 import InstanceState, Market, Offering
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan, Reprice
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

ON_DEMAND = Offering("g4dn.xlarge", ZONE, Market.ON_DEMAND)
USD = reserving().prices[ON_DEMAND]
IN_IT = NodeRecord("i-1", "l-0", "t4", RESERVED, NOW_S - 500, 0.0, Phase.JOINED)
OUT_OF_IT = replace(IN_IT, usd_per_hour=USD, priced_at_s=NOW_S - 60)


def prices(made: Plan) -> dict[str, float]:
    return {a.instance_id: a.usd_per_hour for a in made.actions if isinstance(a, Reprice)}


def seen(known: NodeRecord, billed_as: Offering | None) -> Snapshot:
    """A busy node; `billed_as` None: this Describe left it out."""
    shown = [instance("i-1", billed_as)] if billed_as else []
    there = node("i-1", state="ALLOCATED", gpus_alloc=1)
    return snapshot([], [there], of=reserving(), instances=shown, records=[known])


def test_a_node_that_left_its_reservation_costs_what_on_demand_costs_from_now_on() -> None:
    (found,) = (a for a in plan(after_its_reservation()).actions if isinstance(a, Reprice))

    assert found == Reprice("i-1", USD, "EC2 bills it as on-demand now, 0.526 USD per hour")


@pytest.mark.parametrize(
    ("known", "billed_as", "usd"),
    [
        (IN_IT, ON_DEMAND, USD),
        (OUT_OF_IT, RESERVED, 0.0),
        (record(on=ON_DEMAND), RESERVED, 0.0),
        (replace(record(on=ON_DEMAND), usd_per_hour=0.0, priced_at_s=NOW_S - 60), ON_DEMAND, USD),
    ],
)
def test_the_price_follows_ec2_in_both_directions(
    known: NodeRecord, billed_as: Offering, usd: float
) -> None:
    assert prices(plan(seen(known, billed_as))) == {"i-1": usd}


@pytest.mark.parametrize(
    ("known", "billed_as"),
    [
        (IN_IT, RESERVED),
        (OUT_OF_IT, ON_DEMAND),
        (OUT_OF_IT, None),  # one Describe that leaves it out says nothing of its price
        (IN_IT, None),
        (record(on=ON_DEMAND), ON_DEMAND),
        (replace(record(on=ON_DEMAND), usd_per_hour=0.4), ON_DEMAND),  # the list has changed since
        (replace(OUT_OF_IT, usd_per_hour=0.0, ended_at_s=NOW_S - 1), ON_DEMAND),
    ],
)
def test_a_price_that_holds_is_not_noted_again(
    known: NodeRecord, billed_as: Offering | None
) -> None:
    assert prices(plan(seen(known, billed_as))) == {}


def test_a_node_that_one_describe_leaves_out_counts_with_the_price_that_was_noted() -> None:
    (member,) = members(seen(OUT_OF_IT, None))

    assert usd_per_hour(seen(OUT_OF_IT, None), member) == USD


@pytest.mark.parametrize(
    ("known", "billed_as", "usd"),
    [(IN_IT, ON_DEMAND, USD), (OUT_OF_IT, RESERVED, 0.0), (OUT_OF_IT, None, USD)],
)
def test_status_shows_the_price_that_is_decided_by(
    known: NodeRecord, billed_as: Offering | None, usd: float
) -> None:
    found = overview(seen(known, billed_as), None)

    assert (found.usd_per_hour, found.pools[0].usd_per_hour) == (usd, usd)


def test_what_ends_in_this_plan_is_counted_at_its_end_alone() -> None:
    released = replace(IN_IT, phase=Phase.RELEASED)
    ending = replace(seen(released, ON_DEMAND), digest=digest())
    (alive,) = ending.instances
    gone = replace(
        seen(IN_IT, ON_DEMAND), instances=(replace(alive, state=InstanceState.TERMINATED),)
    )

    assert prices(plan(ending)) == prices(plan(gone)) == {}
    assert prices(plan(replace(ending, digest_age_s=9999.0))) == {}


def test_prices_change_also_while_the_head_is_silent() -> None:
    silent = replace(seen(IN_IT, ON_DEMAND), digest_age_s=9999.0)

    assert prices(plan(silent)) == {"i-1": USD}


def test_an_idle_node_still_goes_after_its_price_was_noted() -> None:
    later = replace(after_its_reservation(), nodes=(OUT_OF_IT,))

    assert [order.names for order in orders(plan(later), OrderKind.RELEASE)] == [("i-1",)]
