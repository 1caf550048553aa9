"""The order `release`: drain, see that nothing runs, delete. A job that slipped in wins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tidegate.agent.asked import why_held
from tidegate.core.model.drain_reason import DrainCode, DrainReason, read
from tidegate.core.model.frozen import frozen
from tidegate.core.model.orders import Order, OrderOutcome, OrderResult
from tidegate.core.model.slurm import Node, Reading, asked_by_name, holders
from tidegate.ports.slurm import Slurm

HOLDS_A_JOB = frozenset({"ALLOCATED", "MIXED"})
# What Slurm itself refuses to delete; it says "busy".
RESERVED = frozenset({"RESERVED", "MAINT", "MAINTENANCE"})


@frozen
class Pace:
    """How often to look whether a node has become free, and how long to wait in between.

    COMPLETING and PLANNED pass by themselves within seconds; 22.05's slurmctld crashes when
    a PLANNED node is deleted, so it is waited for.
    """

    tries: int = 20
    pause_s: float = 0.5


def release(
    order: Order,
    slurm: Slurm,
    sleep: Callable[[float], None],
    pace: Pace,
) -> tuple[OrderResult, ...]:
    """Delete those of the named nodes on which nothing runs. Errors: SlurmUnavailable."""
    sentence = "it leaves Slurm as soon as nothing runs there"
    work = _Release(order, slurm, DrainReason(DrainCode.RELEASE, sentence, order.order_id))
    waiting = work.begin(order.names)
    for number in range(pace.tries):
        if number:
            sleep(pace.pause_s)
        waiting = work.advance(waiting)
        if not waiting:
            break
    work.give_up(waiting)
    return tuple(work.results)


@dataclass(slots=True)
class _Release:
    """`reason`: it tells our drain from one that somebody else wants."""

    order: Order
    slurm: Slurm
    reason: DrainReason
    results: list[OrderResult] = field(default_factory=list)

    def begin(self, names: Sequence[str]) -> list[str]:
        """Drain what may go; the names to wait for."""
        reading = self.slurm.read()
        nodes = {node.name: node for node in reading.nodes}
        going: list[str] = []
        for name in names:
            node = nodes.get(name)
            if node is None:
                self._settle(name, OrderOutcome.DONE, "The node is gone from Slurm.")
            elif why := self._why_not(node, reading):
                self._keep([node], why)
            else:
                going.append(name)
        fresh = [name for name in going if not nodes[name].state.is_drain]
        if fresh:
            self.slurm.drain(fresh, str(self.reason))
        return going

    def advance(self, names: Sequence[str]) -> list[str]:
        """Read, settle what has changed, delete what is free; the names still to wait for."""
        reading = self.slurm.read()
        nodes = {node.name: node for node in reading.nodes}
        held = holders(reading.jobs)
        waiting: list[str] = []
        free: list[str] = []
        for name in names:
            node = nodes.get(name)
            if node is None:
                self._settle(name, OrderOutcome.DONE, "The node is gone from Slurm.")
            elif why := self._why_stop(node, reading):
                self._keep([node], why)
            elif node.state.is_deletable and name not in held:
                free.append(name)
            else:
                waiting.append(name)
        refused = self.slurm.delete(free) if free else {}
        for name in free:
            if name not in refused:
                self._settle(name, OrderOutcome.DONE, "The node was drained and deleted.")
        return waiting + [name for name in free if name in refused]

    def give_up(self, names: Sequence[str]) -> None:
        """What is still not free after all tries goes on as it was."""
        if not names:
            return
        known = {node.name: node for node in self.slurm.read().nodes}
        for name in names:
            if name not in known:
                self._settle(name, OrderOutcome.DONE, "The node is gone from Slurm.")
                continue
            self._keep([known[name]], f"The node is still {known[name].state}.")

    def _why_not(self, node: Node, reading: Reading) -> str:
        """Why this node stays as it is, before anything was touched; "" when it may go."""
        only_if = self.order.only_if
        if only_if and not node.state.words & set(only_if):
            return f"The node is {node.state}, not {' or '.join(only_if)}."
        if why := why_held(self.order, node):
            return why
        return self._why_stop(node, reading, begins=True)

    def _why_stop(self, node: Node, reading: Reading, *, begins: bool = False) -> str:
        # By the jobs as well: 22.05 shows the node of a suspended one as IDLE, and its slurmctld
        # ends, and again after each restart, when such a node is deleted.
        runs = [job for job in reading.jobs if job.is_running and node.name in job.node_names]
        if node.state.words & HOLDS_A_JOB or (runs and not node.state.is_down):
            return _runs_here(node, reading)
        if node.state.words & RESERVED and not node.state.is_down:
            return f"The node is {node.state}: Slurm deletes no node that is in a reservation."
        if job := asked_by_name(reading.jobs).get(node.name):
            return f"Job {job.job_id} waits for this very node (-w); deleting it would end the job."
        if not begins and not node.state.is_drain and not node.state.is_down:
            return "Somebody undrained the node meanwhile."
        return ""

    def _keep(self, nodes: Sequence[Node], why: str) -> None:
        ours = [node.name for node in nodes if node.state.is_drain and self._is_ours(node)]
        if ours:
            self.slurm.undrain(ours)
        for node in nodes:
            self._settle(node.name, OrderOutcome.KEPT, why)

    def _is_ours(self, node: Node) -> bool:
        """Drained for this order, perhaps by the agent before this one."""
        found = read(node.reason)
        return (
            found is not None
            and found.code is DrainCode.RELEASE
            and found.subject == self.order.order_id
        )

    def _settle(self, name: str, outcome: OrderOutcome, detail: str) -> None:
        order = self.order
        self.results.append(OrderResult(order.order_id, order.kind, name, outcome, detail))


def _runs_here(node: Node, reading: Reading) -> str:
    jobs = [job for job in reading.jobs if node.name in job.node_names]
    what = "is suspended" if {job.state for job in jobs} == {"SUSPENDED"} else "runs"
    ids = ", ".join(job.job_id for job in jobs[:5])
    return f"Job {ids} {what} here." if jobs else f"The node is {node.state}."
