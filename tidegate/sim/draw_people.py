"""What people do in a drawn world beside submitting jobs."""

from random import Random

from tidegate.sim.options import Happening


def suspenders(chance: Random, safety_s: float) -> tuple[Happening, ...]:
    """Now and then somebody suspends a running job for a while."""
    at_s, for_s = chance.uniform(60.0, safety_s), chance.uniform(30.0, 400.0)
    return (Happening("suspend", at_s, for_s),) if chance.random() < 0.08 else ()


def reservers(chance: Random, safety_s: float) -> tuple[Happening, ...]:
    """Now and then a node is reserved for somebody, or somebody does not want it."""
    at_s, for_s = chance.uniform(60.0, safety_s), chance.uniform(60.0, 500.0)
    what = chance.choice(("own", "own later", "MAINT", "MAINT later", "later", "MAINT ALL_NODES"))
    luck = chance.random()
    if luck < 0.05:
        return (Happening("exclude", at_s, for_s),)
    return (Happening("reserve", at_s, for_s, what),) if luck < 0.15 else ()


def holders(chance: Random, safety_s: float) -> tuple[Happening, ...]:
    """In some worlds a person holds a node to look into it."""
    at_s, for_s = chance.uniform(60.0, safety_s), chance.uniform(30.0, 600.0)
    what = chance.choice(("", "", "let go", "resume"))
    return (Happening("hold", at_s, for_s, what),) if chance.random() < 0.12 else ()


def operators(chance: Random, safety_s: float) -> tuple[Happening, ...]:
    """Now and then a person drains a node for a while, sometimes just as an order is on its way
    to it, wants a job on one node and no other, or the cluster stopped or kept up.
    """
    drain = Happening("drain", chance.uniform(60.0, safety_s), chance.uniform(30.0, 400.0))
    pin = Happening("pin", chance.uniform(60.0, safety_s), chance.uniform(30.0, 400.0))
    meddle = Happening("meddle", 0.0, chance.uniform(30.0, 400.0))
    luck = chance.random()
    overrides = ("stop", "stop", "stop wait", "stop requeue", "stop stop", "keep-up")
    override = Happening(
        "override",
        chance.uniform(30.0, safety_s),
        chance.uniform(60.0, 700.0),
        chance.choice(overrides),
    )
    kinds = {(0.0, 0.15): drain, (0.15, 0.25): pin, (0.25, 0.35): meddle, (0.35, 0.47): override}
    return tuple(each for (low, high), each in kinds.items() if low <= luck < high)
