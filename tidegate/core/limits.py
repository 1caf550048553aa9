"""Limits of pools and cluster, debited node by node so that no plan can exceed them."""

from collections import defaultdict
from dataclasses import dataclass, field

from tidegate.core.pool import Cluster, Limits

CLUSTER = ""


@dataclass(slots=True)
class _Used:
    nodes: int = 0
    gpus: int = 0
    usd_per_hour: float = 0.0


@dataclass(slots=True)
class Usage:
    """What pools and cluster hold now, with everything on its way."""

    cluster: Cluster
    _used: defaultdict[str, _Used] = field(default_factory=lambda: defaultdict(_Used))

    def debit(self, pool: str, *, nodes: int, gpus_each: int, usd_per_hour_each: float) -> None:
        for scope in (pool, CLUSTER):
            used = self._used[scope]
            used.nodes += nodes
            used.gpus += nodes * gpus_each
            used.usd_per_hour += nodes * usd_per_hour_each

    def room(
        self, pool: str, *, nodes: int, gpus_each: int, usd_per_hour_each: float
    ) -> tuple[int, str]:
        """How many of `nodes` more fit under every limit, and which limit stops the rest."""
        fitting, sentence = nodes, ""
        found = self.cluster.pool(pool)
        for scope, limits, what in (
            (pool, found.limits if found else Limits(), f"pool {pool}"),
            (CLUSTER, self.cluster.limits, "the cluster"),
        ):
            for room, said in self._rooms(scope, limits, what, gpus_each, usd_per_hour_each):
                if room < fitting:
                    fitting, sentence = max(room, 0), said
        return fitting, sentence

    def _rooms(
        self, scope: str, limits: Limits, what: str, gpus_each: int, usd_per_hour_each: float
    ) -> list[tuple[int, str]]:
        used = self._used[scope]
        rooms: list[tuple[int, str]] = []
        if limits.nodes is not None:
            said = f"{what} is limited to {limits.nodes} nodes, {used.nodes} are used"
            rooms.append((limits.nodes - used.nodes, said))
        if limits.gpus is not None and gpus_each:
            said = f"{what} is limited to {limits.gpus} GPUs, {used.gpus} are used"
            rooms.append(((limits.gpus - used.gpus) // gpus_each, said))
        if limits.usd_per_hour is not None and usd_per_hour_each > 0:
            left = limits.usd_per_hour - used.usd_per_hour
            said = (
                f"{what} is limited to {limits.usd_per_hour:.2f} USD per hour, "
                f"{used.usd_per_hour:.2f} are spent"
            )
            # A tenth of a cent of slack keeps sums of binary fractions from refusing the last node.
            rooms.append((int((left + 0.001) / usd_per_hour_each), said))
        return rooms
