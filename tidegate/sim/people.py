"""What people do by hand to single jobs and nodes while a world runs."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tidegate.core.fleet.holds import hold_reason
from tidegate.core.model.drain_reason import OPEN, DrainCode, code_of
from tidegate.core.model.slurm import NodeReservation, SetBy, Shape
from tidegate.sim.chaos import Chaos
from tidegate.sim.draw import stream
from tidegate.sim.options import Happening
from tidegate.sim.slurm_parts import SimNode, Submit

HELD_FROM_S = 120.0  # who gives up a job on one node late holds it back as well
RESERVED = "lab"
HOLDS = "held by eve: a fan (the left one)"
LATER_S = 150.0
# Flags of a reservation that a happening may name.
WORDS = ("MAINT", "ALL_NODES")
AGAIN_S = 20.0  # until somebody who found nothing to do, or no slurmctld, tries again


@dataclass(slots=True)
class People:
    """Each method is a happening that the world's options name."""

    chaos: Chaos

    def suspend(self, happening: Happening) -> None:
        """A running job makes room for a while (`scontrol suspend`)."""
        slurm, chance = self.chaos.world.slurm, stream(self.chaos.options.seed, "whose job")
        running = [job for job in slurm.table.active.values() if job.state == "RUNNING"]
        # Of a heterogeneous job Slurm suspends all components; one is enough for this world.
        running = [job for job in running if not job.het_job_id]
        if not running and not self.chaos.is_over:
            self._after(AGAIN_S, lambda: self.suspend(happening))
        elif running and slurm.is_up:
            job_id = chance.choice(running).job_id
            slurm.suspend(job_id)
            self._after(happening.for_s, lambda: self._while_up(slurm.resume, job_id))

    def pin(self, happening: Happening) -> None:
        """A job for one busy node (-w), which its user gives up after a while."""
        slurm = self.chaos.world.slurm
        busy = [node for node in slurm.nodes.values() if node.jobs and node.gpus]
        if not busy and not self.chaos.is_over:
            self._after(20.0, lambda: self.pin(happening))
        elif busy and slurm.is_up:
            node = stream(self.chaos.options.seed, "user's choice").choice(busy)
            shape = Shape(node.gpus, node.gpu_type, 1, 1_000)
            asked = Submit(
                "eve",
                shape,
                30.0,
                node_name=node.name,
                constraint=node.features[0],
                is_held=happening.for_s > HELD_FROM_S,
            )
            job_id = slurm.submit(asked)
            self._after(happening.for_s, lambda: self._while_up(slurm.cancel, job_id))

    def reserve(self, happening: Happening) -> None:
        """Somebody keeps a node for himself for a while, or all of them; begun now or later."""
        slurm, what = self.chaos.world.slurm, happening.what
        open_nodes = [n for n in slurm.nodes.values() if not (n.is_drain or n.is_down)]
        if not (open_nodes and slurm.is_up):
            if not self.chaos.is_over:
                self._after(AGAIN_S, lambda: self.reserve(happening))
            return
        node = stream(self.chaos.options.seed, "whose node").choice(open_nodes)
        self.chaos.touched.add(node.name)
        starts_s = self.chaos.world.head_clock.now_s() + (LATER_S if "later" in what else 0.0)
        flags = ("SPEC_NODES", *(word for word in WORDS if word in what))
        made = NodeReservation(RESERVED, (node.name,), starts_s, starts_s + happening.for_s, flags)
        slurm.reserve(replace(made, users=("bob",)))
        if "own" in what:
            job_id = slurm.submit(replace(_for_one(node), user="bob", reservation=RESERVED))
            self._after(happening.for_s, lambda: self._while_up(slurm.cancel, job_id))

    def exclude(self, happening: Happening) -> None:
        """A job that would fit a node which is there, and does not want it (`-x`)."""
        slurm = self.chaos.world.slurm
        nodes = [node for node in slurm.nodes.values() if not node.is_down and node.gpus]
        if not nodes and not self.chaos.is_over:
            self._after(AGAIN_S, lambda: self.exclude(happening))
        elif nodes and slurm.is_up:
            node = stream(self.chaos.options.seed, "not this one").choice(nodes)
            job_id = slurm.submit(replace(_for_one(node), excluded=(node.name,)))
            self._after(happening.for_s, lambda: self._while_up(slurm.cancel, job_id))

    def hold(self, happening: Happening) -> None:
        """`tidegate node hold`; whoever does it may have it let go, or open it, before its time."""
        slurm, world = self.chaos.world.slurm, self.chaos.world
        nodes = [node for node in slurm.nodes.values() if not (node.is_down or node.is_drain)]
        if not (nodes and slurm.is_up):
            if not self.chaos.is_over:
                self._after(AGAIN_S, lambda: self.hold(happening))
            return
        name = stream(self.chaos.options.seed, "held").choice(nodes).name
        until_s = world.clock.now_s() + happening.for_s
        self.chaos.touched.add(name)
        self.chaos.held[name] = float(int(until_s))  # as its reason tells it
        slurm.is_drained_by(SetBy.ROOT, name, str(hold_reason(HOLDS, until_s)))
        if happening.what:
            self._after(happening.for_s / 2, lambda: self._end_hold(happening.what, name))

    def _end_hold(self, how: str, name: str) -> None:
        world = self.chaos.world
        node = world.slurm.nodes.get(name)
        if not world.slurm.is_up:
            self._after(AGAIN_S, lambda: self._end_hold(how, name))
        elif node is not None and code_of(node.reason) is DrainCode.HELD:
            now_s = world.clock.now_s()
            self.chaos.held[name] = float(int(now_s))
            if how == "resume":
                node.is_drain, node.reason = False, OPEN
                world.slurm.table.ask(node)
                world.slurm.table.changed()
            else:
                world.slurm.is_drained_by(SetBy.ROOT, name, str(hold_reason(HOLDS, now_s)))

    def _after(self, wait_s: float, happen: Callable[[], None]) -> None:
        self.chaos.world.at(self.chaos.world.clock.now_s() + wait_s, happen)

    def _while_up(self, do: Callable[[str], None], name: str) -> None:
        if self.chaos.world.slurm.is_up:
            do(name)
        else:
            self._after(AGAIN_S, lambda: self._while_up(do, name))


def _for_one(node: SimNode) -> Submit:
    """A short job that takes such a node as a whole."""
    shape = Shape(node.gpus, node.gpu_type, 1, 1_000)
    return Submit("eve", shape, 30.0, constraint=node.features[0], time_limit_s=120.0)
