"""What becomes of a node that Slurm sends off to reboot: of a reset of its GPUs, which the node
tries before where its reason asks for it, and of the reboot.

Some do not pass their health gate, some hang as they shut down or start, also when nothing else
fails any more; some are sick again.
"""

from collections.abc import Callable

from tidegate.core.model.ec2 import SHUT_DOWN
from tidegate.core.model.events import GpuReset
from tidegate.core.model.finding import is_reset
from tidegate.core.model.slurm import SetBy
from tidegate.sim.chaos import NEVER_S, Chaos
from tidegate.sim.draw import stream

# A node that was mended in vain.
RELAPSE_S, RELAPSED = 20.0, "tidegate-health: ecc: 2 uncorrected ECC errors"
# As `gpu-reset.sh` has it: how long nvidia-smi may take, and systemd's bound on all of it.
RESET_LIMIT_S, ALL_OF_IT_S = 120.0, 500.0
# On EC2 it mostly ends with an error, at once.
RESETS = ("works", "works", "relapses", "refused", "refused", "hangs", "all hangs", "sick")


def repairs(chaos: Chaos) -> Callable[[str], float]:
    """Seconds from Slurm's word to registration, of each node."""
    chance, resets = stream(chaos.options.seed, "reboots"), stream(chaos.options.seed, "resets")
    world = chaos.world

    def repair_s(name: str) -> float:
        node, took_s = world.slurm.nodes[name], 0.0
        if is_reset(node.reason):
            took_s, fate = resets.uniform(5.0, 60.0), resets.choice(RESETS)
            if fate in ("works", "relapses"):
                _told(chaos, GpuReset(name, took_s), took_s)
                _mended(chaos, name, took_s, relapses=fate == "relapses")
                return took_s
            took_s = {"refused": 5.0, "hangs": RESET_LIMIT_S, "all hangs": ALL_OF_IT_S}.get(
                fate, took_s
            )
            if fate != "all hangs":
                _told(chaos, GpuReset(name, failed=fate), took_s)
        usual_s = min(chance.lognormvariate(4.2, 0.4), world.cluster.timings.boot_bound_s / 2)
        fate = chance.choice(("well", "relapses", "relapses", "sick", "hangs"))
        if fate == "sick":
            off_s = world.clock.now_s() + took_s + usual_s
            world.at(off_s, lambda: world.compute.end(name, SHUT_DOWN))
        if fate not in ("well", "relapses"):
            return NEVER_S
        _mended(chaos, name, took_s + usual_s, relapses=fate == "relapses")
        return took_s + usual_s

    return repair_s


def _told(chaos: Chaos, news: GpuReset, after_s: float) -> None:
    world = chaos.world
    world.at(world.clock.now_s() + after_s, lambda: world.announce(news))


def _mended(chaos: Chaos, name: str, after_s: float, *, relapses: bool) -> None:
    """It passes its gate then, and maybe what it was sent off for is found again."""
    at_s = chaos.world.clock.now_s() + after_s
    chaos.world.at(at_s, lambda: chaos.unwell.discard(name))
    if relapses:
        chaos.world.at(at_s + RELAPSE_S, lambda: _relapse(chaos, name))


def _relapse(chaos: Chaos, name: str) -> None:
    slurm = chaos.world.slurm
    node = slurm.nodes.get(name)
    if node and slurm.is_up and not (chaos.is_over or node.is_down or node.is_drain):
        chaos.falls_ill(name)
        slurm.is_drained_by(SetBy.ROOT, name, RELAPSED)
