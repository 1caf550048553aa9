"""Invariants of nodes that are stopped and started again."""

from collections import Counter

from tidegate.core.model.ec2 import FleetRequest, Market
from tidegate.core.model.ledger import LaunchRecord, NodeRecord, Phase
from tidegate.sim.checks.ending import BAD_LUCK_S, RECONCILE_S
from tidegate.sim.checks.orders import ids_of
from tidegate.sim.checks.witness import Check, Witness


class StoppedNodesKept(Check):
    """What a planner has stopped is on demand and known to the ledger, and no pool has more of it
    than it keeps, but for a reconcile and bad luck.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self._over_s: Counter[str] = Counter()

    def passed(self, seconds: float) -> None:
        compute, nodes = self.world.compute, self.world.ledger.all_nodes
        if not compute.stopped:
            return
        # What EC2 has stopped by itself is another matter.
        ours = [n for n in compute.stopped if n in nodes and nodes[n].stopped_at_s is not None]
        here = Counter(compute.everything[name].pool for name in ours)
        for pool in self.world.cluster.pools:
            is_over = here[pool.name] > pool.stopped_nodes
            self._count(f"pool {pool.name} has {here[pool.name]} of them", seconds, is_over=is_over)
        for name in ours:
            # As the planner knew it: EC2 moves what runs on demand into a reservation at any time.
            if nodes[name].offering.market is not Market.ON_DEMAND:
                raise self.broken(f"{name} is {nodes[name].offering.market}")
            if group := compute.everything[name].placement_group:
                raise self.broken(f"{name} is in placement group {group}")
            is_lost = nodes[name].phase is Phase.TERMINATED
            is_dear = self._is_dear(nodes[name])
            self._count(f"{name} is not worth its disk", seconds, is_over=is_dear)
            self._count(f"{name} is stopped and nobody knows it", seconds, is_over=is_lost)

    def _is_dear(self, node: NodeRecord) -> bool:
        """Its disk has cost more than a start saves, or a start saves nothing."""
        cluster = self.world.cluster
        pool = cluster.pool(node.pool)
        if pool is None or not pool.is_stopped_auto or node.stopped_at_s is None:
            return False
        later_s = max(pool.boot_s - pool.start_s, 0.0)
        partitions = [each.name for each in cluster.partitions if pool.name in each.pools]
        saves_usd = cluster.waiting.usd(partitions, "", "") * later_s / 3600
        stood_s = self.world.clock.now_s() - node.stopped_at_s
        return stood_s / 3600 * pool.stopped_usd_per_hour > saves_usd

    def _count(self, what: str, seconds: float, *, is_over: bool) -> None:
        self._over_s[what] = int(is_over and self._over_s[what] + seconds)
        if self._over_s[what] > RECONCILE_S + BAD_LUCK_S:
            raise self.broken(f"{what} for {self._over_s[what]} s")


class StartedWhenSettled(Check):
    """A stopped node is started when it has left Slurm and no order of its former life may be
    carried out any more, and for a gang with all that one plan gets for it, in one zone.
    """

    def requested(self, request: FleetRequest) -> None:
        name, record = request.starts, self.witness.record_of(request)
        if not name or record is None or not self.witness.is_new(request):
            return
        node = self.world.ledger.all_nodes.get(name)
        if node is None or node.stopped_at_s is None:
            raise self.broken(f"{name} was not stopped")
        if name in self.world.slurm.nodes:
            raise self.broken(f"{name} is a node of Slurm still")
        if record.launch.count != 1:
            raise self.broken(f"{name} is started as {record.launch.count} nodes")
        if gang := record.launch.gated_for:
            self._is_whole(gang, record)
        waited_s = record.created_at_s - node.stopped_at_s
        if waited_s < self.world.cluster.timings.order_ttl_s:
            raise self.broken(f"{name} was stopped {waited_s:.0f} s before")

    def _is_whole(self, gang: str, record: LaunchRecord) -> None:
        """Tasks of an array have one name, and components of a heterogeneous job each a zone."""
        pool = self.world.cluster.pool(record.launch.pool)
        if pool is None or pool.placement_group:
            raise self.broken(f"gang {gang} is started in pool {record.launch.pool}")
        jobs = [job for job in self.world.slurm.table.active.values() if gang in ids_of(job)]
        if any(job.het_job_id or job.submit.array for job in jobs):
            return
        plan = record.launch.launch_id.rpartition("-")[0]
        beside = [
            each.launch
            for launch_id, each in self.world.ledger.all_launches.items()
            if launch_id.rpartition("-")[0] == plan and each.launch.gated_for == gang
        ]
        if not all(each.starts for each in beside):
            raise self.broken(f"gang {gang} is started in part, and bought in part")
        zones = {each.offerings[0].zone for each in beside}
        if len(zones) > 1:
            raise self.broken(f"gang {gang} is started in {', '.join(sorted(zones))}")
