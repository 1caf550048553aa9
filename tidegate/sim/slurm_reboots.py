"""`scontrol reboot ASAP nextstate=RESUME`, as slurmctld carries it out (docs/real-slurm.md, l)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tidegate.sim.slurm_parts import SimNode
from tidegate.sim.slurm_table import NEVER_S, Table

# How soon slurmctld sends an empty node off, and how much longer than a boot it waits for one
# (ResumeTimeout of our slurm.conf).
ISSUED_AFTER_S, SHUTDOWN_S = 2.0, 180.0

REQUESTED, ISSUED = "REBOOT_REQUESTED", "REBOOT_ISSUED"


@dataclass(slots=True)
class SimReboots:
    """`on_reboot` hears of each node that is sent off; its machine calls `is_back`."""

    table: Table
    on_reboot: list[Callable[[str], None]] = field(default_factory=list)
    _since_s: dict[str, float] = field(default_factory=dict)

    def ask(self, nodes: Iterable[SimNode]) -> None:
        for node in nodes:
            if not node.reboot:
                node.is_drain, node.reboot = True, REQUESTED
                node.reason = node.reason or "Reboot ASAP"
                self._since_s[node.name] = self.table.clock.now_s()
                self.table.changed()

    def is_back(self, node: SimNode) -> None:
        """It registers, and takes jobs again; what Slurm has given up stays DOWN."""
        if node.reboot == ISSUED:
            node.is_down = node.is_drain = False
            node.reason, node.reboot = "", ""
            self.table.changed()

    def next_due_s(self) -> float:
        return min((self._due_s(node) for node in self._asked()), default=NEVER_S)

    def step(self) -> None:
        now_s = self.table.clock.now_s()
        for node in [each for each in self._asked() if self._due_s(each) <= now_s]:
            self.table.changed()
            if node.reboot == ISSUED:
                node.reboot = ""  # drained; before 23.11.6 it is open
                node.reason += " : reboot timed out"
                continue
            node.reboot, node.is_down = ISSUED, True
            node.reason += " : reboot issued"
            self._since_s[node.name] = now_s
            for tell in self.on_reboot:
                tell(node.name)

    def _asked(self) -> list[SimNode]:
        return [self.table.nodes[n] for n in self._since_s if self._is_asked(n)]

    def _is_asked(self, name: str) -> bool:
        node = self.table.nodes.get(name)
        return node is not None and bool(node.reboot)

    def _due_s(self, node: SimNode) -> float:
        """When it goes off, or is given up. With jobs, or silent, or DOWN, it waits."""
        since_s = self._since_s[node.name]
        if node.reboot == ISSUED:
            return since_s + self.table.cluster.timings.boot_bound_s + SHUTDOWN_S
        is_ready = not (node.jobs or node.is_down or node.is_silent)
        return since_s + ISSUED_AFTER_S if is_ready else NEVER_S
