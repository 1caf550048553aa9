"""A Savings Plan in a world: nodes use it, the ledger notes it, and the checks see both."""

from dataclasses import replace

import pytest

from tests.make import T4, cluster, pool
from tests.sim.test_checks import witness
from tidegate.core.model.ec2 import Market
from tidegate.core.model.savings_plans import Committed, PlanKind, PlanRate, SavingsPlan
from tidegate.core.model.slurm import Shape
from tidegate.service.control import Looked
from tidegate.sim.checks.money import PlansPayWhatRuns, PricesFollowEc2
from tidegate.sim.checks.witness import Broken
from tidegate.sim.clock import START_S
from tidegate.sim.slurm_parts import Submit
from tidegate.sim.world import SimWorld

ARN = "arn:aws:savingsplans::123456789012:savingsplan/0f3a"
# A T4 costs 0.526 on demand, 0.2 on spot and 0.3 by the plan, which pays one and a half of it.
PLAN = SavingsPlan(
    ARN, PlanKind.COMPUTE, 0.45, {T4.name: PlanRate(0.3, 0.526)}, START_S - 60, START_S + 1e6
)


def played() -> tuple[SimWorld, list[Looked]]:
    """Three jobs for 50 minutes: one and a half nodes of the plan, and one on spot."""
    looks: list[Looked] = []
    of = replace(cluster(pool(types=(T4,))), savings_plans=(PLAN,))
    world = SimWorld(of, lambda instance: 60.0, looks.append)
    for _ in range(3):
        world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    world.step(900.0)
    return world, [each for each in looks if each.rounds]


def test_nodes_use_the_plan_and_the_ledger_says_how_much_it_pays() -> None:
    world, _ = played()

    nodes = [each for each in world.ledger.all_nodes.values() if each.ended_at_s is None]
    assert sorted(each.offering.market for each in nodes) == [
        *(Market.ON_DEMAND, Market.SPOT, Market.SPOT)
    ]
    assert [each.committed for each in nodes if each.committed] == [Committed(ARN, 0.3)]
    assert sorted(each.usd_per_hour for each in nodes) == [0.2, 0.2, 0.3]


def test_the_checks_see_a_plan_that_pays_too_much_or_too_little() -> None:
    world, looks = played()
    paying, pricing = PlansPayWhatRuns(witness(world)), PricesFollowEc2(witness(world))
    last = looks[-1]
    paying.looked(last)
    pricing.looked(last)
    name = next(n for n, each in world.ledger.all_nodes.items() if each.committed)
    held = world.ledger.all_nodes[name]

    world.ledger.all_nodes[name] = replace(held, committed=Committed(ARN, 0.6))
    with pytest.raises(Broken, match=r"pays 0\.6000 USD per hour of 0\.4500"):
        paying.looked(last)
    world.ledger.all_nodes[name] = replace(held, usd_per_hour=0.526, committed=None)
    with pytest.raises(Broken, match=r"pays 0\.0000 USD per hour, could 0\.3000"):
        paying.looked(last)
    world.actors.extend(["planner", "planner"])  # of two that overlap each may note another node
    paying.begun()
    paying.looked(last)
    world.actors.pop()
    paying.looked(last)
    world.actors.clear()
    world.ledger.all_nodes[name] = replace(held, usd_per_hour=0.526)
    with pytest.raises(Broken, match=r"the ledger holds 0\.526"):
        pricing.looked(last)
