"""What a look did as bytes: its events, as JSON under gzip. The only reader and the only writer.

A node's launch names the jobs; they are not written again with each node that it gave.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from pydantic import ValidationError

from tidegate.core.explain.history import LOOK_FAILED, EventKind, LookEvent
from tidegate.core.model.errors import BadEvent
from tidegate.wire.decisions import decode_record, encode_record
from tidegate.wire.kind import Kind as Values

EVENTS = Values(tuple[LookEvent, ...])
VERSION = 2


def encode_events(events: Sequence[LookEvent]) -> bytes:
    asked = {each.launch_id for each in events if each.kind is EventKind.DECISION}
    return encode_record({"version": VERSION, "events": [_written(each, asked) for each in events]})


def decode_events(data: bytes) -> tuple[LookEvent, ...]:
    """Errors: BadEvent. Keys of a newer writer are passed over."""
    record = decode_record(data)
    try:
        if record.get("version") is None:
            return tuple(_before(record))
        known = [{name: each[name] for name in NAMES & each.keys()} for each in record["events"]]
        events = EVENTS.adapter.validate_python(known)
    except (ValidationError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise BadEvent(f"these are no stored events: {type(error).__name__}: {error}") from error
    jobs = {each.launch_id: each.jobs for each in events if each.kind is EventKind.DECISION}
    return tuple(
        replace(each, jobs=jobs.get(each.launch_id, each.jobs)) if each.launch_id else each
        for each in events
    )


NAMES = frozenset(each.name for each in fields(LookEvent))


def _written(event: LookEvent, asked: set[str]) -> dict[str, object]:
    """Without what is empty, and without what the decision says that it came of."""
    found = {name: value for name, value in asdict(event).items() if value not in ("", (), None)}
    if event.kind is EventKind.LAUNCHED and event.launch_id in asked:
        found.pop("jobs", None)
    return found | {"kind": event.kind.value}


def _before(record: Mapping[str, Any]) -> Iterator[LookEvent]:
    """What 0.1 stored: sentences, with whom they concern only where that stood beside them."""
    at_s, look_id = float(record["at_s"]), str(record["look_id"])
    for part in record["rounds"]:
        plan_id = str(part.get("plan_id", part.get("epoch", look_id)))
        for said in part["decisions"]:
            yield LookEvent(at_s, plan_id, EventKind.DECISION, "", sentence=str(said))
        for one in part["launched"]:
            name, on = str(one["instance_id"]), str(one["offering"])
            yield LookEvent(
                at_s,
                plan_id,
                EventKind.LAUNCHED,
                "launched",
                jobs=tuple(map(str, one["jobs"])),
                nodes=(name,),
                pools=(str(one["pool"]),),
                offerings=(on,),
                sentence=f"EC2 gave {name} {on}",
            )
        for one in part["refused"]:
            code, on = str(one["code"]), str(one["offering"])
            said = f"EC2 refused {on}: {code}: {one['message']}"
            yield LookEvent(at_s, plan_id, EventKind.REFUSED, code, offerings=(on,), sentence=said)
        for one in part["ended"]:
            name, said = str(one), f"terminated {one}"
            yield LookEvent(
                at_s, plan_id, EventKind.ENDED, "terminated", nodes=(name,), sentence=said
            )
        for said in part["trouble"]:
            yield LookEvent(at_s, plan_id, EventKind.TROUBLE, "trouble", sentence=str(said))
    if said := str(record["trouble"]):
        yield LookEvent(at_s, look_id, EventKind.TROUBLE, LOOK_FAILED, sentence=said)
