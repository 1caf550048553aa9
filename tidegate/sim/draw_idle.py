"""Worlds whose cluster file says what becomes of jobs whose GPUs idle."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.gpu_use import IdleAction, IdleGpus, IdleRule
from tidegate.sim.draw_jobs import ACCOUNTS
from tidegate.sim.options import Arrival, Windows

SHARE = 0.06
EXEMPT = "tidegate:idle-ok"
# The first ten minutes of a run do not count.
LASTS_S = (1500.0, 2600.0)
DAY_S = 7200.0


def with_idle_gpus(
    chance: Random, cluster: Cluster, arrivals: Sequence[Arrival]
) -> tuple[Cluster, tuple[Arrival, ...]]:
    """In a few worlds, where some jobs last long enough, and some of these are exempt."""
    if chance.random() >= SHARE:
        return cluster, tuple(arrivals)
    rule = IdleRule(
        chance.choice((IdleAction.CANCEL, IdleAction.CANCEL, IdleAction.REQUEUE, IdleAction.TELL)),
        after_s=chance.choice((300.0, 480.0)),
        warning_s=chance.choice((20.0, 120.0)),
    )
    exempt = (chance.choice(ACCOUNTS),) if chance.random() < 0.3 else ()
    longer = [_longer(chance, each) for each in arrivals]
    return replace(cluster, idle_gpus=IdleGpus(rule, exempt_accounts=exempt)), tuple(longer)


def with_long_days(cluster: Cluster, days: Windows | None) -> Windows | None:
    """Days in which such jobs can end: one that each stop requeues would begin anew for ever."""
    if days is None or cluster.idle_gpus is None:
        return days
    return replace(days, day_s=DAY_S, up_s=DAY_S * days.up_s / days.day_s)


def _longer(chance: Random, arrival: Arrival) -> Arrival:
    submit = arrival.submit
    if not submit.shape.gpus or submit.beside or chance.random() < 0.2:
        return arrival
    comment = f"{submit.comment} {EXEMPT}".strip() if chance.random() < 0.15 else submit.comment
    lasts_s = round(chance.uniform(*LASTS_S))
    return replace(arrival, submit=replace(submit, duration_s=lasts_s, comment=comment))
