"""Nodes that came: what they are taken for, and what rests since they are no good."""

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Instance
from tidegate.core.model.ledger import NodeRecord
from tidegate.core.model.plan import Action, Rest
from tidegate.core.model.slurm import Node


def record_of(instance: Instance, cluster: Cluster) -> NodeRecord:
    """Of an instance that carries our tags and whose own record was lost."""
    return NodeRecord(
        instance.instance_id,
        instance.launch_id,
        instance.pool,
        instance.offering,
        instance.launched_at_s,
        cluster.prices.get(instance.offering, 0.0),
        template=instance.template,
    )


def rest(record: NodeRecord, code: str, reason: str) -> Rest:
    """What was asked of EC2; what other pools make of the same may come up all the same."""
    return Rest(record.offering, record.pool, record.template, code, reason)


def disappoints(node: Node, record: NodeRecord, cluster: Cluster) -> tuple[Action, ...]:
    """A node that joins DOWN or smaller than its type would be bought again and again."""
    expected = cluster.instance_type(record.offering.instance_type)
    if node.state.is_down:
        what = f"a node joined {node.state}: {node.reason or 'no reason given'}"
        return (rest(record, "NodeJoinedDown", what),)
    if expected and (
        node.memory_mib < expected.slurm_memory_mib
        or node.gpus < expected.gpus
        or node.cpus < expected.vcpus
    ):
        what = f"a node joined with {node.gpus} GPUs, {node.cpus} CPUs, {node.memory_mib} MiB"
        return (rest(record, "NodeTooSmall", what),)
    return ()
