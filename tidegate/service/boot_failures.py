"""Nodes that ended while they booted: what they are would fail again, so it rests for a while."""

from collections.abc import Iterable, Mapping, Sequence

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
        _failure(
            booting[each.instance_id],
            BootFailure.STAGE,
            f"stage {each.stage} failed on {each.instance_id}: {each.said}",
            cure_of_stage(each.stage),
        )
        for each in news
        if isinstance(each, BootFailed) and each.instance_id in booting
    ]
    return {each.key: each for each in (*ended, *told)}


def _failure(record: NodeRecord, code: str, said: str, cure: Cure) -> Refusal:
    """What other pools make of the same offering may come up all the same."""
    return Refusal(
        *(record.offering, RefusalKind.OTHER, code, said, cure),
        pool=record.pool,
        template=record.template,
    )


def rest_failed(
    ledger: Ledger, failures: Mapping[RestKey, Refusal], now_s: float, timings: Timings
) -> int:
    """How many rest now that did not before.

    The first failure counts for all nodes of an offering until it is tried again.
    """
    known = {each.key: each for each in ledger.resting(list(failures))} if failures else {}
    new = 0
    for key, failure in sorted(failures.items()):
        before = known.get(key)
        is_resting = before and before.until_s > now_s and before.code in BOOT_FAILURES
        if not is_resting:
            made = rested(failure, before, now_s, timings, factor=BROKEN_REST_FACTOR)
            ledger.rest(made)
            new += 1
    return new
