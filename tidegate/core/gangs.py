"""Gangs: all nodes or none, held back from smaller jobs until they can open at once."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from tidegate.core.actions import OrderKind, PendingOrder
from tidegate.core.demand import Need
from tidegate.core.pack import Bin, BinKind, gang_members
from tidegate.core.why import told
from tidegate.core.work import Gang, Work


def hold(work: Work, need: Need) -> Gang:
    """Note which existing nodes a gang will count on; nobody of lower priority gets them."""
    within = _place(work, need.beside)
    held = gang_members(work.bins.for_gang(need), need, within)
    if need.beside and len(held) < need.nodes:
        need, held = _moved(work, need) or (need, held)
    gang = Gang(need, held, [copy(each) for each in held])
    for each in held:
        each.put(need)
    work.gangs.append(gang)
    return gang


def _moved(work: Work, need: Need) -> tuple[Need, list[Bin]] | None:
    """The whole gang, where it is on its way to another place already; None when it is not."""
    whole = replace(need, nodes=need.nodes + len(need.beside), beside=())
    gated = (each for each in work.bins.for_gang(need) if each.gated_for)
    held = gang_members(gated, whole)
    return (whole, held) if len(held) == whole.nodes else None


def complete(work: Work, gang: Gang) -> bool:
    """Buy what a gang lacks; otherwise give back what it held."""
    need, held = gang.need, gang.held
    missing = need.nodes - len(held)
    bought: list[str] = []
    if missing and work.snapshot.wanted.is_up:
        within = _place(work, need.beside)
        if held:
            within = (held[0].pool, held[0].offering.zone)
        bought = work.shop.buy_gang(need, missing, within)
        if not bought and within:
            # Not here: then all of it elsewhere, with those that it has beside.
            bought = work.shop.buy_gang(need, gang.nodes)
            if bought:
                give_back(work, gang)
                held = []
    if missing and not bought:
        give_back(work, gang)
        why_nots = work.refuse_reasons(need, missing)
        work.refuse(need.job_id, why_nots, told(why_nots))
        return False
    gang.is_complete = True
    kinds = {each.kind for each in held}
    reason = "nodes that fit are up: Slurm will start it"
    if bought:
        reason = "nodes are being bought for it"
    elif kinds != {BinKind.EXISTING}:
        reason = "nodes are booting for it"
    work.note_served(need.job_id, (*(each.name for each in held), *bought), reason)
    return True


def give_back(work: Work, gang: Gang) -> None:
    """Open nodes that the gang held take other jobs again."""
    for each, before in zip(gang.held, gang.before, strict=True):
        each.jobs.remove(gang.need.job_id)
        if not each.gated_for:
            work.bins.append(before)
    gang.held, gang.before = [], []


def _place(work: Work, names: Sequence[str]) -> tuple[str, str] | None:
    """Pool and zone of the first of these nodes; None when none is known."""
    wanted = set(names)
    for each in work.bins.all if wanted else ():
        if each.name in wanted:
            return each.pool, each.offering.zone
    return None


def open_gangs(work: Work) -> None:
    """Undrain the members of each complete gang in one command; free those of gone gangs."""
    records = {record.instance_id: record for record in work.snapshot.nodes}
    waiting: dict[str, Gang] = {}
    for gang in work.gangs:  # of an array of gangs, one that has its nodes counts
        if gang.is_complete or gang.need.job_id not in waiting:
            waiting[gang.need.job_id] = gang
    for job_id, held in work.bins.gated():
        bins = [each for each in held if each.kind is BinKind.EXISTING]
        names, reason = _to_open(work, waiting.get(job_id), job_id, bins)
        orders = [records[name].order for name in names if name in records]
        if any(o and o.kind is OrderKind.UNDRAIN and _is_open(work, o) for o in orders):
            continue
        if names:
            work.send(OrderKind.UNDRAIN, names, reason, only_if=("DRAIN",))


def _to_open(
    work: Work, gang: Gang | None, job_id: str, gated: Sequence[Bin]
) -> tuple[tuple[str, ...], str]:
    """Which of a gang's gated nodes open now, and why; an array of gangs opens one by one."""
    names = sorted(b.name for b in gated)
    using = [b for b in work.bins.all if job_id in b.jobs]
    bought = gang is not None and gang.is_complete
    if gang is None or not (using or bought):
        return tuple(names), f"job {job_id} no longer waits for this node"
    there = [b for b in using if b.kind is BinKind.EXISTING]
    num_open = sum(not b.gated_for for b in there)
    num_opening = max(len(there) // gang.nodes * gang.nodes - num_open, 0)
    return tuple(names[:num_opening]), f"all {gang.nodes} nodes of job {job_id} are there"


def _is_open(work: Work, order: PendingOrder) -> bool:
    """Neither answered in the digest nor expired."""
    answered = any(r.order_id == order.order_id for r in work.digest.results)
    return not answered and work.snapshot.now_s <= order.not_after_s
