"""The order `delete`: a dead node leaves Slurm at once, and so do the jobs that it had; also one
whose time after a stop is over.

Slurm itself notices a dead slurmd after SlurmdTimeout; until then its jobs look as if they ran.
"""

from collections.abc import Callable, Mapping, Sequence

from tidegate.agent.asked import Carried, asked_nodes, result, why_held
from tidegate.agent.hold import hold
from tidegate.agent.release import Pace
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.orders import Order, OrderOutcome, OrderResult
from tidegate.core.model.slurm import Node, holders
from tidegate.ports.slurm import Slurm

# Short: other urgent orders wait behind this one, and a node that is DOWN can wait.
TRIES = 3


def delete(
    orders: Sequence[Order],
    slurm: Slurm,
    sleep: Callable[[float], None],
    pace: Pace,
    now_s: float,
) -> Carried:
    """Set the nodes DOWN, then delete those that nothing holds any more.

    The other nodes of their jobs are kept for these before that.

    A node of the first component of a heterogeneous job takes that one alone off its nodes when
    it is set DOWN: the others would run on, and the job would never start again.
    The nodes of a guarded order live: one that a person has drained meanwhile stays as it is.
    `Carried.requeued` are the jobs that Slurm puts back in its queue. Errors: SlurmUnavailable.
    """
    reading = slurm.read()
    asked = asked_nodes(orders, reading)
    pairs = [(order, node) for order, node in asked.pairs if not _why_kept(order, node)]
    kept = (
        result(order, node.name, OrderOutcome.KEPT, why)
        for order, node in asked.pairs
        if (why := _why_kept(order, node))
    )
    settled = (*asked.settled, *kept)
    names = list(dict.fromkeys(node.name for _, node in pairs))
    if not names:
        return Carried(settled)
    lost = [
        job
        for job in reading.jobs
        if job.is_running and job.is_requeueable and not set(names).isdisjoint(job.node_names)
    ]
    together = sorted({job.het_job_id for job in lost if job.het_job_id})
    hold(reading.jobs, names, reading, slurm, now_s)
    stuck = slurm.requeue(together) if together else {}
    requeued = frozenset(job.het_job_id or job.job_id for job in lost)
    gone = DrainReason(DrainCode.GONE, "its instance is gone")
    slurm.down(names, orders[0].text or str(gone))
    refused = _delete(names, slurm, sleep, pace)
    results = (_result(order, node, refused, stuck) for order, node in pairs)
    return Carried((*settled, *results), requeued)


def _why_kept(order: Order, node: Node) -> str:
    """An order without a guard says that the instance is gone: then nobody can keep it."""
    return why_held(order, node) if order.only_if else ""


def _delete(
    names: Sequence[str], slurm: Slurm, sleep: Callable[[float], None], pace: Pace
) -> dict[str, str]:
    """Delete what can be; name -> why not, for the others."""
    refused: dict[str, str] = {}
    for number in range(TRIES):
        if number:
            sleep(pace.pause_s)
        reading = slurm.read()
        states, held = {node.name: node.state for node in reading.nodes}, holders(reading.jobs)
        there = [name for name in names if name in states]
        # 22.05's slurmctld crashes when a node is deleted that is PLANNED or has a suspended job.
        free = [name for name in there if states[name].is_deletable and name not in held]
        refused = {name: f"it is {states[name]}" for name in there if name not in free}
        refused |= slurm.delete(free) if free else {}
        if not refused:
            break
    return refused


def _result(
    order: Order, node: Node, refused: Mapping[str, str], stuck: Mapping[str, str]
) -> OrderResult:
    """`stuck`: heterogeneous job -> why Slurm did not requeue it."""
    told = "".join(f" Job {job_id} was not requeued: {why}." for job_id, why in stuck.items())
    if node.name in refused:
        detail = f"The node is DOWN, and cannot be deleted yet: {refused[node.name]}.{told}"
        return result(order, node.name, OrderOutcome.KEPT, detail)
    detail = f"The node was set DOWN and deleted.{told}"
    return result(order, node.name, OrderOutcome.DONE, detail)
