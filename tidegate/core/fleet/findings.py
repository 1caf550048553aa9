"""Nodes that software found unhealthy, and checks that are believed no more.

A check that errs would slowly empty a fleet, however small the budget for unhealthy nodes is. So
what each check found in a day is remembered, and beyond a share of the pool its word counts no
more: what it drains stays, and nothing is bought instead, until a person says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tidegate.core.fleet.drains import Hand, check_of, hand, is_a_check, is_misfit
from tidegate.core.fleet.ladder import with_reboots
from tidegate.core.fleet.members import Member
from tidegate.core.model.durations import moment
from tidegate.core.model.finding import (
    CHECK_COUNTS_S,
    FINDING_KEPT_S,
    FINDINGS_MAX,
    Finding,
    Severity,
    StoppedCheck,
    believed,
    checker,
    needs_test,
    network_node_of,
    severity_of,
)
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.snapshot import Snapshot

# Nodes that one sentence names.
NAMED_MAX = 5


def with_findings(before: PoolHistory, ours: Sequence[Member], snapshot: Snapshot) -> PoolHistory:
    """What is remembered once this snapshot was seen. `ours`: the pool's nodes."""
    sick = {each.instance_id: each for each in ours if _is_found_sick(each, snapshot)}
    history = _lifted(before, sick)
    if history.excused and not any(each.instance_id in history.excused for each in ours):
        history = replace(history, excused=())
    known = {each.instance_id for each in history.findings} | set(history.excused)
    for name in sorted(sick.keys() - known):
        found = _finding(sick[name], ours, snapshot)
        if any(each.is_by(found.check) for each in history.stopped_checks):
            continue
        counting = _counting(history, found)
        most = max(each.pool_nodes for each in (*counting, found))
        is_check = is_a_check(found.check) and not found.is_fatal
        if len(counting) < believed(most, is_check=is_check):
            history = _noted(history, found)
        else:
            stop = StoppedCheck(_checker(found.check), snapshot.now_s, len(counting), most)
            history = replace(history, stopped_checks=(*history.stopped_checks, stop))
    return with_reboots(history, sick, ours, snapshot)


def told_reset(before: PoolHistory, after: PoolHistory) -> dict[str, str]:
    """What nodes have said since of the reset of their GPUs."""
    known = {each.instance_id: each.reset_said for each in before.findings}
    return {
        each.instance_id: each.reset_said
        for each in after.findings
        if known.get(each.instance_id, each.reset_said) != each.reset_said
    }


def stopped_by(member: Member, snapshot: Snapshot) -> StoppedCheck | None:
    """The check that drained this node and whose word counts no more; None: it goes.

    When the cluster stops it goes with all others.
    """
    history = _history(snapshot, member.pool)
    if history is None or not snapshot.wanted.is_up or not _is_found_sick(member, snapshot):
        return None
    name = member.instance_id
    if name in history.excused or any(each.instance_id == name for each in history.findings):
        return None
    assert member.node is not None, "Slurm knows whom it drains"
    check = check_of(member.node)
    return next((each for each in history.stopped_checks if each.is_by(check)), None)


def stopped_checks(snapshot: Snapshot, fleet: Sequence[Member]) -> Iterator[str]:
    """Checks whose word counts no more: what they did, what that means, and what to do."""
    return (sentence for _, _, sentence in doubted_checks(snapshot, fleet))


def doubted_checks(
    snapshot: Snapshot, fleet: Sequence[Member]
) -> Iterator[tuple[str, StoppedCheck, str]]:
    """The same with pool and check."""
    for history in sorted(snapshot.pool_history, key=lambda each: each.pool):
        for stop in history.stopped_checks:
            ours = (each for each in fleet if each.pool == history.pool)
            held = [each.instance_id for each in ours if stopped_by(each, snapshot) == stop]
            said = f"pool {history.pool}: {doubt(stop)}; {_remedy(history.pool, held)}"
            yield history.pool, stop, said


def doubt(stop: StoppedCheck) -> str:
    """Why a check is believed no more."""
    return (
        f"the check `{stop.check}` may err and is believed no more since "
        f"{moment(stop.since_s)} UTC: it had found {stop.found} of {stop.of} nodes unhealthy in a "
        "day, and then another"
    )


def _remedy(pool: str, held: Sequence[str]) -> str:
    sick = f"where the nodes are sick, let them go: tidegate retry {pool}"
    if not held:
        return f"mend it, then: tidegate retry {pool}"
    more = f" and {len(held) - NAMED_MAX} more" if len(held) > NAMED_MAX else ""
    names = ", ".join(held[:NAMED_MAX]) + more
    are = "nodes are" if len(held) > 1 else "node is"
    opened = f"scontrol update NodeName={','.join(held)} State=resume"
    return (
        f"{len(held)} {are} held back ({names}) and nothing is bought for the pool; mend the "
        f"check, then: {opened}, and tidegate retry {pool}; {sick}"
    )


def _history(snapshot: Snapshot, pool: str) -> PoolHistory | None:
    ours = (each for each in snapshot.pool_history if each.pool == pool and each.stopped_checks)
    return next(ours, None)


def _is_found_sick(member: Member, snapshot: Snapshot) -> bool:
    """A check has drained it. Of a node that is DOWN none speaks: Slurm does not hear it."""
    node = member.node
    if node is None or member.record is None or not node.state.is_drain or node.state.is_down:
        return False
    is_softwares = hand(node, snapshot.cluster.health_reasons) is Hand.SOFTWARE
    return is_softwares and not is_misfit(node)


def _lifted(history: PoolHistory, sick: Mapping[str, Member]) -> PoolHistory:
    """After a person's word: what its check has drained until now goes, and it counts anew."""
    lifted = [each for each in history.stopped_checks if each.is_lifted]
    if not lifted:
        return history

    def counts_anew(check: str) -> bool:
        return any(each.is_by(check) for each in lifted)

    let_go = {n for n, each in sick.items() if each.node and counts_anew(check_of(each.node))}
    return replace(
        history,
        findings=tuple(each for each in history.findings if not counts_anew(each.check)),
        stopped_checks=tuple(each for each in history.stopped_checks if not each.is_lifted),
        excused=tuple(sorted(let_go | (set(history.excused) & sick.keys()))),
    )


def _counting(history: PoolHistory, found: Finding) -> list[Finding]:
    since_s = found.at_s - CHECK_COUNTS_S
    by = _checker(found.check)
    same = (each for each in history.findings if _checker(each.check) == by)
    return [each for each in same if each.at_s > since_s]


def _checker(check: str) -> str:
    """Slurm's own words are no program's."""
    return checker(check) if is_a_check(check) else check


def _noted(history: PoolHistory, found: Finding) -> PoolHistory:
    kept = [each for each in history.findings if each.at_s > found.at_s - FINDING_KEPT_S]
    return replace(history, findings=(*kept, found)[-FINDINGS_MAX:])


def _finding(member: Member, ours: Sequence[Member], snapshot: Snapshot) -> Finding:
    assert member.node is not None, "Slurm knows whom it drains"
    up = [each for each in ours if each.node is not None or each is member]
    return Finding(
        member.instance_id,
        check_of(member.node),
        member.offering,
        snapshot.now_s,
        pool_nodes=len(up),
        place_nodes=sum(each.offering == member.offering for each in up),
        template=member.template,
        reservation=member.instance.capacity_reservation_id if member.instance else "",
        is_fatal=severity_of(member.node.reason) is Severity.FATAL,
        needs_test=needs_test(member.node.reason),
        network_node=network_node_of(member.node.reason),
        reset_said=member.record.reset_said if member.record else "",
    )
