"""Invariants of roll-outs: how far a bad template comes."""

from collections import defaultdict

from tidegate.core.model.ec2 import Instance
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.rollout import CANARIES_MAX
from tidegate.service.control import Looked
from tidegate.sim.checks.witness import Check, Witness
from tidegate.sim.image import DEPLOYED, FAILS_JOBS, bad_image
from tidegate.sim.slurm_parts import SimJob


class BadImagesTouchTwo(Check):
    """Of a template that makes bad nodes two are bought at most, in a pool that has a good one, and
    it never becomes the good one there; nodes that AWS took away are not counted.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.kind = bad_image(witness.chaos)
        self.touched: defaultdict[str, set[str]] = defaultdict(set)
        self.failed: set[str] = set()  # pools of which jobs have met it

    def started(self, job: SimJob) -> None:
        for name in job.node_names if self.kind else ():
            one = self.world.compute.everything[name]
            if one.template == DEPLOYED:
                self.failed.add(one.pool)

    def launched(self, instance: Instance) -> None:
        view = self.witness.view()
        is_tried = bool(self.kind) and instance.template == DEPLOYED
        if view is None or not is_tried or instance.offering.market.is_prepaid:
            return
        history = next((each for each in view.pool_history if each.pool == instance.pool), None)
        if history is None or not _has_another(history):
            return
        touched = self.touched[instance.pool]
        touched.add(instance.instance_id)
        chaos = self.witness.chaos
        # AWS may tell it of a node that the planner then ends itself, before AWS does.
        found = touched - chaos.doomed - chaos.announced.keys()
        if len(found) > CANARIES_MAX:
            raise self.broken(f"{', '.join(sorted(found))} of pool {instance.pool} are from it")

    def looked(self, looked: Looked) -> None:
        for pool in self.touched if not self.witness.chaos.is_over else ():
            history = self.world.ledger.all_pool_history[pool]
            has_shown = self.kind != FAILS_JOBS or pool in self.failed
            if has_shown and history.good and history.good.digest == DEPLOYED:
                raise self.broken(f"pool {pool} takes it for good")


def _has_another(history: PoolHistory) -> bool:
    return history.good is not None and history.good.digest != DEPLOYED
