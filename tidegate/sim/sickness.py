"""Software that finds nodes unhealthy: checks that err, epilogs and tasks that fail."""

from tidegate.core.model.slurm import SetBy
from tidegate.sim.chaos import Chaos
from tidegate.sim.draw import stream
from tidegate.sim.options import DRAINED_BY_SLURM, Happening

CHECK = "NHC: check_hw_eth: eth0 is not found"


def fall_ill(chaos: Chaos, it: Happening) -> None:
    """A check that errs drains all nodes, and those that join for a while; else it is one node."""
    slurm, clock = chaos.world.slurm, chaos.world.clock
    if it.what == "check":
        for name in list(slurm.nodes):
            _check(chaos, name)
        until_s = clock.now_s() + it.for_s
        slurm.on_join.append(
            lambda node: _check(chaos, node.name) if clock.now_s() <= until_s else None
        )
        return
    names = sorted(n for n, node in slurm.nodes.items() if not (node.is_down or node.is_drain))
    if not names or not slurm.is_up:
        return
    name = stream(chaos.options.seed, f"sick at {it.at_s}").choice(names)
    chaos.note("sick")
    chaos.sickened.add(name)
    if it.what in DRAINED_BY_SLURM:
        slurm.drains_itself(name, it.what)
    else:
        slurm.is_drained_by(SetBy.ROOT, name, it.what)


def _check(chaos: Chaos, name: str) -> None:
    """One run of the check, which leaves a node alone that is drained for another reason."""
    slurm = chaos.world.slurm
    node = slurm.nodes[name]
    is_others = node.is_down or (node.is_drain and bool(node.reason))
    if chaos.is_over or is_others or not slurm.is_up:
        return
    chaos.note("sick")
    chaos.sickened.add(name)
    slurm.is_drained_by(SetBy.ROOT, name, CHECK)
