"""What is bought while the head is silent: again what AWS takes from running jobs, and no more."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tidegate.core.buy.bins import Bins
from tidegate.core.buy.dealing import owned
from tidegate.core.buy.purchase import Purchase
from tidegate.core.buy.steering import Steering
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.members import Member
from tidegate.core.model.ledger import Launch, Phase
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.passes.doubt import count_doubt
from tidegate.core.passes.nodes import judge_nodes
from tidegate.core.passes.rollout import from_templates
from tidegate.core.passes.room import Room
from tidegate.core.passes.serve import serve_queue


def replacements(
    snapshot: Snapshot, fleet: Sequence[Member], launches_max: int
) -> tuple[Launch, ...]:
    """Nodes for the jobs that ran on nodes of a notice when the head was last heard.

    Once: what was bought counts as in flight until the head tells of it. A node that hears
    nothing of the head ends by itself after a while, so nothing is bought later than a boot
    takes after the reclaim, or it would be bought again and again.
    """
    digest, taken = snapshot.digest, _taken(snapshot)
    if digest is None or not taken:
        return ()
    jobs = [job for job in digest.reading.jobs if job.is_running and taken & set(job.node_names)]
    reading = replace(digest.reading, jobs=tuple(jobs))
    seen = replace(snapshot, digest=replace(digest, reading=reading))
    # What else they would do waits for the head.
    purchase = Purchase(seen, launches_max)
    bins, steering = Bins(), Steering(seen, purchase.offer_groups, purchase.usage)
    room = Room(Fleet(seen, fleet), bins, steering)
    count_doubt(seen, purchase, bins)
    judge_nodes(seen, room, purchase)
    serve_queue(seen, room, purchase, {})
    lost = {job.job_id: len(taken & set(job.node_names)) for job in jobs}
    launches = purchase.builder.launches(str(snapshot.epoch))
    few = [each for each in launches if each.count <= _lost(each, lost)]
    return tuple(from_templates(owned(few, jobs, snapshot.cluster.prefetch), snapshot))


def _lost(launch: Launch, lost: Mapping[str, int]) -> int:
    """How many nodes its jobs have lost: a gang that would go elsewhere as a whole has good ones
    yet, of which the head knows better.
    """
    return sum(lost.get(job_id, 0) for job_id in launch.for_jobs)


def _taken(snapshot: Snapshot) -> set[str]:
    boot_s = snapshot.cluster.timings.boot_bound_s
    return {
        record.instance_id
        for record in snapshot.nodes
        if record.phase is Phase.INTERRUPTED
        and snapshot.now_s <= (record.reclaim_at_s or 0.0) + boot_s
    }
