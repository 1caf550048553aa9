"""The site's checks of idle nodes, as people see them: what they use, and who was checked when."""

from tidegate.core.fleet.idle_check import due_since_s, gpus_of, idle_check_of, used_today
from tidegate.core.fleet.idle_pairs import suspects
from tidegate.core.fleet.members import Member, members
from tidegate.core.fleet.templates import history_of
from tidegate.core.model.durations import span
from tidegate.core.model.frozen import frozen
from tidegate.core.model.idle_check import IdleChecks
from tidegate.core.model.snapshot import Snapshot


@frozen
class IdleChecksNow:
    """`gpu_hours`: of today (UTC), with what running ones may still use. `due`: nodes whose check
    is due, of `nodes` that have one; `on`: where one waits or runs.
    """

    gpu_hours: float
    gpu_hours_per_day: float
    due: int
    nodes: int
    on: tuple[str, ...] = ()


def idle_checks_now(snapshot: Snapshot) -> IdleChecksNow | None:
    """How far the checks of idle nodes are; None: the cluster has none."""
    check = snapshot.cluster.idle_check
    if check is None:
        return None
    states = {each.pool: each.idle_checks for each in snapshot.pool_history if each.idle_checks}
    ours = [each for each in members(snapshot) if _has_check(each, snapshot)]
    due = [
        each
        for each in ours
        if due_since_s(history_of(snapshot, each.pool), each, check) <= snapshot.now_s
    ]
    on = sorted(name for state in states.values() if state.asked for name in state.asked.nodes)
    used = round(used_today(snapshot), 2)
    return IdleChecksNow(used, check.gpu_hours_per_day, len(due), len(ours), tuple(on))


def checked(member: Member, snapshot: Snapshot) -> str:
    """When the node was checked last, in words; "": it has no check."""
    if not _has_check(member, snapshot):
        return ""
    found = (each.idle_checks for each in snapshot.pool_history if each.pool == member.pool)
    state = next(found, None) or IdleChecks()
    name = member.instance_id
    if state.asked and name in state.asked.nodes:
        return "is being checked"
    alone = (
        "failed, has another"
        if state.is_suspect(name)
        else _ago(state.last_s(name), snapshot.now_s)
    )
    check = snapshot.cluster.idle_check
    if check is None or check.pair is None:
        return alone
    is_suspect = name in suspects(state.pairs.tried)
    pair = "suspect" if is_suspect else _ago(state.last_s(name, is_pair=True), snapshot.now_s)
    return f"{alone}; in a pair {pair}"


def _ago(at_s: float | None, now_s: float) -> str:
    return "never" if at_s is None else f"{span(max(now_s - at_s, 0.0))} ago"


def _has_check(member: Member, snapshot: Snapshot) -> bool:
    is_ours = idle_check_of(snapshot, member.pool) is not None
    return is_ours and member.node is not None and gpus_of(snapshot, member) > 0
