"""Places whose nodes become sick more often than others: what is sold there is bought last.

EC2 gives the next instance of an offering from the same hosts. A place is an offering: a type in a
zone and a market. What is paid for in advance is used all the same.
"""

from collections import Counter
from collections.abc import Iterator

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.durations import span
from tidegate.core.model.ec2 import Offering
from tidegate.core.model.finding import OUR_CHECKS, Finding
from tidegate.core.model.frozen import frozen
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.snapshot import Snapshot

# For how long a sick node counts against its place.
PLACE_COUNTS_S = 2 * 86_400.0

# So many nodes, and so many times as often as elsewhere in the pool. Elsewhere one more sick node
# and twenty more nodes are assumed, so that two of ten count and two of fifty do not.
SICK_MIN = 2
TIMES_AS_OFTEN = 4.0
ASSUMED_SICK, ASSUMED_NODES = 1, 20


@frozen
class SickPlace:
    """An offering that gave `found` sick nodes since `since_s`. `until_s`: when it counts no more
    if no other node of it becomes sick.
    """

    offering: Offering
    found: int
    since_s: float
    until_s: float

    def sentence(self, now_s: float) -> str:
        return f"{self.offering} gave {self.found} sick nodes in {span(now_s - self.since_s)}"


def sick_places(snapshot: Snapshot) -> dict[Offering, SickPlace]:
    """Those of all pools: a host is sick for whoever gets it."""
    found: dict[Offering, SickPlace] = {}
    for history in snapshot.pool_history:
        for place in _of_pool(history, snapshot):
            if place.offering not in found or found[place.offering].found < place.found:
                found[place.offering] = place
    return found


def sick_reservations(snapshot: Snapshot) -> Iterator[str]:
    """Reservations whose nodes become sick again: a replacement comes from the same hosts."""
    sick: Counter[str] = Counter()
    for history in snapshot.pool_history:
        for each in _believed(history, snapshot.cluster, snapshot.now_s):
            if each.offering.market.is_prepaid and each.reservation:
                sick[each.reservation] += 1
    for name, count in sorted(sick.items()):
        if count >= SICK_MIN:
            yield (
                f"reservation {name} gave {count} sick nodes in {span(PLACE_COUNTS_S)}, and EC2 "
                "may give the same host again: look into one with tidegate node hold, and tell AWS"
            )


def sick_network_nodes(snapshot: Snapshot) -> Iterator[str]:
    """Of EC2's, where Slurm knows a topology. EC2 names no host, so one that comes back under
    another id is known by what it hangs from.
    """
    below: dict[str, list[str]] = {}
    for history in snapshot.pool_history:
        for each in _believed(history, snapshot.cluster, snapshot.now_s):
            if each.network_node:
                below.setdefault(each.network_node, []).append(each.instance_id)
    for name, nodes in sorted(below.items()):
        if len(nodes) >= SICK_MIN:
            yield (
                f"{len(nodes)} nodes below EC2's network node {name} became sick in "
                f"{span(PLACE_COUNTS_S)}: {', '.join(sorted(nodes))}; one host may be behind them, "
                "which EC2 may give again: tell AWS these ids"
            )


def _of_pool(history: PoolHistory, snapshot: Snapshot) -> Iterator[SickPlace]:
    every = _believed(history, snapshot.cluster, snapshot.now_s)
    counting = [each for each in every if not each.offering.market.is_prepaid]
    sick = Counter(each.offering for each in counting)
    nodes = max((each.pool_nodes for each in counting), default=0)
    for offering, count in sorted(sick.items()):
        ours = [each for each in counting if each.offering == offering]
        here = max(max(each.place_nodes for each in ours), count)
        elsewhere = max(nodes - here, 0) + ASSUMED_NODES
        often_elsewhere = (len(counting) - count + ASSUMED_SICK) / elsewhere
        if count >= SICK_MIN and count / here > TIMES_AS_OFTEN * often_elsewhere:
            at_s = sorted(each.at_s for each in ours)
            yield SickPlace(offering, count, at_s[0], at_s[-SICK_MIN] + PLACE_COUNTS_S)


def _believed(history: PoolHistory, cluster: Cluster, now_s: float) -> Iterator[Finding]:
    """What checks of health found lately that are believed. Where a task cannot be killed or an
    epilog fails it is the job's fault, and not the place's.
    """
    of_health = (OUR_CHECKS, *cluster.health_reasons)
    for each in history.findings:
        is_late = each.at_s <= now_s - PLACE_COUNTS_S
        is_stopped = any(stop.is_by(each.check) for stop in history.stopped_checks)
        is_believed = not is_stopped and each.check.startswith(of_health)
        if is_believed and not is_late:
            yield each
