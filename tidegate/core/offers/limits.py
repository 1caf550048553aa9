"""Limits of pools and cluster, debited node by node so that no plan can exceed them."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from operator import itemgetter

from tidegate.core.model.cluster import CLUSTER_SCOPE, Cluster, Limits, pool_scope
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.frozen import frozen
from tidegate.core.model.why import WhyNot

CLUSTER = ""
UNLIMITED = Limits()

# Keeps sums of binary fractions from refusing the last node that just fits.
SLACK_USD = 0.001


@frozen
class Load:
    """What one node counts against the limits."""

    gpus: int = 0
    vcpus: int = 0
    memory_mib: int = 0
    usd_per_hour: float = 0.0

    @classmethod
    def of(cls, instance_type: InstanceType | None, usd_per_hour: float) -> "Load":
        if instance_type is None:
            return cls(usd_per_hour=usd_per_hour)
        return cls(instance_type.gpus, instance_type.vcpus, instance_type.memory_mib, usd_per_hour)

    def plus(self, other: "Load", times: int) -> "Load":
        return Load(
            self.gpus + times * other.gpus,
            self.vcpus + times * other.vcpus,
            self.memory_mib + times * other.memory_mib,
            self.usd_per_hour + times * other.usd_per_hour,
        )

    def most(self, other: "Load") -> "Load":
        """The larger of the two in every respect."""
        return Load(
            max(self.gpus, other.gpus),
            max(self.vcpus, other.vcpus),
            max(self.memory_mib, other.memory_mib),
            max(self.usd_per_hour, other.usd_per_hour),
        )


@dataclass(slots=True)
class _Used:
    nodes: int = 0
    gpus: int = 0
    vcpus: int = 0
    memory_mib: int = 0
    usd_per_hour: float = 0.0


NOTHING = _Used()


@dataclass(slots=True)
class Usage:
    """What pools and cluster hold now, with everything on its way.

    `expected_usd_per_hour`: the price of it when each launch brings its first offering; the
    limits are debited by the dearest. `used_up`: scopes that may launch nothing, and why.
    """

    cluster: Cluster
    used_up: Mapping[str, WhyNot] = field(default_factory=dict)
    expected_usd_per_hour: float = 0.0
    _used: defaultdict[str, _Used] = field(default_factory=lambda: defaultdict(_Used))
    _scopes: dict[str, tuple[tuple[str, Limits], ...]] = field(default_factory=dict)
    _loads: dict[tuple[str, float], Load] = field(default_factory=dict)

    def load_of(self, instance_type: str, usd_per_hour: float) -> Load:
        """What a node of this type and price counts: found once for all that are alike."""
        key = instance_type, usd_per_hour
        if key not in self._loads:
            self._loads[key] = Load.of(self.cluster.instance_type(instance_type), usd_per_hour)
        return self._loads[key]

    def debit(
        self, pool: str, nodes: int, each: Load, usd_per_hour_each: float | None = None
    ) -> None:
        """Count nodes; `usd_per_hour_each`: what one is expected to cost, None: as `each` says."""
        usd = each.usd_per_hour if usd_per_hour_each is None else usd_per_hour_each
        self.expected_usd_per_hour += nodes * usd
        for scope in (pool, CLUSTER):
            used = self._used[scope]
            used.nodes += nodes
            used.gpus += nodes * each.gpus
            used.vcpus += nodes * each.vcpus
            used.memory_mib += nodes * each.memory_mib
            used.usd_per_hour += nodes * each.usd_per_hour

    def closed(self, pool: str) -> WhyNot | None:
        """The spent budget of the pool or the cluster, if there is one."""
        if not self.used_up:
            return None
        return self.used_up.get(CLUSTER_SCOPE) or self.used_up.get(pool_scope(pool))

    def nodes(self, pool: str) -> int:
        return self._used[pool].nodes

    def room(self, pool: str, nodes: int, each: Load) -> tuple[int, str]:
        """How many of `nodes` more fit under every limit, and which limit stops the rest."""
        if closed := self.closed(pool):
            return 0, closed.sentence
        fitting, sentence = nodes, ""
        for scope, limits in self._limited(pool):
            for room, said in self._rooms(scope, limits, each, self._used[scope]):
                if room < fitting:
                    fitting, sentence = max(room, 0), said
        return fitting, sentence

    def most(self, pool: str, each: Load) -> tuple[float, str]:
        """How many such nodes the limits allow while nothing else is up, and the limit as words."""
        rooms = (
            found
            for scope, limits in self._limited(pool)
            for found in self._rooms(scope, limits, each, NOTHING)
        )
        fitting, said = min(rooms, default=(inf, ""), key=itemgetter(0))
        return max(fitting, 0), said.partition(",")[0]

    def is_exceeded(self, pool: str) -> bool:
        """Whether more is counted than a limit of the pool or the cluster allows, or spent."""
        if self.closed(pool):
            return True
        for scope, limits in self._limited(pool):
            used = self._used[scope]
            for limit, amount in (
                (limits.nodes, used.nodes),
                (limits.gpus, used.gpus),
                (limits.vcpus, used.vcpus),
                (limits.memory_mib, used.memory_mib),
                (limits.usd_per_hour, used.usd_per_hour - SLACK_USD),
            ):
                if limit is not None and amount > limit:
                    return True
        return False

    def holds(self, scope: str, nodes: int, load: Load) -> bool:
        """Whether so many nodes that count so much in all are within the limits of one scope."""
        left = self.left(scope)
        return left is None or (nodes <= left[0] and left[1].most(load) == left[1])

    def left(self, pool: str) -> tuple[float, Load] | None:
        """How many nodes, and how large a node, still fit; None: nothing limits the pool."""
        if self.closed(pool):
            return 0.0, Load()
        nodes, gpus, vcpus, memory_mib, usd = (float("inf"),) * 5
        limited = self._limited(pool)
        for scope, limits in limited:
            used = self._used[scope]
            nodes = min(nodes, _left(limits.nodes, used.nodes))
            gpus = min(gpus, _left(limits.gpus, used.gpus))
            vcpus = min(vcpus, _left(limits.vcpus, used.vcpus))
            memory_mib = min(memory_mib, _left(limits.memory_mib, used.memory_mib))
            usd = min(usd, _left(limits.usd_per_hour, used.usd_per_hour) + SLACK_USD)
        whole = [int(min(each, 2.0**62)) for each in (gpus, vcpus, memory_mib)]
        return (nodes, Load(whole[0], whole[1], whole[2], usd)) if limited else None

    def widen(self, pool: str, nodes: int, each: Load, wider: Load) -> bool:
        """Count nodes as `wider` from now on, when every limit allows it."""
        more = Load(
            nodes * (wider.gpus - each.gpus),
            nodes * (wider.vcpus - each.vcpus),
            nodes * (wider.memory_mib - each.memory_mib),
            nodes * (wider.usd_per_hour - each.usd_per_hour),
        )
        left = self.left(pool)
        if left is not None and left[1].most(more) != left[1]:
            return False
        self.debit(pool, 1, more, 0.0)
        for scope in (pool, CLUSTER):
            self._used[scope].nodes -= 1
        return True

    def _limited(self, pool: str) -> tuple[tuple[str, Limits], ...]:
        """The pool and the cluster, where they have limits."""
        if pool not in self._scopes:
            found = self.cluster.pool(pool)
            if pool == CLUSTER:
                found = None
            both = (pool, found.limits if found else UNLIMITED), (CLUSTER, self.cluster.limits)
            self._scopes[pool] = tuple(each for each in both if each[1] != UNLIMITED)
        return self._scopes[pool]

    def _rooms(self, scope: str, limits: Limits, each: Load, used: _Used) -> list[tuple[int, str]]:
        what = f"pool {scope}" if scope else "the cluster"
        rooms: list[tuple[int, str]] = []
        for limit, of, is_used, unit in (
            (limits.nodes, 1, used.nodes, "nodes"),
            (limits.gpus, each.gpus, used.gpus, "GPUs"),
            (limits.vcpus, each.vcpus, used.vcpus, "vCPUs"),
            (limits.memory_mib, each.memory_mib, used.memory_mib, "MiB of memory"),
        ):
            if limit is not None and of:
                said = f"{what} is limited to {limit} {unit}, {is_used} are used"
                rooms.append(((limit - is_used) // of, said))
        if limits.usd_per_hour is not None and each.usd_per_hour > 0:
            left = limits.usd_per_hour - used.usd_per_hour
            said = (
                f"{what} is limited to {limits.usd_per_hour:.2f} USD per hour, "
                f"{used.usd_per_hour:.2f} are spent"
            )
            rooms.append((int((left + SLACK_USD) / each.usd_per_hour), said))
        return rooms


def _left(limit: float | None, used: float) -> float:
    return float("inf") if limit is None else max(limit - used, 0.0)
