"""Running nodes whose jobs end before a new node could have booted.

A time limit is certain: Slurm ends the job. How long jobs run before it is a guess, and who waits
for one that does not end waits for a boot after that. So the time that is lost on average, at what
it costs the waiting job, is held against what the boot of a node of its own costs.
"""

from dataclasses import replace
from functools import partial

from tidegate.core.buy.bins import BinKind
from tidegate.core.buy.parts import parts_freed
from tidegate.core.buy.steering import ends_chance
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
        found_s = ((job, _later_s(snapshot, job, pool.boot_s)) for job in each.member.jobs)
        ending = [(job, later_s) for job, later_s in found_s if later_s is not None]
        if ending:
            soon = [job for job, _ in ending]
            later_s = max(later_s for _, later_s in ending)
            is_empty = len(soon) == len(each.member.jobs) and not found.jobs
            gpus, cpus, memory_mib = _freed(node, soon)
            parts = found.parts and parts_freed(found.parts, node, soon, is_all=is_empty)
            freed = replace(
                found,
                kind=BinKind.FREEING,
                gpus=parts.gpus if parts else found.gpus + gpus,
                parts=parts,
                cpus=found.cpus + cpus,
                memory_mib=found.memory_mib + memory_mib,
                is_empty=is_empty,
                jobs=found.jobs,
            )
            if later_s or room.steering.is_mixed:
                freed.worth = partial(room.steering.awaits, freed, later_s)
            found.gpus = found.cpus = found.memory_mib = 0  # all of it is in the new bin
            room.bins.append(freed)
            is_any = True
    return is_any


def _later_s(snapshot: Snapshot, job: Job, boot_s: float) -> float | None:
    """How much later than on a node launched now one would start on average that waits for the end
    of this job; 0: never. None: it is not expected to end before that node would join.

    One that runs longer than expected is taken to run until its time limit.
    """
    is_suspended = job.state == "SUSPENDED"  # nobody knows when it goes on
    if is_suspended or job.started_at_s is None or job.time_limit_s is None:
        return None
    ran_s = snapshot.head_now_s - job.started_at_s
    if 0.0 <= job.time_limit_s - ran_s <= boot_s:
        return 0.0
    expected_s = snapshot.cluster.expected_s(job.time_limit_s, job.account)
    if not expected_s or not 0.0 <= expected_s - ran_s <= boot_s:
        return None
    left_s = expected_s - ran_s
    return max(left_s - ends_chance(expected_s, ran_s, left_s) * boot_s, 0.0)


def _freed(node: Node, jobs: list[Job]) -> tuple[int, int, int]:
    """What the jobs give back of one node, no more than what is allocated there."""
    if any(job.shape.is_exclusive for job in jobs):
        return node.gpus_alloc, node.cpus_alloc, node.memory_alloc_mib
    return (
        min(sum(job.shape.gpus for job in jobs), node.gpus_alloc),
        min(sum(job.shape.cpus for job in jobs), node.cpus_alloc),
        min(sum(job.shape.memory_mib for job in jobs), node.memory_alloc_mib),
    )
