"""What a limit of USD per hour is held to while the market moves."""

from dataclasses import replace

import pytest

from tests.make import A10G, T4, ZONE, at_estimates, cluster, pool
from tidegate.core.model.cluster import Limits, Reservation
from tidegate.core.model.ec2 import (
    LAUNCH_TAG,
    POOL_TAG,
    FleetRequest,
    Instance,
    InstanceType,
    Market,
    Offering,
    Override,
)
from tidegate.core.model.ledger import Launch, LaunchRecord
from tidegate.core.model.market import Quote, SeenMarket
from tidegate.core.model.savings_plans import PlanKind, PlanRate, SavingsPlan
from tidegate.sim.chaos import PAUSE_MAX_S, Chaos
from tidegate.sim.checks.limits import LimitsHold
from tidegate.sim.checks.witness import Broken, Witness
from tidegate.sim.clock import START_S
from tidegate.sim.draw import draw
from tidegate.sim.world import SimWorld

LIMIT = Limits(usd_per_hour=1.0)


@pytest.mark.parametrize(("second_usd", "holds"), [(0.75, True), (0.85, False)])
@pytest.mark.parametrize("market", [Market.SPOT, Market.RESERVED])
def test_prices_count_that_were_known_together_as_the_last_was_decided(
    market: Market, second_usd: float, holds: bool
) -> None:
    """The first has become cheaper by then: no moment knew its old price beside the second."""
    world = _world()
    _ask(world, t4=0.5, a10g=1.2)
    _launch(world, T4, Market.SPOT)
    _ask(world, t4=0.2, a10g=second_usd)
    newest = _launch(world, A10G, Market.SPOT)
    if market is Market.RESERVED:
        _ask(world, t4=5.0, a10g=5.0)
        newest = _launch(world, T4, Market.RESERVED)

    check = LimitsHold(Witness(world, Chaos(draw(0), world)))

    if holds:
        check.launched(newest)
    else:
        with pytest.raises(Broken, match=r"spends 1\.050 USD per hour, its limit is 1\.00"):
            check.launched(newest)


@pytest.mark.parametrize(("first_usd", "then_usd", "holds"), [(1.2, 0.9, True), (0.9, 1.2, False)])
def test_a_planner_that_finishes_a_launch_decides_at_the_prices_that_it_has_read(
    first_usd: float, then_usd: float, holds: bool
) -> None:
    world = _world()
    _ask(world, t4=0.5, a10g=first_usd)
    one = _launch(world, A10G, Market.SPOT)
    _ask(world, t4=0.5, a10g=then_usd)
    seen = Witness(world, Chaos(draw(0), world))
    seen.viewed_s[seen.depth] = world.clock.now_s()

    if holds:
        LimitsHold(seen).launched(one)
    else:
        with pytest.raises(Broken, match=r"spends 1\.200 USD per hour"):
            LimitsHold(seen).launched(one)


@pytest.mark.parametrize(("first_usd", "holds"), [(0.9, True), (1.2, False)])
def test_a_launch_that_is_finished_while_nobody_says_a_price_counts_by_that_of_its_own(
    first_usd: float, holds: bool
) -> None:
    """The file guesses more than the limit."""
    world = _world()
    _ask(world, t4=0.5, a10g=first_usd)
    one = _launch(world, A10G, Market.SPOT)
    world.ledger.see_market(SeenMarket(spot=(), spot_at_s=world.clock.now_s()))
    world.clock.advance(PAUSE_MAX_S + 1.0)
    seen = Witness(world, Chaos(draw(0), world))
    seen.viewed_s[seen.depth] = world.clock.now_s()

    if holds:
        LimitsHold(seen).launched(one)
    else:
        with pytest.raises(Broken, match=r"spends 1\.\d+ USD per hour"):
            LimitsHold(seen).launched(one)


@pytest.mark.parametrize(
    ("usd", "ended_ago_s", "holds"),
    [(0.3, -9e5, True), (0.1, -9e5, False), (0.3, 10.0, True), (0.3, PAUSE_MAX_S + 60.0, False)],
)
def test_what_a_plan_pays_of_what_ran_counts_less_also_if_it_has_just_ended(
    usd: float, ended_ago_s: float, holds: bool
) -> None:
    """0.326 and 0.526 USD per hour where the plan pays for the first: the newest counts whole."""
    world = _world(Limits(usd_per_hour=0.9))
    made = replace(world.cluster, estimates={})
    _launch(world, T4, Market.RESERVED)
    _launch(world, T4, Market.ON_DEMAND)
    newest = _launch(world, T4, Market.ON_DEMAND)
    seen = Witness(world, Chaos(draw(0), world))
    seen.viewed_s[seen.depth] = now_s = world.clock.now_s()
    rates = {T4.name: PlanRate(0.3, 0.5)}
    held = SavingsPlan("arn:x/1", PlanKind.COMPUTE, usd, rates, 0.0, now_s - ended_ago_s)
    world.cluster = replace(made, savings_plans=(held,))

    if holds:
        LimitsHold(seen).launched(newest)
    else:
        with pytest.raises(Broken, match=r"spends (0\.985|1\.052) USD per hour"):
            LimitsHold(seen).launched(newest)


def _world(limits: Limits = LIMIT) -> SimWorld:
    held = Reservation("cr-1", T4.name, ZONE, 1, Market.RESERVED, START_S - 60, None)
    made = at_estimates(cluster(pool("any", (A10G, T4))))
    using = replace(made.pools[0], markets=(Market.RESERVED, *made.pools[0].markets))
    prices = {**made.prices, held.offering: 0.0}
    of = replace(made, pools=(using,), prices=prices, limits=limits, reservations=(held,))
    return SimWorld(of, lambda instance: 60.0)


def _ask(world: SimWorld, *, t4: float, a10g: float) -> None:
    """From now on; nothing that is decided later still knows older prices."""
    spot = (Quote(A10G.name, a10g, ZONE), Quote(T4.name, t4, ZONE))
    world.ledger.see_market(SeenMarket(spot=spot, spot_at_s=world.clock.now_s()))
    world.clock.advance(PAUSE_MAX_S + 1.0)


def _launch(world: SimWorld, kind: InstanceType, market: Market) -> Instance:
    launch_id = f"l-{len(world.compute.everything)}"
    override, offering = Override(kind.name, ZONE, "subnet", 0), Offering(kind.name, ZONE, market)
    tags = ((POOL_TAG, "any"), (LAUNCH_TAG, launch_id))
    asked = FleetRequest(launch_id, "lt", "1", market, 1, 1, (override,), tags)
    launch = Launch(launch_id, "any", (offering,), 1, 1, ("1",), 1.0, "", "it waits")
    now_s = world.clock.now_s()
    world.ledger.all_launches[launch_id] = LaunchRecord(launch, now_s, asked)
    world.compute.create_fleet(asked)
    world.clock.advance(1.0)
    return world.compute.live()[-1]
