"""Prepaid nodes that idle within a limit which keeps a job waiting.

To give back what is paid for saves nothing, so such nodes stay. But a limit of nodes, GPUs, CPUs or
memory counts them too, and without this they would stand in a job's way for ever.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

from tidegate.core.actions import OrderKind, Phase, Unmet
from tidegate.core.demand import Need, demand
from tidegate.core.members import Member
from tidegate.core.pack import gang_members
from tidegate.core.reconcile import Judged
from tidegate.core.shelves import Option
from tidegate.core.why import Why
from tidegate.core.work import Work
from tidegate.core.worth import usd_per_hour


def in_the_way(
    work: Work, idle: Sequence[Member], going: Collection[str]
) -> tuple[str, list[Member]]:
    """A job that a limit keeps waiting, and which of the idle nodes have to go for it.

    For one job at a time, the first in the queue that can be helped; "": there is none. `going`:
    nodes that this plan lets go: with those that leave already they may be enough.
    """
    needs = list(_limited(work)) if idle else []
    leaving = [each.member for each in work.judged if needs and _leaves(work, each, going)]
    for each in leaving:
        _count(work, each, -1)
    job_id, found = "", list[Member]()
    for need, option in ((n, o) for n in needs for o in work.shelves.options(n)):
        if found := _making_room(work, need, option, idle):
            job_id = need.job_id
            break
    for each in leaving:
        _count(work, each, 1)
    return job_id, found


def _limited(work: Work) -> Iterator[Need]:
    """Also jobs that this attempt at the plan passes over, so that others have their places."""
    passed = {key for key, unmet in work.passed_over.items() if _is_limited(unmet)}
    if passed:
        whole, _ = demand(work.digest.reading, work.snapshot.cluster, frozenset(), work.head_now_s)
        yield from (need for need in whole if need.job_id in passed)
    for need in work.needs:
        unmet = work.unmet.get(need.job_id)
        if unmet and _is_limited(unmet):
            yield need


def _is_limited(unmet: Unmet) -> bool:
    return any(each.kind is Why.LIMIT for each in unmet.why_nots)


def _leaves(work: Work, judged: Judged, going: Collection[str]) -> bool:
    """It makes room soon, whatever is decided here."""
    member = judged.member
    if member.node is None:
        return member.record is not None and member.record.phase is Phase.RELEASED
    is_told = judged.is_leaving or member.was_told(OrderKind.RELEASE, work.snapshot.now_s)
    return member.instance_id in going or (is_told and not member.node.state.is_busy)


def _making_room(work: Work, need: Need, option: Option, idle: Sequence[Member]) -> list[Member]:
    """The fewest nodes without which the limits hold what the job lacks there; none: no help."""
    pool, offering = option.shelf.pool.name, option.offering
    place = (pool, offering.zone)
    held = gang_members(work.bins.for_gang(need), need, place) if need.is_gang else []
    lacks = need.nodes - len(held) if need.is_gang else 1
    if lacks <= 0:  # another component of its job waits for room
        return []
    if option.shelf.market.is_prepaid and work.shelves.stock.left(offering) < lacks:
        return []
    load = work.load_of(offering.instance_type, option.usd_per_hour)

    def is_enough() -> bool:
        return work.usage.room(pool, lacks, load)[0] >= lacks

    kept = {each.name for each in held}
    return _fewest(work, [each for each in idle if each.instance_id not in kept], is_enough)


def _fewest(work: Work, idle: Sequence[Member], is_enough: Callable[[], bool]) -> list[Member]:
    """Which of them may not count any more, so that it is enough; in the end all count again."""
    gone: list[Member] = []
    for each in idle:
        if is_enough():
            break
        _count(work, each, -1)
        gone.append(each)
    found, helps = list[Member](), is_enough()
    for each in gone:
        _count(work, each, 1)
        if helps and not is_enough():
            _count(work, each, -1)
            found.append(each)
    for each in found:
        _count(work, each, 1)
    return found


def _count(work: Work, member: Member, times: int) -> None:
    usd = usd_per_hour(work.snapshot, member)
    work.usage.debit(member.pool, times, work.load_of(member.offering.instance_type, usd))
