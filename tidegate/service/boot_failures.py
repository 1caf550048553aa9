"""Nodes that ended while they booted: what they are would fail again, so it rests for a while."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tidegate.core.fleet.cures import cure_of_stage
from tidegate.core.fleet.joins import rest
from tidegate.core.fleet.rests import rests_of
from tidegate.core.model.cluster import Timings
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.events import BootFailed, News, StateChange
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.plan import Rest
from tidegate.core.model.resting import BootFailure, RestKey
from tidegate.ports import Ledger

STOPS = (InstanceState.STOPPING, InstanceState.STOPPED)


def boot_failures(
    news: Sequence[News], dead: Iterable[str], records: Mapping[str, NodeRecord]
) -> dict[RestKey, Rest]:
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
        rest(booting[name], BootFailure.ENDED, "a node ended itself")
        for name in dead
        if name in booting and not (booting[name].is_started and name in stopped)
    ]
    told = [
        _said(booting[each.instance_id], each)
        for each in news
        if isinstance(each, BootFailed) and each.instance_id in booting
    ]
    return _by_key((*ended, *told))


def late_words(news: Iterable[News], records: Mapping[str, NodeRecord]) -> dict[RestKey, Rest]:
    """What nodes said whose end was seen first: it begins no rest, it says why one has begun.

    EventBridge keeps no order. Not of nodes that joined, whose boot did not fail.
    """
    said = (each for each in news if isinstance(each, BootFailed))
    found = ((records[each.instance_id], each) for each in said if each.instance_id in records)
    return _by_key(
        _said(record, each)
        for record, each in found
        if record.phase > Phase.LAUNCHED and record.joined_at_s is None and not record.is_orphan
    )


def _said(record: NodeRecord, told: BootFailed) -> Rest:
    said = f"stage {told.stage} failed on {told.instance_id}: {told.said}"
    return replace(rest(record, BootFailure.STAGE, said), cure=cure_of_stage(told.stage))


def _by_key(rests: Iterable[Rest]) -> dict[RestKey, Rest]:
    """The last of each, as of the node that was launched last."""
    found: dict[RestKey, Rest] = {}
    for each in rests:
        before = found.get(each.key, each)
        newest_s = max(before.launched_at_s, each.launched_at_s)
        found[each.key] = replace(each, launched_at_s=newest_s)
    return found


def rest_failed(
    ledger: Ledger,
    failures: Mapping[RestKey, Rest],
    words: Mapping[RestKey, Rest],
    now_s: float,
    timings: Timings,
) -> int:
    """How many rest now that did not before. `words`: they only explain what rests.

    A first failure counts for all nodes of an offering that were launched before it; of a node
    that just ended, what one of them says of it is kept as soon as it comes.
    """
    told = {**words, **failures}
    known = {each.key: each for each in ledger.resting(list(told))} if told else {}
    new: list[Rest] = []
    for key, failure in sorted(told.items()):
        before = known.get(key)
        if before is None or not failure.is_told(before, now_s):
            if key in failures:
                new.append(failure)
        elif before.code == BootFailure.ENDED and failure.code == BootFailure.STAGE:
            cure = failure.cure
            ledger.rest(replace(before, code=failure.code, message=failure.reason, cure=cure))
    if new:
        ledger.rest(*rests_of(new, known, now_s, timings).values())
    return len(new)
