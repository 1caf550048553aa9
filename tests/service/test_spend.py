"""What nodes cost is counted when they end, once, whatever is repeated or lost in between."""

from dataclasses import replace

import pytest

from tests.make import cluster, job
from tests.service.conftest import World
from tidegate.core.ec2 import ACCOUNT_TAG, JOB_TAG, USER_TAG
from tidegate.core.errors import Throttled
from tidegate.core.pool import Budget
from tidegate.core.spend import day_of
from tidegate.sim.faults import no_faults

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


def test_what_was_spent_stops_the_next_launch(world: World) -> None:
    world.of = replace(cluster(), budgets={"account nlp": Budget(usd_per_day=0.1)})
    bought(world)
    world.clock.advance(HOUR_S)
    world.report()
    world.look()

    world.report([job(8, account="nlp"), job(9, account="cv")])
    looked = world.look()

    unmet = {each.job_id: each.reason for each in looked.rounds[-1].plan.unmet}
    assert unmet.keys() == {"8"}
    assert unmet["8"].startswith("the budget of account nlp, 0.10 USD per day, is spent")
