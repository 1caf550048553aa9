"""What a job's deadline decides, now and when that changes."""

from collections.abc import Sequence
from dataclasses import replace

from tidegate.core.demand.deadline import due_s
from tidegate.core.demand.demand import Need, demand, kinds_running
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.members import Member, members
from tidegate.core.model.durations import moment, span
from tidegate.core.model.ec2 import Market
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.due import pressure
from tidegate.core.offers.offers import OfferGroups
from tidegate.core.passes.moving import Moving


def about_deadline(job: Job, on: Sequence[Member], snapshot: Snapshot) -> tuple[str, ...]:
    """A sentence for users; none where it has no deadline. `on`: the nodes that it has."""
    at_s = due_s(job)
    if at_s is None:
        return ()
    left_s = at_s - snapshot.now_s
    said = f"deadline {moment(at_s)} UTC, "
    said += f"in {span(left_s)}" if left_s > 0 else f"{span(-left_s)} ago"
    need = _need(job, snapshot)
    if need is None:
        return (said,)
    return (f"{said}; {_running(job, need, on, snapshot) or _waiting(need, snapshot)}",)


def _need(job: Job, snapshot: Snapshot) -> Need | None:
    """What it asks; None: it cannot start whatever is bought."""
    assert snapshot.digest is not None
    alone = replace(snapshot.digest.reading, jobs=(job,))
    found = [need for need, _ in kinds_running(alone, snapshot.cluster)]
    if not found:
        found = list(demand(alone, snapshot.cluster, frozenset())[0])
    return found[0] if found else None


def _waiting(need: Need, snapshot: Snapshot) -> str:
    now = pressure(need, snapshot.cluster, snapshot.now_s)
    left_s = now.spare_s - now.net_s
    if left_s >= 0:
        until = moment(snapshot.now_s + left_s)
        return f"there is time for spot and an interruption until {until} UTC, then on demand alone"
    if now.left_s < now.change_s + (need.shortest_s or 0.0):
        return "nothing that is bought now ends in time"
    return "there is no time for an interruption any more: on demand comes first"


def _running(job: Job, need: Need, on: Sequence[Member], snapshot: Snapshot) -> str:
    """Where it runs; "" where it does not, or nobody knows where."""
    if not job.is_running or not on:
        return ""
    if all(each.offering.market is not Market.SPOT for each in on):
        return f"it runs where nobody takes its nodes back; {_moves(job, snapshot)}"
    now = pressure(need, snapshot.cluster, snapshot.now_s)
    until_s = snapshot.now_s + now.spare_s - now.change_s - now.margin_s
    if until_s > snapshot.now_s:
        return (
            f"it runs on spot: taken back before {moment(until_s)} UTC, it could run again as a "
            "whole on demand"
        )
    return "it runs on spot, and taken back now it ends in time only by what it has saved"


def _moves(job: Job, snapshot: Snapshot) -> str:
    """Whether it is moved to spot, or why it stays."""
    fleet = Fleet(snapshot, members(snapshot))
    found = Moving(snapshot, fleet, OfferGroups(snapshot)).about(job)
    if isinstance(found, str):
        return f"it stays there: {found}"
    return (
        "it moves to spot as soon as limits and budgets allow it and nodes are there, which saves "
        f"{found.saves_usd:.2f} USD until its end"
    )
