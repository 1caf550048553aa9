"""Nodes that came: what they are taken for, and what rests since they are no good."""

from dataclasses import replace

from tidegate.core.fleet.cures import cure_of_state
from tidegate.core.fleet.members import Member
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Cure, Instance
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.plan import Action, Rest
from tidegate.core.model.resting import LOSS, TAKEN_BACK, BootFailure
from tidegate.core.model.slurm import Node
from tidegate.core.model.snapshot import Snapshot


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
    made = Rest(record.offering, record.pool, record.template, code, reason)
    at_s, name = record.launched_at_s, record.instance_id
    return replace(made, launched_at_s=at_s, instance_id=name)


def ended_while_booting(member: Member, snapshot: Snapshot) -> tuple[Rest, ...]:
    """A node that powers itself off would be bought again and again; its event may be lost. Where
    EC2 says that it had no room it has refused, whatever it had answered; where it took the node
    back nobody failed. What else it says of an end is told: the event does not say why.
    """
    record = member.record
    if record is None or record.ended_at_s is not None or record.is_orphan:
        return ()
    why = member.instance.state_reason if member.instance else ""
    cure = cure_of_state(why)
    if member.found_no_room:
        code = why.partition(".")[2]
        said = f"EC2 had no room for {record.instance_id} after all"
        found = Rest(record.offering, "", "", code, said, record.reservation)
    elif member.was_booting and member.instance and member.instance.is_reclaimed:
        if record.was_taken:  # its notice had the offering rest already
            return ()
        found = Rest(record.offering, "", "", TAKEN_BACK, LOSS)
    elif member.was_booting and cure is not Cure.NONE:
        said = f"EC2 ended {record.instance_id} as it started: {why}"
        found = replace(rest(record, BootFailure.ENDED, said), cure=cure)
    elif record.phase is Phase.LAUNCHED:
        found = rest(record, BootFailure.ENDED, "a node ended while it booted")
    else:
        return ()
    return () if is_told(found, snapshot) else (found,)


def is_told(rest: Rest, snapshot: Snapshot) -> bool:
    """What rests says so already: why, or for a failed boot what its node said."""
    for known in (*snapshot.resting, *snapshot.outweighed):
        if known.key != rest.key or known.until_s <= snapshot.now_s:
            continue
        if rest.is_refusal:
            return known.code == rest.code
        if rest.cure is not Cure.NONE and (known.code, known.cure) != (rest.code, rest.cure):
            continue
        return rest.is_told(known, snapshot.now_s)
    return False


def disappoints(node: Node, record: NodeRecord, cluster: Cluster) -> tuple[Action, ...]:
    """A node that joins DOWN or smaller than its type would be bought again and again."""
    expected = cluster.instance_type(record.offering.instance_type)
    if node.state.is_down:
        what = f"a node joined {node.state}: {node.reason or 'no reason given'}"
        return (rest(record, BootFailure.DOWN, what),)
    if expected and (
        node.memory_mib < expected.slurm_memory_mib
        or node.gpus < expected.gpus
        or node.cpus < expected.cpus
    ):
        what = f"a node joined with {node.gpus} GPUs, {node.cpus} CPUs, {node.memory_mib} MiB"
        return (rest(record, BootFailure.TOO_SMALL, what),)
    return ()
