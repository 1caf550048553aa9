"""How many jobs come for nodes of a type within a boot: what a spare node would have saved them.

Time is cut into pieces as long as a boot. In each the nodes are counted that new jobs filled: of
2.5 nodes the first two were wanted whole and the third half. For the first, the second and the
n-th spare node two shares follow, each as a mean over the last hour and over the last day with
weights that fade: how many jobs it would have started a boot sooner, and in how many pieces any
took it. What counts is the geometric mean of hour and day: one burst says little, and so does a
day that is over. The hours of the week are remembered beside that, see `week`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import ceil, exp, sqrt

from tidegate.core.fleet.week import HOUR_S, hour_at, judged, with_piece
from tidegate.core.model.pool_history import Arrivals, SpareNode

LATELY_S = 3600.0
DAILY_S = 86400.0

# More spare nodes of one type than this are never had.
SPARE_MAX = 32

# Of a boot that takes no time.
PIECE_MIN_S = 1.0

# What is less is no reason for anything, and is forgotten.
NOTHING = 1e-5

# Of all types of a pool together: hours of the week and spare nodes. DynamoDB takes 400 KB in an
# item, and a pool's has more in it than these; a type for which jobs come at all hours has 168.
ROWS_MAX = 1700


def until(arrivals: Arrivals, boot_s: float, now_s: float) -> Arrivals:
    """With every piece of time closed that has ended."""
    piece_s = max(boot_s, PIECE_MIN_S)
    piece = int(now_s // piece_s)
    ended = piece - arrivals.piece
    if not arrivals.piece or ended < 0:  # the first ones, or another boot time than before
        return replace(arrivals, piece=piece)
    if not ended:
        return arrivals
    spare = _closed(arrivals, piece_s)
    if ended > 1:
        fades = _fades(piece_s * (ended - 1))
        spare = [_faded(each, *fades) for each in spare]
    week = arrivals.week
    if arrivals.nodes:
        hour = hour_at(arrivals.piece * piece_s)
        week = with_piece(week, hour, piece_s, arrivals.jobs, arrivals.nodes)
    late_nodes = sum(map(used, spare)) * HOUR_S / piece_s
    week = judged(week, hour_at(piece * piece_s), late_nodes)
    return Arrivals(arrivals.instance_type, piece, spare=_without_nothing(spare), week=week)


def with_jobs(arrivals: Arrivals, jobs: float, nodes: float) -> Arrivals:
    """With jobs that came in the piece of time that has not ended, as it is remembered.

    `jobs`: how many, each as much as its waiting costs; `nodes`: those that they fill.
    """
    return replace(
        arrivals,
        jobs=round(arrivals.jobs + jobs, 4),
        nodes=round(arrivals.nodes + nodes, 4),
        spare=tuple(map(_rounded, arrivals.spare)),
    )


def remembered(known: Iterable[Arrivals]) -> tuple[Arrivals, ...]:
    """Those of the types that jobs came for last, as many as the pool's record has room for."""
    kept, rows = [], 0
    for each in sorted(known, key=lambda one: (-one.piece, one.instance_type)):
        rows += 1 + len(each.spare) + (len(each.week.hours) if each.week else 0)
        if rows > ROWS_MAX:
            break
        kept.append(each)
    return tuple(sorted(kept, key=lambda one: one.instance_type))


def saved(spare: SpareNode) -> float:
    """How many jobs such a node starts sooner within each boot."""
    return sqrt(spare.saved_lately * spare.saved_daily)


def used(spare: SpareNode) -> float:
    """The share of time in which a job takes it."""
    return sqrt(spare.used_lately * spare.used_daily)


def _closed(arrivals: Arrivals, piece_s: float) -> list[SpareNode]:
    count = max(len(arrivals.spare), min(ceil(arrivals.nodes), SPARE_MAX))
    known = [*arrivals.spare, *[SpareNode()] * (count - len(arrivals.spare))]
    lately, daily = _fades(piece_s)
    found: list[SpareNode] = []
    for number, each in enumerate(known):
        share = min(max(arrivals.nodes - number, 0.0), 1.0)
        jobs = arrivals.jobs * share / arrivals.nodes if share else 0.0
        found.append(
            SpareNode(
                each.saved_lately * lately + (1 - lately) * jobs,
                each.saved_daily * daily + (1 - daily) * jobs,
                each.used_lately * lately + (1 - lately) * (share > 0),
                each.used_daily * daily + (1 - daily) * (share > 0),
            )
        )
    return found


def _fades(after_s: float) -> tuple[float, float]:
    return exp(-after_s / LATELY_S), exp(-after_s / DAILY_S)


def _faded(spare: SpareNode, lately: float, daily: float) -> SpareNode:
    return SpareNode(
        spare.saved_lately * lately,
        spare.saved_daily * daily,
        spare.used_lately * lately,
        spare.used_daily * daily,
    )


def _rounded(spare: SpareNode) -> SpareNode:
    return SpareNode(
        round(spare.saved_lately, 6),
        round(spare.saved_daily, 6),
        round(spare.used_lately, 6),
        round(spare.used_daily, 6),
    )


def _without_nothing(spare: Sequence[SpareNode]) -> tuple[SpareNode, ...]:
    end = len(spare)
    while end and max(saved(spare[end - 1]), spare[end - 1].used_daily) < NOTHING:
        end -= 1
    return tuple(spare[:end])
