"""What nodes cost is counted when they end, once, whatever is repeated or lost in between."""

from dataclasses import replace

import pytest

from tests.make import T4, ZONE, cluster, job, node, pool
from tests.service.conftest import World
from tidegate.core.model.cluster import Reservation, SpendingBudget
from tidegate.core.model.ec2 import (
    ACCOUNT_TAG,
    JOB_TAG,
    USER_TAG,
    Instance,
    InstanceState,
    Market,
    Offering,
)
from tidegate.core.model.errors import Throttled
from tidegate.core.offers.spend import charges, day_of, ended
from tidegate.sim.faults import no_faults
from tidegate.sim.prepaid import Prepaid

HOUR_S = 3600.0


def bought(world: World) -> str:
    world.report([job(7, account="nlp")])
    world.look()
    (one,) = world.compute.live()
    return one.instance_id


def counted(world: World) -> float:
    spent = world.ledger.all_spent.get((day_of(world.clock.now_s()).name, "account nlp"))
    return spent.usd if spent else 0.0


def test_a_launch_is_tagged_with_whose_it_is(world: World) -> None:
    bought(world)

    tags = dict(world.compute.requests[0].tags)
    assert (tags[ACCOUNT_TAG], tags[USER_TAG], tags[JOB_TAG]) == ("nlp", "ada", "7")


def test_a_node_that_ends_is_counted_to_the_second(world: World) -> None:
    bought(world)  # it never joins, and is given up after its boot bound
    world.clock.advance(HOUR_S)

    world.report()
    for _ in range(3):
        world.look()

    (record,) = world.ledger.all_nodes.values()
    assert record.ended_at_s == record.launched_at_s + HOUR_S
    assert counted(world) == pytest.approx(record.usd_per_hour)


def test_a_planner_that_dies_while_it_counts_counts_once(world: World) -> None:
    bought(world)
    world.clock.advance(HOUR_S)
    world.report()

    def dies(point: str) -> None:
        if point == "after charge":
            raise Throttled("no answer")

    world.break_with(dies)
    assert world.look().trouble
    world.break_with(no_faults)
    world.clock.advance(60)
    world.look()

    (record,) = world.ledger.all_nodes.values()
    assert counted(world) == pytest.approx(record.usd_per_hour)


def test_a_user_is_counted_who_has_a_budget_and_nobody_else(world: World) -> None:
    world.of = replace(cluster(), budgets={"user ada": SpendingBudget(usd_per_day=0.1)})
    world.report([job(7, account="nlp"), job(8, user="bob", gpus=0)])
    world.look()
    world.clock.advance(HOUR_S)
    world.report()
    world.look()

    users = {scope for _, scope in world.ledger.all_spent if scope.startswith("user ")}
    assert users == {"user ada"}

    world.report([job(9, account="cv"), job(10, user="bob")])
    looked = world.look()

    unmet = {each.job_id: each.reason for each in looked.rounds[-1].plan.unmet}
    assert unmet.keys() == {"9"}
    assert unmet["9"].startswith("the budget of user ada, 0.10 USD per day, is spent")


def test_what_was_spent_stops_the_next_launch(world: World) -> None:
    world.of = replace(cluster(), budgets={"account nlp": SpendingBudget(usd_per_day=0.1)})
    bought(world)
    world.clock.advance(HOUR_S)
    world.report()
    world.look()

    world.report([job(8, account="nlp"), job(9, account="cv")])
    looked = world.look()

    unmet = {each.job_id: each.reason for each in looked.rounds[-1].plan.unmet}
    assert unmet.keys() == {"8"}
    assert unmet["8"].startswith("the budget of account nlp, 0.10 USD per day, is spent")


RESERVED = Offering("g4dn.xlarge", ZONE, Market.RESERVED)
RESERVATION = Reservation("cr-1", "g4dn.xlarge", ZONE, 1, Market.RESERVED, 0.0, None)


def asked_of_a_reservation(world: World, held: Reservation = RESERVATION) -> Instance:
    of = cluster(pool(types=(T4,)))
    using = replace(of.pools[0], markets=(Market.RESERVED, *of.pools[0].markets))
    prices = {**of.prices, RESERVED: 0.0}
    world.of = replace(of, pools=(using,), reservations=(held,), prices=prices)
    bought(world)
    (one,) = world.compute.live()
    return one


def in_a_reservation(world: World) -> Instance:
    """A node that costs nothing, until EC2 bills it as on demand."""
    world.compute.prepaid = Prepaid((RESERVATION,))
    one = asked_of_a_reservation(world)
    assert one.offering == RESERVED
    return one


def stays_busy(world: World, name: str) -> None:
    """Half an hour later, its job still runs."""
    world.clock.advance(HOUR_S / 2)
    running = job(7, account="nlp", on=[name])
    world.report([running], [node(name, state="ALLOCATED", gpus_alloc=1)])


def ends(world: World, one: Instance) -> None:
    """EC2 ends it, and the looks after that see it."""
    world.compute.end(one.instance_id)
    for _ in range(3):
        world.report()
        world.look()


def leaves_its_reservation(world: World) -> Instance:
    one = in_a_reservation(world)
    stays_busy(world, one.instance_id)
    world.look()
    world.compute.end_reservation(RESERVATION)
    return one


def test_what_a_node_costs_after_its_reservation_is_spent(world: World) -> None:
    one = leaves_its_reservation(world)
    world.look()
    stays_busy(world, one.instance_id)
    usd = world.of.prices[replace(RESERVED, market=Market.ON_DEMAND)]

    world.look()
    (living,) = world.ledger.all_nodes.values()
    alone = charges(living, world.clock.now_s())
    ends(world, one)

    assert [each.usd for each in alone] == pytest.approx([usd / 2] * len(alone))
    assert alone
    assert counted(world) == pytest.approx(usd / 2)


