"""Joins a cluster's queue with what EC2 sells: the whole answer of `tidegate capacity`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import ceil

from tidegate.adapters.block_extensions import BlockExtensions
from tidegate.adapters.capacity_blocks import CapacityBlocks
from tidegate.adapters.clock import SystemClock
from tidegate.adapters.prices import AwsPrices
from tidegate.cli.capacity.extensions import extensions_offered
from tidegate.cli.capacity.market import Questions, Usable, market_of, usable, with_hazards
from tidegate.core.model.capacity import (
    BLOCK_INSTANCES_MAX,
    BlockOffer,
    BlockState,
    Gone,
    Holding,
    days_sold,
)
from tidegate.core.model.capacity_advice import Advice, IdlePlaces, TypeMarket
from tidegate.core.model.cluster import Cluster, Reservation
from tidegate.core.model.ec2 import Market
from tidegate.core.model.errors import BadConfig, TidegateError
from tidegate.core.model.frozen import frozen
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.odd_reservations import odd_named
from tidegate.core.offers.reservations import drain_before_s
from tidegate.core.offers.seen_reservations import reservation_troubles
from tidegate.sim.replay.market import BadMarket
from tidegate.sim.replay.queued import queued
from tidegate.sim.replay.trace import Trace
from tidegate.sim.replay.what_if import WhatIf, refused_now
from tidegate.wire.config import ClusterFile
from tidegate.wire.selection import in_ultraservers

DAY_S = 86400.0


@frozen
class Wanted:
    """What a person says of the offers; "" and 0: as the queue needs. `extend`: the block whose
    extensions are meant, "": of those that end with work on them.
    """

    instance_type: str = ""
    nodes: int = 0
    days: int = 0
    extend: str = ""


@frozen
class Told:
    """What is known beside the cluster. `advisor`: Spot Advisor's data, None: not asked for.

    `refused_s`: for how long EC2 goes on to refuse; None: nobody says.
    """

    history: Trace | None = None
    advisor: str | None = None
    refused_s: float | None = None


def advice(
    snapshot: Snapshot,
    file: ClusterFile,
    clients: Callable[[str], object],
    blocks: CapacityBlocks,
    wanted: Wanted,
    told: Told,
) -> Advice:
    """Errors: BadConfig when the head has never reported, or no pool has the wanted type."""
    if snapshot.digest is None:
        raise BadConfig("the head has not reported yet: nobody knows what waits")
    region = file.region
    prices = AwsPrices(clients("ec2"), clients("pricing"), region, SystemClock())  # type: ignore[arg-type]
    questions = Questions(clients, region, prices)
    own = snapshot.cluster
    if wanted.instance_type and own.instance_type(wanted.instance_type) is None:
        why = in_ultraservers(wanted.instance_type)
        raise BadConfig(why or f"no pool has the instance type {wanted.instance_type}")
    needs = queued(snapshot).needs.values()
    found = [
        one for one in usable(own, needs) if wanted.instance_type in ("", one.instance_type.name)
    ]
    cluster = questions.priced(own, (each.instance_type.name for each in found))
    cluster, classes = _hazards(cluster, region, told, questions.unknown)
    offers = list(_offers(found, snapshot.now_s, blocks, wanted, questions.unknown))
    days = max(((each.ends_at_s - snapshot.now_s) / DAY_S for each in offers), default=0.0)
    queue = queued(replace(snapshot, cluster=cluster), told.history, days)
    played = WhatIf(cluster, queue, refused_now(snapshot), snapshot.now_s, told.refused_s)
    unlisted, troubles, idle = _own_blocks(
        snapshot, file.cluster, cluster, blocks, questions.unknown
    )
    return Advice(
        cluster=own.name,
        at_s=snapshot.now_s,
        waiting=len(queue.waiting),
        left_out=queue.left_out,
        markets=tuple(_markets(found, snapshot, cluster, questions, classes)),
        offers=tuple(played.offered(offers)),
        unlisted=unlisted,
        troubles=troubles,
        idle=idle,
        extensions=tuple(
            extensions_offered(
                snapshot,
                cluster,
                BlockExtensions(blocks.client, blocks.buyer),
                extend=wanted.extend,
                days=wanted.days if wanted.extend else 0,
                unknown=questions.unknown,
            )
        ),
        unknown=tuple(questions.unknown),
    )


def _hazards(
    cluster: Cluster, region: str, told: Told, unknown: list[str]
) -> tuple[Cluster, dict[str, str]]:
    if told.advisor is None:
        return cluster, {}
    try:
        found, classes = with_hazards(cluster, region, told.advisor)
        return found, dict(classes)
    except BadMarket as error:
        unknown.append(f"Spot Advisor's interruptions: {error}")
        return cluster, {}


def _markets(
    found: Iterable[Usable],
    snapshot: Snapshot,
    cluster: Cluster,
    questions: Questions,
    classes: dict[str, str],
) -> Iterator[TypeMarket]:
    quotas = questions.quotas()
    scores = {}
    for one in found:
        if one.pool.name not in scores:
            scores[one.pool.name] = questions.score(one.pool, _nodes(one))
        said = classes.get(one.instance_type.name, "")
        yield market_of(one, snapshot, cluster, quotas, scores[one.pool.name], said)


def _nodes(one: Usable) -> int:
    """The nodes of this type on which all that waits for it could run at once."""
    gpus = sum(need.count * need.nodes * need.shape.gpus for need in one.needs)
    widest = max(need.nodes for need in one.needs)
    room = one.pool.limits.nodes or BLOCK_INSTANCES_MAX
    return max(min(ceil(gpus / one.instance_type.gpus), room, BLOCK_INSTANCES_MAX), widest)


def _days(one: Usable, nodes: int) -> int:
    """As long as the longest job, and as all of them one after the other on so many nodes."""
    longest_s = max(need.time_limit_s or 0.0 for need in one.needs)
    gpu_s = sum(
        need.count * need.nodes * need.shape.gpus * (need.expected_s or 0.0) for need in one.needs
    )
    work_s = gpu_s / (nodes * one.instance_type.gpus)
    drained_s = drain_before_s(one.instance_type.name)
    return days_sold((max(longest_s, work_s) + one.pool.boot_s + drained_s) / DAY_S)


def _offers(
    found: Iterable[Usable],
    now_s: float,
    blocks: CapacityBlocks,
    wanted: Wanted,
    unknown: list[str],
) -> Iterator[BlockOffer]:
    """EC2 is asked once about each type; offers that no pool could use are told as unknown."""
    by_type: dict[str, list[Usable]] = {}
    for one in found:
        by_type.setdefault(one.instance_type.name, []).append(one)
    for name, users in by_type.items():
        nodes = wanted.nodes or max(map(_nodes, users))
        days = wanted.days or max(_days(one, nodes) for one in users)
        try:
            answer = blocks.offers(name, nodes, days, now_s)
        except TidegateError as error:
            unknown.append(f"Capacity Blocks of {nodes} x {name} for {days} d: {error}")
            continue
        if isinstance(answer, Gone):
            unknown.append(f"no Capacity Blocks of {nodes} x {name} for {days} d: {answer.said}")
            continue
        zones = {zone for one in users for zone in one.pool.zones}
        sold = [each for each in answer if not each.unusable]
        yield from (each for each in sold if each.zone in zones)
        for each in (each for each in answer if each.unusable):
            unknown.append(f"what {each.offer_id} of {name} would do: {each.unusable}, not used")
        if others := sorted({each.zone for each in sold} - zones):
            unknown.append(f"offers of {name} in {', '.join(others)}: no pool is in these zones")


def _own_blocks(
    snapshot: Snapshot, own: Cluster, priced: Cluster, blocks: CapacityBlocks, unknown: list[str]
) -> tuple[tuple[Holding, ...], tuple[str, ...], tuple[IdlePlaces, ...]]:
    """What was bought and is not in the file; what the file names and EC2 does not deliver; what
    nobody uses of it. `own`: as the file says; `priced`: with all prices that are known.
    """
    try:
        found = blocks.holdings()
    except TidegateError as error:
        unknown.append(f"the blocks that the account has: {error}")
        return (), (), ()
    named = {each.id: each for each in snapshot.cluster.reservations}
    unlisted = tuple(
        each
        for each in found
        if each.offer_id and each.reservation.id not in named
        if not each.state.is_lost and each.state is not BlockState.EXPIRED
    )
    known = {each.reservation.id: each for each in found}
    grouped = [each.id for each in named.values() if each.group]
    now_s, seen = snapshot.now_s, snapshot.seen_market.reservations
    troubles = (
        *odd_named(own.reservations, found, grouped, now_s),
        *reservation_troubles(snapshot.cluster, seen, now_s),
    )
    idle = tuple(idle_places(named.values(), known, priced))
    # What the last look at them found is found again now.
    return unlisted, tuple(dict.fromkeys(troubles)), idle


def idle_places(
    named: Iterable[Reservation], known: Mapping[str, Holding], priced: Cluster
) -> Iterator[IdlePlaces]:
    """Of each of these reservations what nobody has. `known`: as EC2 shows them, by id."""
    for each in named:
        holding = known.get(each.id)
        if holding is None or not holding.free or not holding.state.gives_nodes:
            continue
        on_demand = replace(each.offering, market=Market.ON_DEMAND)
        usd = None if each.market is Market.CAPACITY_BLOCK else priced.prices.get(on_demand)
        yield IdlePlaces(each, holding.free, None if usd is None else round(usd * holding.free, 4))
