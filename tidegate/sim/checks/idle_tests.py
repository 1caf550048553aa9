"""Invariants of tests of idle nodes: their number at a time, and their budget."""

from collections import Counter, defaultdict

from tidegate.core.model.idle_check import (
    DAY_S,
    FOUND_PAIR,
    SECONDS_PER_HOUR,
    is_idle_check_name,
)
from tidegate.core.model.orders import Order, OrderKind
from tidegate.sim.checks.witness import Check, Witness
from tidegate.sim.slurm_parts import SimJob

# Of what a day's tests really used, beside what digests show of it.
UNSEEN = 1.25


class IdleTestsBounded(Check):
    """Idle nodes are tested one or two at a time in a pool, within the GPU-hours of a day, and who
    fails beside a sick one is not drained for it.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.ran: list[SimJob] = []
        self.used: defaultdict[int, float] = defaultdict(float)

    def started(self, job: SimJob) -> None:
        if not is_idle_check_name(job.submit.name):
            return
        pools = Counter(self._pool(each) for each in [*self._running(), job])
        pool, count = pools.most_common(1)[0]
        if count > 1:
            raise self.broken(f"{count} tests of pool {pool} run at once")
        self.ran.append(job)

    def sent(self, order: Order) -> None:
        if order.kind is OrderKind.DRAIN and order.text.startswith(FOUND_PAIR):
            for name in order.names:
                if name not in self.witness.chaos.sickened:
                    raise self.broken(f"{name} is drained, and no test of it alone would fail")

    def passed(self, seconds: float) -> None:
        check = self.world.cluster.idle_check
        if check is None or not self.ran or not self.witness.is_head_well:
            return  # while the head is gone nobody ends a test at its time limit
        day = int(self.witness.now_s // DAY_S)
        for job in self._running():
            self.used[day] += self._gpus(job) * seconds
        used = self.used[day] / SECONDS_PER_HOUR
        if used > check.gpu_hours_per_day * UNSEEN:
            raise self.broken(f"{used:.2f} of {check.gpu_hours_per_day:g} GPU-hours are used")

    def _running(self) -> list[SimJob]:
        return [each for each in self.ran if each.state == "RUNNING"]

    def _pool(self, job: SimJob) -> str:
        return self.world.compute.everything[_nodes(job)[0]].pool

    def _gpus(self, job: SimJob) -> int:
        offerings = (self.world.compute.everything[name].offering for name in _nodes(job))
        found = (self.world.cluster.instance_type(each.instance_type) for each in offerings)
        return sum(each.gpus for each in found if each)


def _nodes(job: SimJob) -> list[str]:
    return job.submit.node_name.split(",")
