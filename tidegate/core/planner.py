"""The planner: one pure function from what was seen to what should be done.

A plan is made by passes over one working state, in a written order: finish what is in doubt,
judge every node, save what is lost, serve the queue (existing nodes, then nodes in flight,
then new ones), open complete gangs, keep what a pool wants to keep, release the idle.
"""

from collections.abc import Callable

from tidegate.core.actions import Plan
from tidegate.core.buy import LAUNCHES_MAX
from tidegate.core.gangs import open_gangs
from tidegate.core.idle import keep_warm, release_idle
from tidegate.core.nodes import (
    end_released,
    finish_launches,
    judge_nodes,
    order_out,
    reopen,
    save_jobs,
)
from tidegate.core.serving import serve_queue
from tidegate.core.snapshot import Snapshot
from tidegate.core.work import Work

type Pass = Callable[[Work], None]

PASSES: tuple[Pass, ...] = (
    finish_launches,
    judge_nodes,
    save_jobs,
    order_out,
    reopen,
    serve_queue,
    open_gangs,
    keep_warm,
    release_idle,
)

# While the head is silent nobody knows what runs where.
PASSES_IN_SILENCE: tuple[Pass, ...] = (finish_launches, end_released)


def plan(snapshot: Snapshot, *, launches_max: int = LAUNCHES_MAX) -> Plan:
    """What to do about `snapshot`, and one verdict for every pending job.

    The same snapshot, in any order of its parts, gives the same plan.
    """
    work = Work(snapshot, launches_max)
    stale = snapshot.staleness
    for run in PASSES_IN_SILENCE if stale else PASSES:
        run(work)
    if stale:
        return Plan(work.sorted_actions(), (), (), (stale,))
    work.actions.extend(work.shop.launches(str(snapshot.epoch)))
    return Plan(
        work.sorted_actions(),
        tuple(work.served[key] for key in sorted(work.served)),
        tuple(work.unmet[key] for key in sorted(work.unmet)),
        is_cut=work.shop.is_cut,
        usd_per_hour=round(work.usage.expected_usd_per_hour, 4),
    )
