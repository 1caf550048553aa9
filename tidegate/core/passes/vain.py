"""Jobs for which nodes come and go unused, since something holds them back again each time.

A place under a cap of accounting gets free, and a node is bought for the job that is next; before
it has booted a job behind it, for which a node is there, has taken the place. Or another job takes
one node of a gang as they open, and a limit of the cluster file has no room for one more: Slurm
starts heterogeneous jobs by backfill alone, well after the others. So such a job's nodes are bought
twice, then nothing is for 5, 15, 60 minutes, with one try in between.

Source: Slurm's heterogeneous_jobs page ("only by the backfill scheduling plugin").
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tidegate.core.demand.accounting import covers
from tidegate.core.demand.pending_reasons import held_because
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.members import Member
from tidegate.core.model.drain_reason import DrainCode, code_of
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Action, Send, Watch
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import Stuck, anew
from tidegate.core.model.why import PASSED_OVER, Why
from tidegate.core.passes.futile import WATCHES_MAX, back_off_s, request
from tidegate.core.passes.queue import Queue

VAIN_LAUNCHES_MAX = 2


def watch_vain(
    snapshot: Snapshot,
    fleet: Fleet,
    queue: Queue,
    known: Mapping[str, Stuck],
    decided: Sequence[Action],
) -> Sequence[Action]:
    """Note which waiting jobs this plan lets the nodes go of that were bought for them."""
    reading, watches = snapshot.heard.reading, list[Watch]()
    leaders = {job.job_id: job.het_job_id for job in reading.jobs if job.het_job_id}
    launches: dict[str, set[str]] = {}
    for member in _let_go(fleet, decided):
        record = member.record
        for job_id in record.for_jobs if record and _is_unused(snapshot, member) else ():
            whole = leaders.get(job_id, job_id)
            launches.setdefault(whole, set()).add(record.launch_id if record else "")
    if not launches:
        return ()
    for job in sorted(reading.jobs, key=lambda job: job.job_id):
        if job.job_id in launches and _is_over_a_limit(snapshot, queue, job):
            asked = request(job, reading)
            watches += _watch(
                known.get(job.job_id), job, asked, launches[job.job_id], snapshot.now_s
            )
    return watches[:WATCHES_MAX]


def _is_over_a_limit(snapshot: Snapshot, queue: Queue, job: Job) -> bool:
    """It has never run, and waits for nothing but a place under a cap, or under a limit of which
    what took its place has the rest: what is held by its user, or begins later, needs its node when
    that is over.
    """
    unmet = queue.unmet.get(job.job_id)
    if not job.is_pending or job.restarts or unmet is None:
        return False
    if any(each.kind in (*PASSED_OVER, Why.FAULTS) for each in unmet.why_nots):
        return False  # it is held back already
    is_gang = job.nodes > 1 or bool(job.het_job_id)
    if is_gang and any(each.kind is Why.LIMIT for each in unmet.why_nots):
        return True
    is_slurms_word = job.reason.startswith(("Assoc", "QOS"))
    is_capped = any(covers(each, job) for each in snapshot.heard.reading.associations)
    return is_slurms_word or (is_capped and not held_because(job.reason))


def _let_go(fleet: Fleet, decided: Sequence[Action]) -> Iterator[Member]:
    names = {
        name
        for each in decided
        if isinstance(each, Send) and each.order.kind is OrderKind.RELEASE
        if code_of(each.order.text) is DrainCode.EMPTY
        for name in each.order.names
    }
    for each in fleet.judged if names else ():
        if each.member.instance_id in names:
            yield each.member


def _is_unused(snapshot: Snapshot, member: Member) -> bool:
    """Slurm has called it idle since it joined: to a new node it says so of its registration. One
    that booted quickly may have run a short job meanwhile.
    """
    pool = snapshot.cluster.pool(member.pool)
    if member.node is None or pool is None:
        return False
    return member.node.last_busy_at_s - member.launched_at_s <= pool.boot_s


def _watch(
    before: Stuck | None, job: Job, asked: str, launches: set[str], now_s: float
) -> Iterator[Watch]:
    known = anew(before, job.job_id, asked, now_s)
    every = tuple(dict.fromkeys((*known.vain_launches, *sorted(launches))))
    noted = replace(known, vain_launches=every, since_s=now_s)
    if len(every) < VAIN_LAUNCHES_MAX:
        yield Watch(noted, f"a node came for job {job.job_id}, and goes unused")
        return
    rest_s = back_off_s(known.failures)
    held = replace(
        noted,
        failures=known.failures + 1,
        until_s=now_s + rest_s,
        is_sick=False,
        is_vain=True,
    )
    reason = (
        f"nothing is bought for job {job.job_id} for {rest_s:.0f} s: the nodes of {len(every)} "
        f"launches for it went unused"
    )
    yield Watch(held, reason)
