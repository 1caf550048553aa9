"""The frontier: one history and one cluster at several prices of waiting, beside the peers."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.frozen import frozen
from tidegate.sim.replay.baselines import offers
from tidegate.sim.replay.outcome import Outcome
from tidegate.sim.replay.run import TIDEGATE, pools_in_parts, replay
from tidegate.sim.replay.trace import Trace
from tidegate.sim.replay.world import Setting

# USD per job-hour. Nobody's time; a batch queue; a team; people who sit and wait.
PRICES_USD = (0.0, 5.0, 20.0, 50.0, 100.0)
PEERS = ("parallelcluster", "karpenter")

HEADING = ("", "cost, USD", "/ bound", "wait mean, s", "p50", "p95", "nodes launched")


@frozen
class Point:
    """One replay. `is_own`: with the price of waiting that the cluster file has."""

    outcome: Outcome
    is_own: bool = False


@frozen
class _Asked:
    trace: Trace
    cluster: Cluster
    setting: Setting
    policy: str
    name: str


def frontier(
    trace: Trace,
    cluster: Cluster,
    setting: Setting,
    progress: Callable[[int, int], None],
    workers: int | None = None,
) -> list[Point]:
    """Prices from the lowest to the highest, then the peers where they could buy something.

    `progress`: how many of how many replays are done; several run side by side.
    """
    own_usd = cluster.waiting.usd_per_job_hour
    asked = [
        _Asked(trace, at_price(cluster, usd), setting, TIDEGATE, f"waiting at {usd:g} USD")
        for usd in sorted({*PRICES_USD, own_usd})
    ]
    is_own = [each.cluster.waiting.usd_per_job_hour == own_usd for each in asked]
    if offers(cluster) and not any(pools_in_parts(cluster)):
        asked += [_Asked(trace, cluster, setting, peer, f"like {peer}") for peer in PEERS]
        is_own += [False] * len(PEERS)
    played = _played(asked, progress, workers or os.cpu_count() or 1)
    return [Point(*each) for each in zip(played, is_own, strict=True)]


def at_price(cluster: Cluster, usd_per_job_hour: float) -> Cluster:
    """The cluster with another price for jobs whose partition, QOS and account name none."""
    waiting = replace(cluster.waiting, usd_per_job_hour=usd_per_job_hour)
    return replace(cluster, waiting=waiting)


def _played(
    asked: Sequence[_Asked], progress: Callable[[int, int], None], workers: int
) -> list[Outcome]:
    found: dict[int, Outcome] = {}
    context = multiprocessing.get_context("fork")  # a history is not written out for each
    with ProcessPoolExecutor(min(workers, len(asked)), mp_context=context) as pool:
        futures = {pool.submit(_play, each): number for number, each in enumerate(asked)}
        for future in as_completed(futures):
            found[futures[future]] = future.result()
            progress(len(found), len(asked))
    return [found[number] for number in range(len(asked))]


def _play(asked: _Asked) -> Outcome:
    return replay(asked.trace, asked.cluster, asked.setting, asked.policy, asked.name).outcome


def as_rows(points: Sequence[Point]) -> list[list[str]]:
    """A heading and a row for each point."""
    return [list(HEADING), *(_row(each) for each in points)]


def _row(point: Point) -> list[str]:
    of = point.outcome
    waits = of.waits
    return [
        of.name + (" (this file)" if point.is_own else ""),
        f"{of.cost_usd:,.0f}",
        f"{of.multiple:.3f}",
        f"{waits.mean_s:,.0f}",
        f"{waits.p50_s:,.0f}",
        f"{waits.p95_s:,.0f}",
        f"{of.launches:,d}",
    ]
