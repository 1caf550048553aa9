"""Idle nodes that are paid for in advance and cut in another way than a waiting job needs.

A layout is never changed on a node: who lets an idle one go and launches into the same place gets
GPUs that nobody used, cut anew by a boot that is checked as any other. A node by the hour goes by
itself when it has idled for its pool's time.
"""

from collections.abc import Collection, Iterator

from tidegate.core.demand.demand import Need
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.slurm import Node, Shape
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why
from tidegate.core.passes.departures import IdleNodes
from tidegate.core.passes.queue import Queue


def cut_otherwise(
    snapshot: Snapshot, queue: Queue, idle: IdleNodes, going: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Which of the idle nodes go, each with its reason: one for each kind of job that is refused
    since no place is left, while a node that idles is of the type that could be cut for it.
    """
    taken, seen = set(going), set[Shape]()
    left = dict(idle.above)
    for need in _short_of_places(queue):
        if need.shape in seen:
            continue
        seen.add(need.shape)
        for member, idle_s in idle.prepaid:
            of = snapshot.cluster.instance_type(member.offering.instance_type)
            name, node = member.instance_id, member.node
            if of is None or node is None or name in taken or member.pool not in need.pools:
                continue
            if left[member.pool] > 0 and could_hold(need.shape, of) and lacks(need.shape, node):
                taken.add(name)
                left[member.pool] -= 1
                yield name, _reason(need, node, idle_s)
                break


def _short_of_places(queue: Queue) -> Iterator[Need]:
    for need in queue.needs:
        unmet = queue.unmet.get(need.job_id)
        if unmet and not need.is_gang and any(why.kind is Why.LIMIT for why in unmet.why_nots):
            yield need


def could_hold(shape: Shape, of: InstanceType) -> bool:
    """Whether a node of the type, cut for it, would hold what one node gives to the job."""
    most = sum(of.gpus * each.most for each in of.profiles if each.gpu_type == shape.gpu_type)
    fits = shape.cpus <= of.cpus and shape.memory_mib <= of.slurm_memory_mib
    return bool(shape.gpus) and shape.gpus <= most and fits


def lacks(shape: Shape, node: Node) -> bool:
    """Whether the node, as it is cut, never holds it."""
    of_type = {each.gpu_type: each.count for each in node.devices} or {node.gpu_type: node.gpus}
    return of_type.get(shape.gpu_type, 0) < shape.gpus


def _reason(need: Need, node: Node, idle_s: float) -> str:
    told = [f"{each.count} {each.gpu_type}" for each in node.devices]
    has = ", ".join(told or [f"{node.gpus} {node.gpu_type}"])
    return (
        f"idle for {idle_s:.0f} s and cut into {has}, while job {need.job_id} waits for"
        f" {need.shape.gpus} {need.shape.gpu_type}: a new node in its place is cut for that"
    )
