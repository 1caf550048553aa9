"""Invariants of nodes that are reset or rebooted before they are replaced."""

from collections import Counter

from tidegate.service.control import Looked
from tidegate.sim.checks.witness import Check, Witness
from tidegate.sim.slurm_reboots import ISSUED, SHUTDOWN_S

# Slurm may be asked again before a look has seen that it began.
ASKED_MAX = 2


# Slurm finds a node DOWN that has not come back; a slurmctld that is away hears of it later.
GIVEN_UP_S = SHUTDOWN_S + 60.0


class SickNodesMended(Check):
    """A node of which a GPU has failed takes jobs again once it is mended, and none is off for ever
    to be mended.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.off_s: dict[str, float] = {}  # for how long, while slurmctld runs

    def passed(self, seconds: float) -> None:
        slurm, unwell = self.world.slurm, self.witness.chaos.unwell
        for name in [each for each in unwell if each in slurm.nodes]:
            node = slurm.nodes[name]
            if not (node.is_drain or node.is_down):
                raise self.broken(f"{name} takes jobs, and its GPU is as it was")
        if not slurm.is_up:
            return
        off = {name for name, node in slurm.nodes.items() if node.reboot == ISSUED}
        self.off_s = {name: self.off_s.get(name, 0.0) + seconds for name in off}
        bound_s = self.world.cluster.timings.boot_bound_s + GIVEN_UP_S
        for name, off_s in self.off_s.items():
            if off_s > bound_s:
                raise self.broken(f"{name} is off for {off_s:.0f} s to be mended")


class RebootsBounded(Check):
    """Only an empty node that is paid for in advance is rebooted, once for what was found, until
    a person says that it was no good: `tidegate retry`.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.asked: Counter[str] = Counter()

    def looked(self, looked: Looked) -> None:
        for history in (h for done in looked.rounds for h in done.snapshot.pool_history):
            lifted = {each.check for each in history.stopped_checks if each.is_lifted}
            for found in history.findings if lifted else ():
                if found.check in lifted:
                    self.asked.pop(found.instance_id, None)

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        for name in names if verb == "reboot" else ():
            node, instance = self.world.slurm.nodes[name], self.world.compute.everything[name]
            self.asked[name] += 1
            if node.jobs:
                raise self.broken(f"{name} is rebooted with job {', '.join(node.jobs)} on it")
            if self.asked[name] > ASKED_MAX:
                raise self.broken(f"{name} is rebooted for the {self.asked[name]}th time")
            if not self._is_prepaid(name):
                raise self.broken(f"{name} is rebooted, and is bought {instance.offering.market}")

    def _is_prepaid(self, name: str) -> bool:
        """As it was bought, or as EC2 bills it since then."""
        record = self.world.ledger.all_nodes.get(name)
        known = [
            self.world.compute.everything[name].offering,
            *([record.offering] if record else ()),
        ]
        return any(each.market.is_prepaid for each in known)
