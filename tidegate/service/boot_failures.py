"""Nodes that ended while they booted: what they are would fail again, so it rests for a while."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tidegate.core.fleet.cures import cure_of_stage
from tidegate.core.model.cluster import Timings
from tidegate.core.model.ec2 import Cure, InstanceState, Refusal, RefusalKind
from tidegate.core.model.events import BootFailed, News, StateChange
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.resting import BOOT_FAILURES, BootFailure, RestKey
from tidegate.ports import Ledger
from tidegate.service.apply import BROKEN_REST_FACTOR
from tidegate.service.launching import rested

STOPS = (InstanceState.STOPPING, InstanceState.STOPPED)


def boot_failures(
    news: Sequence[News], dead: Iterable[str], records: Mapping[str, NodeRecord]
) -> dict[RestKey, Refusal]:
    """What the nodes of each pool, template and offering said, or that they just ended.

    `dead`: ended, by EC2's word. Only nodes that never joined and that we did not end ourselves.
    Not those that EC2 stopped as they started: it may have had no room, as Describe says then.
    """
    stopped = {
        each.instance_id for each in news if isinstance(each, StateChange) and each.state in STOPS
    }
    booting = {
        name: record
        for name, record in records.items()
        if record.phase is Phase.LAUNCHED and record.ended_at_s is None and not record.is_orphan
    }
    ended = [
        _failure(booting[name], BootFailure.ENDED, "a node ended itself", Cure.NONE)
        for name in dead
        if name in booting and not (booting[name].is_started and name in stopped)
    ]
    told = [
        _said(booting[each.instance_id], each)
        for each in news
        if isinstance(each, BootFailed) and each.instance_id in booting
    ]
    return {each.key: each for each in (*ended, *told)}


def late_words(news: Iterable[News], records: Mapping[str, NodeRecord]) -> dict[RestKey, Refusal]:
    """What nodes said whose end was seen first: it begins no rest, it says why one has begun.

    EventBridge keeps no order. Not of nodes that joined, whose boot did not fail.
    """
    said = (each for each in news if isinstance(each, BootFailed))
    found = ((records[each.instance_id], each) for each in said if each.instance_id in records)
    late = [
        _said(record, each)
        for record, each in found
        if record.phase > Phase.LAUNCHED and record.joined_at_s is None and not record.is_orphan
    ]
    return {each.key: each for each in late}


def _said(record: NodeRecord, told: BootFailed) -> Refusal:
    said = f"stage {told.stage} failed on {told.instance_id}: {told.said}"
    return _failure(record, BootFailure.STAGE, said, cure_of_stage(told.stage))


def _failure(record: NodeRecord, code: str, said: str, cure: Cure) -> Refusal:
    """What other pools make of the same offering may come up all the same."""
    return Refusal(
        *(record.offering, RefusalKind.OTHER, code, said, cure),
        pool=record.pool,
        template=record.template,
    )


def rest_failed(
    ledger: Ledger,
    failures: Mapping[RestKey, Refusal],
    words: Mapping[RestKey, Refusal],
    now_s: float,
    timings: Timings,
) -> int:
    """How many rest now that did not before. `words`: they only explain what rests.

    The first failure counts for all nodes of an offering until it is tried again; of a node that
    just ended, what one of them says of it is kept as soon as it comes.
    """
    told = {**words, **failures}
    known = {each.key: each for each in ledger.resting(list(told))} if told else {}
    new = 0
    for key, failure in sorted(told.items()):
        before = known.get(key)
        if before is None or before.until_s <= now_s or before.code not in BOOT_FAILURES:
            if key in failures:
                ledger.rest(rested(failure, before, now_s, timings, factor=BROKEN_REST_FACTOR))
                new += 1
        elif before.code == BootFailure.ENDED and failure.code == BootFailure.STAGE:
            cure = failure.cure
            ledger.rest(replace(before, code=failure.code, message=failure.message, cure=cure))
    return new
