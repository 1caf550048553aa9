"""Jobs of several nodes that lose some: requeued at once, and their good nodes kept for them.

A node that does not answer is DOWN for Slurm after SlurmdTimeout, and within the same moment the
nodes beside it go to whoever waits. So they are drained as soon as it is silent. A node whose GPU
has failed answers on, and what computes there waits for ever.
"""

from collections.abc import Iterator, Mapping

from tidegate.core.demand.held import holds
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.judge import Judged, Use
from tidegate.core.fleet.resume import gang_of, is_failed, kept_for
from tidegate.core.interruption.save import RUNS
from tidegate.core.model.drain_reason import sentence_of
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Action
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import Stuck
from tidegate.core.passes.futile import held_back
from tidegate.core.passes.orders import ANY_STATE, Guard, order


def failed_nodes(fleet: Fleet) -> frozenset[str]:
    """Nodes of ours on which no job of several nodes gets on any more, and that still answer."""
    return frozenset(
        node.name
        for each in fleet.judged
        if (node := each.member.node) and is_failed(node) and not node.state.is_down
    )


def requeue_failed(snapshot: Snapshot, fleet: Fleet) -> Iterator[Action]:
    """Requeue jobs of several nodes at once of which one node's GPU has failed.

    A job of one node goes on: it ends by itself when it was hit.
    """
    failed = failed_nodes(fleet)
    if not failed:
        return
    reasons = {node.name: sentence_of(node.reason) for node in snapshot.heard.reading.nodes}
    for job in _gangs(snapshot):
        on = tuple(sorted(failed & set(job.node_names)))
        if on and job.is_requeueable:
            why = f"node {on[0]} of job {job.job_id} has failed: {reasons[on[0]]}"
            guard = Guard(only_if=RUNS, on_nodes=on, restarts=job.restarts)
            yield order(OrderKind.REQUEUE, (job.job_id,), why, why=why, **guard)


def keep_beside_silent(snapshot: Snapshot, fleet: Fleet) -> Iterator[Action]:
    """Start no new job on the nodes beside one that does not answer; what runs there goes on."""
    silent = _silent(snapshot, fleet)
    if not silent:
        return
    now_s = snapshot.now_s
    until_s = now_s + snapshot.cluster.timings.given_up_s
    free = {
        each.member.instance_id
        for each in fleet.judged
        if each.use is Use.CAPACITY
        and not each.is_closed
        and not each.member.has_order(OrderKind.DRAIN, now_s)
    }
    for job in _gangs(snapshot):
        names = set(job.node_names)
        good = tuple(sorted(names & free - silent))
        if good and job.is_requeueable and not names.isdisjoint(silent):
            free.difference_update(good)
            fleet.keeps(good, gang_of(job))
            kept = kept_for(gang_of(job), until_s)
            yield order(OrderKind.DRAIN, good, kept, only_if=ANY_STATE)


def kept_by_slurm(snapshot: Snapshot) -> set[str]:
    """The gangs of which Slurm keeps the good nodes (`--requeue=expedite`)."""
    return {gang_of(job) for job in snapshot.heard.reading.jobs if job.is_expediting}


def ending_runs(snapshot: Snapshot) -> frozenset[str]:
    """Requeued jobs whose last run still ends: they wait for nodes, and are in no plan yet."""
    jobs = snapshot.heard.reading.jobs
    return frozenset(gang_of(j) for j in jobs if j.state == "COMPLETING" and j.restarts)


def waiting_for_nodes(
    snapshot: Snapshot, fleet: Fleet, known: Mapping[str, Stuck]
) -> frozenset[str]:
    """The jobs for which good nodes stay kept although the rest cannot be had yet: they lost
    nodes, or are about to.
    """
    going = _silent(snapshot, fleet) | failed_nodes(fleet)
    stopped = {job_id for job_id, each in known.items() if each.held_at_s}
    passed_over = stopped.union(held_back(snapshot))
    found: set[str] = set()
    for job in snapshot.heard.reading.jobs:
        is_hit = job.is_running and not going.isdisjoint(job.node_names)
        is_next = job.is_pending and job.restarts and not job.is_expediting
        is_next = is_next and job.job_id not in passed_over
        if job.is_requeueable and (is_hit or (is_next and not _is_held(job, snapshot))):
            found.add(gang_of(job))
    return frozenset(found)


def _is_held(job: Job, snapshot: Snapshot) -> bool:
    return bool(holds(job, 0.0, snapshot.head_now_s))


def _gangs(snapshot: Snapshot) -> list[Job]:
    """Running jobs of more than one node, in the order of their ids."""
    running = [job for job in snapshot.heard.reading.jobs if job.is_running]
    found = [job for job in running if len(job.node_names) > 1]
    return sorted(found, key=lambda job: job.job_id)


def _silent(snapshot: Snapshot, fleet: Fleet) -> frozenset[str]:
    """Nodes with jobs that do not answer. Slurm says so as well of one that was just opened."""
    return frozenset(each.member.instance_id for each in fleet.judged if _is_silent(each, snapshot))


def _is_silent(judged: Judged, snapshot: Snapshot) -> bool:
    member = judged.member
    if member.node is None or not member.node.state.is_silent:
        return False
    is_opened = member.was_told(OrderKind.UNDRAIN, snapshot.now_s)
    return bool(member.jobs) and not (member.node.state.is_down or is_opened)
