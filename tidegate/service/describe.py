"""One look as one structured log record, and as verdicts to ask for.

The record is all that screens, reports and people get to know of a look. CloudWatch Logs cuts
an event at 256 KB, so every list has a share of that and says how many entries it left out.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tidegate.core.explain.history import LOOK_DENIED, LOOK_FAILED, EventKind, LookEvent, Narrator
from tidegate.core.explain.verdicts import Verdicts, verdicts_of
from tidegate.core.model.ledger import Launch
from tidegate.core.model.plan import COUNTED, NOTE, Action, Learn, Mark
from tidegate.core.offers.price_list import price_list
from tidegate.service.control import Looked, Round
from tidegate.service.samples import look_samples

# Bytes of JSON for each list; four rounds and both verdicts stay below 220 KB in all.
DECISIONS_BYTES = 12_000
LAUNCHED_BYTES = 10_000
OTHER_BYTES = 3_000
UNMET_BYTES = 60_000
SERVED_BYTES = 30_000
TEXT_MAX_CHARS = 1_000
NAMED_MAX = 50  # jobs, nodes or pools of one entry


def look_record(looked: Looked) -> dict[str, object]:
    """What a look saw and did.

    `unmet`, `served`: job -> reason, of the last round that knew the queue; None: none did.
    """
    known = looked.last_known
    verdicts: dict[str, object] = {"unmet": None, "served": None}
    if known:
        unmet = ((each.job_id, each.reason) for each in known.plan.unmet)
        served = ((each.job_id, each.reason) for each in known.plan.served)
        verdicts = {
            **_bounded_map("unmet", unmet, UNMET_BYTES),
            **_bounded_map("served", served, SERVED_BYTES),
        }
    return {
        "rounds": [_round_record(each) for each in looked.rounds],
        "trouble": _cut(looked.trouble),
        **verdicts,
    }


def look_verdicts(looked: Looked) -> Verdicts | None:
    """The verdicts of the last round that knew the queue, beside what all rounds bought.

    None: no round knew it.
    """
    known = looked.last_known
    if known is None:
        return None
    done = [each for each in looked.rounds if not each.outcome.is_stale]
    launches = (a for each in done for a in each.plan.actions if isinstance(a, Launch))
    refused = [one for each in done for one in each.outcome.refused]
    found = verdicts_of(known.plan, known.snapshot, launches, refused)
    prices = price_list(known.snapshot.cluster)
    return replace(found, samples=look_samples(known), prices=prices)


def look_events(looked: Looked, at_s: float) -> tuple[LookEvent, ...]:
    """What the look did and met, for the log that people read; empty: nothing.

    `at_s`: when it ended. Its verdicts are kept elsewhere.
    """
    found = [event for each in looked.rounds for event in _events(each)]
    if looked.trouble:
        look_id = found[-1].look_id if found else "none"
        code = LOOK_DENIED if looked.is_denied else LOOK_FAILED
        found.append(
            LookEvent(at_s, look_id, EventKind.TROUBLE, code, sentence=_cut(looked.trouble))
        )
    return tuple(found)


def _events(done: Round) -> Iterator[LookEvent]:
    """A round that lost its race has decided and done nothing."""
    if done.outcome.is_stale:
        return
    outcome, tell = done.outcome, Narrator.of(done.plan, done.snapshot)
    yield from map(tell.decided, _decisions(done))
    yield from map(tell.launched, outcome.launched)
    yield from map(tell.refused, outcome.refused)
    yield from map(tell.ended, outcome.ended)
    yield from map(tell.trouble, map(_cut, outcome.trouble))


def _decisions(done: Round) -> Iterator[Action]:
    for each in done.plan.actions:
        if not (isinstance(each, Mark | Learn) and each.code in (NOTE, COUNTED)):
            yield each


def _round_record(done: Round) -> dict[str, object]:
    digest, outcome = done.snapshot.digest, done.outcome
    tell = Narrator.of(done.plan, done.snapshot)
    launched = (
        {
            "instance_id": one.instance_id,
            "pool": one.pool,
            "offering": str(one.offering),
            "jobs": list(tell.launched(one).jobs[:NAMED_MAX]),
        }
        for one in outcome.launched
    )
    decisions = (_decision_record(tell.decided(each)) for each in _decisions(done))
    refused = (
        {"offering": str(one.offering), "code": one.code, "message": _cut(one.message)}
        for one in outcome.refused
    )
    return {
        "plan_id": str(done.snapshot.epoch),
        "digest": digest.stamp.sequence if digest else None,
        "is_stale": outcome.is_stale,
        "calendar": done.snapshot.wanted.sentence,
        **_bounded("decisions", decisions, DECISIONS_BYTES),
        **_bounded("launched", launched, LAUNCHED_BYTES),
        **_bounded("refused", refused, OTHER_BYTES),
        **_bounded("ended", outcome.ended, OTHER_BYTES),
        **_bounded("notes", map(_cut, (*done.notes, *done.plan.notes)), OTHER_BYTES),
        **_bounded("trouble", map(_cut, outcome.trouble), OTHER_BYTES),
    }


def _decision_record(event: LookEvent) -> dict[str, object]:
    """Whom it concerns by name, as far as there is room; the sentence last."""
    subjects = {"jobs": event.jobs, "nodes": event.nodes, "pools": event.pools}
    named = {name: list(each[:NAMED_MAX]) for name, each in subjects.items() if each}
    left = {
        f"{name}_left_out": len(each) - NAMED_MAX
        for name, each in subjects.items()
        if len(each) > NAMED_MAX
    }
    return {"code": event.code, **named, **left, "sentence": _cut(event.sentence)}


def _bounded(name: str, entries: Iterable[object], room_bytes: int) -> dict[str, object]:
    """`name` with the entries that fit, and how many did not under `name_left_out`."""
    every = list(entries)
    fitting = every[: _how_many_fit(every, room_bytes)]
    left_out = len(every) - len(fitting)
    return {name: fitting} | ({f"{name}_left_out": left_out} if left_out else {})


def _bounded_map(
    name: str, entries: Iterable[tuple[str, str]], room_bytes: int
) -> dict[str, object]:
    every = [(key, _cut(value)) for key, value in entries]
    fitting = dict(every[: _how_many_fit(every, room_bytes)])
    left_out = len(every) - len(fitting)
    return {name: fitting} | ({f"{name}_left_out": left_out} if left_out else {})


def _how_many_fit(entries: Sequence[object], room_bytes: int) -> int:
    left = room_bytes
    for number, entry in enumerate(entries):
        left -= len(json.dumps(entry)) + 2
        if left < 0:
            return number
    return len(entries)


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX_CHARS else f"{text[:TEXT_MAX_CHARS]}..."
