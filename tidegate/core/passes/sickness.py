"""Jobs whose nodes become unhealthy before they can start on them.

Whatever makes the nodes sick, a check that errs or an image that is broken, the next ones would
be as bad. So a job's nodes are replaced twice at most, then nothing is bought for it for 5, 15,
60 minutes, with one try in between, or until its request or its limits change.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from tidegate.core.fleet.drains import Hand, hand
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.judge import Judged, Use
from tidegate.core.model.budgets import DisruptionReason
from tidegate.core.model.drain_reason import DrainCode, code_of
from tidegate.core.model.plan import Unmet, Watch
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import Stuck, anew
from tidegate.core.passes.futile import WATCHES_MAX, Watched, back_off_s, passed_over, request

# Launches for one job of which no node is well: the first, and what has replaced it.
SICK_LAUNCHES_MAX = 2


def watch_sick(snapshot: Snapshot, fleet: Fleet, known: Mapping[str, Stuck]) -> Watched:
    """Note which waiting jobs have had launches of which every node that is left is unhealthy.

    Before the queue is served: what is bought for a job in this plan is too much already.
    """
    sick = _sick_launches(fleet.judged, snapshot.cluster.health_reasons)
    if not sick:
        return Watched()
    reading = snapshot.heard.reading
    watches: list[Watch] = []
    rests: dict[str, Unmet] = {}
    for job in sorted(reading.jobs, key=lambda job: job.job_id):
        if job.is_pending and job.job_id in sick:
            asked = request(job, reading)
            watch = _watch(known.get(job.job_id), job, asked, sick[job.job_id], snapshot.now_s)
            if watch:
                watches.append(watch)
                if watch.stuck.until_s > snapshot.now_s:
                    rests[job.job_id] = passed_over(watch.stuck, snapshot.now_s)
    return Watched(tuple(watches[:WATCHES_MAX]), rests)


def _sick_launches(
    judged: Iterable[Judged], health_reasons: Collection[str]
) -> dict[str, set[str]]:
    """By job, the launches for it of which no node is well."""
    sick: set[tuple[str, str]] = set()
    well: set[tuple[str, str]] = set()
    for each, job_id, launch_id in _bought(judged):
        is_sick = _is_sick(each, health_reasons)
        is_well = each.use in (Use.CAPACITY, Use.GATED, Use.IN_FLIGHT)
        if is_sick or is_well:
            (sick if is_sick else well).add((job_id, launch_id))
    found: dict[str, set[str]] = {}
    for job_id, launch_id in sick - well:
        found.setdefault(job_id, set()).add(launch_id)
    return found


def _is_sick(each: Judged, health_reasons: Collection[str]) -> bool:
    """Also one whose release is on its way: who sent it may have died before it wrote down why."""
    if each.disruption is DisruptionReason.UNHEALTHY:
        return True
    node = each.member.node
    if node is None or each.use is not Use.LEAVING or each.order is not None:
        return False
    is_let_go = code_of(node.reason) is DrainCode.UNHEALTHY
    is_softwares = hand(node, health_reasons) is Hand.SOFTWARE
    return node.state.is_down or (node.state.is_drain and (is_let_go or is_softwares))


def _bought(judged: Iterable[Judged]) -> Iterator[tuple[Judged, str, str]]:
    for each in judged:
        record = each.member.record
        for job_id in record.for_jobs if record else ():
            yield each, job_id, record.launch_id if record else ""


def _watch(
    before: Stuck | None, job: Job, asked: str, launches: set[str], now_s: float
) -> Watch | None:
    """What to write down about a job with these sick launches; None: nothing new."""
    known = anew(before, job.job_id, asked, now_s)
    fresh = launches - set(known.sick_launches)
    if not fresh:
        return None
    every = (*known.sick_launches, *sorted(fresh))
    if len(every) < SICK_LAUNCHES_MAX:
        reason = f"nodes bought for job {job.job_id} became unhealthy before it could start"
        return Watch(replace(known, sick_launches=every, since_s=now_s), reason)
    rest_s = back_off_s(known.failures)
    reason = (
        f"nothing is bought for job {job.job_id} for {rest_s:.0f} s: the nodes of "
        f"{len(every)} launches for it became unhealthy before it could start"
    )
    held = replace(
        known,
        sick_launches=every,
        since_s=now_s,
        failures=known.failures + 1,
        until_s=now_s + rest_s,
        is_sick=True,
    )
    return Watch(held, reason)