def test_what_ec2_sold_on_demand_from_the_first_is_spent_from_its_launch_on(world: World) -> None:
    """The answer to CreateFleet does not tell; the next look does. Since the template allows
    nothing but places of a reservation, only a launch of the version before can come so.
    """
    one = in_a_reservation(world)
    on_demand = replace(RESERVED, market=Market.ON_DEMAND)
    world.compute.put(replace(one, offering=on_demand))
    usd = world.of.prices[on_demand]
    world.clock.advance(HOUR_S / 10)
    world.look()
    (living,) = world.ledger.all_nodes.values()
    alone = charges(living, world.clock.now_s())

    stays_busy(world, one.instance_id)
    world.look()
    ends(world, one)

    assert [each.usd for each in alone] == pytest.approx([usd / 10] * len(alone))
    assert alone
    assert counted(world) == pytest.approx(usd * 0.6)


def test_a_reservation_that_ends_while_its_node_boots_has_paid_until_then(world: World) -> None:
    held = replace(RESERVATION, ends_at_s=world.clock.now_s() + HOUR_S / 20)
    world.compute.prepaid = Prepaid((held,))
    one = asked_of_a_reservation(world, held)
    world.clock.advance(HOUR_S / 20)
    world.compute.end_reservation(held)
    world.clock.advance(HOUR_S / 20)

    world.look()

    (living,) = world.ledger.all_nodes.values()
    usd = world.of.prices[replace(one.offering, market=Market.ON_DEMAND)] / 20
    alone = charges(living, world.clock.now_s())
    assert [each.usd for each in alone] == pytest.approx([usd] * len(alone))
    assert alone


def test_a_reservation_that_ends_while_a_look_is_made_has_paid_until_then(world: World) -> None:
    """Describe answers after the look has asked for the time."""
    held = replace(RESERVATION, ends_at_s=world.clock.now_s() + HOUR_S / 20)
    world.compute.prepaid = Prepaid((held,))
    asked_of_a_reservation(world, held)
    world.clock.advance(HOUR_S / 20 - 2.0)

    def ends_now(point: str) -> None:
        if point == "before instances" and world.compute.prepaid.held:
            world.clock.advance(5.0)
            world.compute.end_reservation(held)

    world.break_with(ends_now)
    world.look()

    (living,) = world.ledger.all_nodes.values()
    assert living.priced_at_s == held.ends_at_s


def test_a_node_that_a_slow_look_ends_costs_until_it_was_ended(world: World) -> None:
    """What its seconds cost while the look waited is on the bill."""
    name = bought(world)
    world.clock.advance(HOUR_S)

    def waits(point: str) -> None:
        if point == "before terminate":
            world.clock.advance(HOUR_S)

    world.break_with(waits)
    world.report()
    world.look()

    record = world.ledger.all_nodes[name]
    assert record.ended_at_s == record.launched_at_s + 2 * HOUR_S
    assert counted(world) == pytest.approx(2 * record.usd_per_hour)


@pytest.mark.parametrize("dies_at", ["", "after terminate"])
def test_what_outlived_its_reclaim_costs_until_it_ends_whoever_dies(
    world: World, dies_at: str
) -> None:
    """Maintenance that had begun when AWS announced it ends nothing by itself."""
    name = bought(world)
    world.ledger.interrupt_nodes({name: world.clock.now_s() + 60.0})
    world.clock.advance(HOUR_S)

    def dies(point: str) -> None:
        if point == dies_at:
            raise Throttled("no answer")

    world.break_with(dies)
    world.report()
    world.look()
    world.break_with(no_faults)
    assert not world.compute.live()
    world.report()
    world.look()

    usd = world.ledger.all_nodes[name].usd_per_hour
    assert counted(world) == pytest.approx(usd)


def test_a_node_that_ec2_takes_into_a_reservation_costs_nothing_from_then_on(world: World) -> None:
    one = leaves_its_reservation(world)
    world.look()
    stays_busy(world, one.instance_id)
    world.compute.put(replace(one, offering=RESERVED, state=InstanceState.RUNNING))
    world.look()
    usd = world.of.prices[replace(RESERVED, market=Market.ON_DEMAND)]

    stays_busy(world, one.instance_id)
    world.look()

    (living,) = world.ledger.all_nodes.values()
    assert charges(living, world.clock.now_s()) == ()
    assert counted(world) == pytest.approx(usd / 2)


@pytest.mark.parametrize("dies_at", ["after commit", "before charge", "after charge"])
def test_a_planner_that_dies_while_it_notes_a_price_counts_once(world: World, dies_at: str) -> None:
    one = leaves_its_reservation(world)

    def dies(point: str) -> None:
        if point == dies_at:
            raise Throttled("no answer")

    world.break_with(dies)
    assert world.look().trouble
    world.break_with(no_faults)
    world.look()
    usd = world.of.prices[replace(RESERVED, market=Market.ON_DEMAND)]
    stays_busy(world, one.instance_id)
    world.compute.end(one.instance_id)
    world.report()
    world.look()

    assert counted(world) == pytest.approx(usd / 2)


def test_a_slow_planner_that_ends_a_node_does_not_count_it_by_the_price_before(
    world: World,
) -> None:
    """It is counted by the next, from the record that holds now."""
    one = leaves_its_reservation(world)
    slow = world.ledger.view()
    world.look()
    stays_busy(world, one.instance_id)

    world.compute.end(one.instance_id)
    with pytest.raises(Throttled):
        world.ledger.charge([ended(slow.nodes[0], world.clock.now_s())])
    world.report()
    world.look()

    usd = world.of.prices[replace(RESERVED, market=Market.ON_DEMAND)]
    assert counted(world) == pytest.approx(usd / 2)
