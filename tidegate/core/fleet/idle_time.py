"""`idle_s: auto`: a node is kept while that is expected to cost less than booting another.

To keep a node costs the time until the next job takes it; to let it go costs a boot of the same
price, and the job that would have taken it waits for that boot, at the price of waiting. In time of
the node that is boot x (1 + price of waiting / price of the node): what a boot is worth. From what
was seen (when nodes became free, and when jobs came for nodes) follows how long a wait is worth it:
the time for which
mean(min(wait, time)) + worth of a boot x share of longer waits
is least. With too little seen a node is kept for as long as a boot is worth: at worst that costs
twice what one would have paid who knew what comes.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from tidegate.core.fleet.worth import wait_usd_per_hour
from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.slurm import Job, Node

# Each is a number in the ledger's item of the pool.
SEEN_MAX = 64
SAMPLES_MIN = 5

# A job that starts so soon after its node's launch is the one that the node was launched for.
FRESH_BOOTS = 2.0

# A node that nobody has taken for so many times as long as a boot is worth counts as never taken.
GIVEN_UP = 4.0


def idle_s(
    pool: Pool, pool_history: PoolHistory, place: int, *, now_s: float, boot_worth_s: float
) -> float:
    """How long the `place`-th idle node of the pool (0: the first to be taken) is kept."""
    if not pool.is_idle_auto:
        return pool.idle_s
    waits = _waits(pool_history, place, now_s - GIVEN_UP * boot_worth_s)
    if len(waits) < SAMPLES_MIN:
        return boot_worth_s
    times = [0.0, *sorted(wait for wait in waits if wait <= boot_worth_s * len(waits))]
    return min(times, key=lambda time_s: (_cost_s(waits, time_s, boot_worth_s), time_s))


def boot_worth_s(
    cluster: Cluster, pool: Pool, usd_per_hour: float, *, is_stopped: bool = False
) -> float:
    """For how long a node of this price may idle at the cost of a boot and of a job's wait for it.

    `is_stopped`: it would be stopped, and its next boot is a start. What is paid for in advance is
    never let go to save money.
    """
    boot_s = pool.up_in_s(is_started=is_stopped)
    if usd_per_hour <= 0.0:
        return boot_s
    return boot_s * (1.0 + wait_usd_per_hour(cluster, pool) / usd_per_hour)


def _cost_s(waits: Sequence[float], time_s: float, boot_worth_s: float) -> float:
    return sum(wait if wait <= time_s else time_s + boot_worth_s for wait in waits) / len(waits)


def _waits(pool_history: PoolHistory, place: int, given_up_s: float) -> list[float]:
    """From each time that a node became free to the arrival that would have taken it."""
    taken = sorted(pool_history.taken_at_s)
    found: list[float] = []
    for freed_s in pool_history.freed_at_s:
        position = bisect_left(taken, freed_s) + place
        if position < len(taken):
            found.append(taken[position] - freed_s)
        elif freed_s <= given_up_s:
            found.append(float("inf"))
    return found


def newest(known: Sequence[float], seen: Iterable[float]) -> tuple[float, ...]:
    """The newest instants: what was known, and what is seen after all of it."""
    last_s = max(known, default=0.0)
    fresh = sorted(round(at_s, 0) for at_s in seen if round(at_s, 0) > last_s)
    return (*known, *fresh)[-SEEN_MAX:]


def arrivals(pool: Pool, launched_at_s: dict[str, float], jobs: Iterable[Job]) -> Iterable[float]:
    """When jobs came for the nodes of a pool: a node for each that runs there now.

    A job that a node was launched for came when it was launched.
    """
    for job in jobs:
        if job.started_at_s is None or job.is_pending:
            continue
        for name in job.node_names:
            launched_s = launched_at_s.get(name)
            if launched_s is not None:
                is_first = job.started_at_s - launched_s <= FRESH_BOOTS * pool.boot_s
                yield launched_s if is_first else job.started_at_s


def frees(nodes: Iterable[Node], launched_at_s: dict[str, float]) -> Iterable[float]:
    """When nodes that idle now became free; one that nobody has used yet was never taken."""
    for node in nodes:
        launched_s = launched_at_s.get(node.name)
        if launched_s is not None and node.state.is_idle and node.last_busy_at_s > launched_s:
            yield node.last_busy_at_s
