"""How many nodes a check that errs may cost a pool."""

import pytest

from tests.make import NOW_S, T4, cluster, offering, pool
from tests.sim.test_checks import witness
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.finding import Finding
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.slurm import SetBy, Shape
from tidegate.sim.checks.sickness import LiarsCostTheirShare
from tidegate.sim.checks.witness import Broken
from tidegate.sim.sickness import CHECK
from tidegate.sim.slurm_parts import Submit
from tidegate.sim.world import SimWorld


@pytest.mark.parametrize(
    ("found_by", "is_too_many"),
    [("", True), ("NHC: check_hw_eth", True), ("tidegate-health: xid", False)],
)
def test_a_node_that_another_check_had_condemned_goes_by_that_ones_word(
    found_by: str, is_too_many: bool
) -> None:
    """Of three nodes it may cost two."""
    world = SimWorld(cluster(pool(types=(T4,))), lambda instance: 60.0)
    for _ in range(3):
        world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    world.step(240.0)
    names = tuple(sorted(world.slurm.nodes))
    seen = witness(world)
    check = LiarsCostTheirShare(seen)
    for name in names:
        world.slurm.is_drained_by(SetBy.ROOT, name, CHECK)
        seen.chaos.sickened.add(name)
    check.passed(1.0)
    if found_by:
        found = Finding(names[0], found_by, offering(), NOW_S, 3, 3, "one-1", "")
        world.ledger.all_pool_history["t4"] = PoolHistory("t4", findings=(found,))
    text = str(DrainReason(DrainCode.UNHEALTHY, f"found unhealthy: {CHECK}"))
    until_s = world.clock.now_s() + 60
    order = Order("p-1-o0", OrderKind.RELEASE, names, until_s, (), text)
    world.in_hand.append(((order,), 0.0))

    if is_too_many:
        with pytest.raises(Broken, match="the 3th of pool t4"):
            check.commanded("delete", names)
    else:
        check.commanded("delete", names)
