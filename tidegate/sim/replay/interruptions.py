"""Interruptions of a replay: a storm takes half of the nodes of a pool's spot offering."""

from random import Random
from typing import TYPE_CHECKING

from tidegate.core.model.ec2 import Market, Offering

if TYPE_CHECKING:
    from tidegate.sim.replay.world import World

# Of a spot pool's nodes, the part that one interruption takes; they come together.
TAKEN_SHARE = 0.5

# From the notice to the look that it brings.
NOTICED_S = 2.0


def begin_interruptions(world: "World") -> None:
    """From now on until the end: for each offering so often that its nodes meet their hazard."""
    chance = Random(f"interruptions {world.setting.seed}")
    for pool in world.cluster.pools:
        for _, offering in pool.offerings():
            known = world.cluster.hazard_per_hour(offering)
            rate = world.setting.hazards.get(offering, known) / TAKEN_SHARE
            if offering.market is Market.SPOT and rate > 0:
                _plan(world, chance, pool.name, offering, rate)


def _plan(
    world: "World", chance: Random, pool: str, offering: Offering, rate_per_hour: float
) -> None:
    def happens() -> None:
        _interrupt(world, chance, pool, offering)
        _plan(world, chance, pool, offering, rate_per_hour)

    world.at(world.now_s + chance.expovariate(rate_per_hour) * 3600.0, happens)


def _interrupt(world: "World", chance: Random, pool: str, offering: Offering) -> None:
    """A notice for about half of the nodes of a pool's offering."""
    for machine in list(world.machines.values()):
        is_hit = machine.pool == pool and machine.offering == offering
        if is_hit and machine.reclaim_s is None and chance.random() < TAKEN_SHARE:
            machine.reclaim_s = world.now_s + world.cluster.timings.spot_notice_s
            world.num_interruptions += 1
            world.at(machine.reclaim_s, lambda machine=machine: world.reclaim(machine))  # type: ignore[misc]
            world.look(world.now_s + NOTICED_S)
