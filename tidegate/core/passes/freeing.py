"""Running nodes whose jobs end before a new node could have booted."""

from dataclasses import replace

from tidegate.core.buy.bins import BinKind
from tidegate.core.fleet.judge import Use
from tidegate.core.model.slurm import Job, Node
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.passes.room import Room


def free_soon(snapshot: Snapshot, room: Room) -> bool:
    """Add the room of such jobs to what waiting jobs may count on; False: there is none.

    A node that is launched for them would join after it was needed, and idle.
    """
    is_any = False
    by_name = {each.name: each for each in room.bins.all}
    for each in room.fleet.judged:
        node, pool = each.member.node, snapshot.cluster.pool(each.member.pool)
        found = by_name.get(each.member.instance_id)
        if each.use is not Use.CAPACITY or node is None or pool is None or found is None:
            continue
        soon = [job for job in each.member.jobs if _ends_within(snapshot, job, pool.boot_s)]
        if soon:
            is_empty = len(soon) == len(each.member.jobs) and not found.jobs
            gpus, cpus, memory_mib = _freed(node, soon)
            freed = replace(
                found,
                kind=BinKind.FREEING,
                gpus=found.gpus + gpus,
                cpus=found.cpus + cpus,
                memory_mib=found.memory_mib + memory_mib,
                is_empty=is_empty,
                jobs=found.jobs,
            )
            if room.steering.is_mixed:
                room.steering.watch(freed)
            found.gpus = found.cpus = found.memory_mib = 0  # all of it is in the new bin
            room.bins.append(freed)
            is_any = True
    return is_any


def _ends_within(snapshot: Snapshot, job: Job, boot_s: float) -> bool:
    """Whether the job will have ended when a node launched now would join.

    One that runs longer than expected is taken to run until its time limit.
    """
    is_suspended = job.state == "SUSPENDED"  # nobody knows when it goes on
    if is_suspended or job.started_at_s is None or job.time_limit_s is None:
        return False
    now_s = snapshot.head_now_s
    expected_s = snapshot.cluster.expected_s(job.time_limit_s, job.account)
    ends = [job.started_at_s + each for each in (expected_s, job.time_limit_s) if each]
    left = [at_s - now_s for at_s in ends if at_s >= now_s]
    return bool(left) and min(left) <= boot_s


def _freed(node: Node, jobs: list[Job]) -> tuple[int, int, int]:
    """What the jobs give back of one node, no more than what is allocated there."""
    if any(job.shape.is_exclusive for job in jobs):
        return node.gpus_alloc, node.cpus_alloc, node.memory_alloc_mib
    return (
        min(sum(job.shape.gpus for job in jobs), node.gpus_alloc),
        min(sum(job.shape.cpus for job in jobs), node.cpus_alloc),
        min(sum(job.shape.memory_mib for job in jobs), node.memory_alloc_mib),
    )
