"""Head and functions are updated one after the other: each reads what one version back writes.

`previous_version.json` is what `tests/wire/version_samples.py` wrote with the code of the version
before; at a release it is written anew.
"""

import gzip
import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from tests.wire.version_samples import PREVIOUS, kinds, samples
from tidegate.core.model.errors import BadEvent
from tidegate.wire import records
from tidegate.wire.digest import decode_digest
from tidegate.wire.kind import Kind
from tidegate.wire.orders import decode_order

RECORDS: dict[str, Kind[Any]] = {
    "Cordon": records.CORDON,
    "LaunchRecord": records.LAUNCH,
    "NodeRecord": records.NODE,
    "PendingOrder": records.ORDER,
    "Resting": records.RESTING,
    "Stuck": records.STUCK,
    "ScheduleOverride": records.OVERRIDE,
    "InterruptionLoss": records.INTERRUPTION_LOSS,
    "PoolHistory": records.POOL_HISTORY,
}
BEFORE = json.loads(PREVIOUS.read_text())
NOW = samples()
NODES = ["i-0b662ef9931388ba0"]
for each in (BEFORE, NOW):  # the names of an order are more than texts
    each["Order"]["sample"] |= {"names": NODES, "on_nodes": NODES}


def read(kind: str, written: Any) -> Any:
    """As the product reads it, and then as it would write it."""
    text = json.dumps(written)
    value: Any
    match kind:
        case "Digest":
            value = decode_digest(gzip.compress(text.encode()))
        case "Order":
            value = decode_order(text)
        case _:
            value = records.decode(RECORDS[kind], text)
    adapter: TypeAdapter[Any] = TypeAdapter(kinds()[kind])
    return json.loads(adapter.dump_json(value))


def missing(before: Any, now: Any, place: str = "") -> list[str]:
    """What `before` says and `now` does not."""
    match before, now:
        case dict(), dict():
            return [
                found
                for name, value in before.items()
                for found in missing(value, now.get(name, "left out"), f"{place}.{name}")
            ]
        case list(), list() if len(before) == len(now):
            pairs = enumerate(zip(before, now, strict=True))
            return [
                found for n, (old, new) in pairs for found in missing(old, new, f"{place}[{n}]")
            ]
    return [] if before == now else [f"{place}: was {before!r}, is {now!r}"]


def with_news(written: Any) -> Any:
    """The same with a field in every object that no version knows yet."""
    match written:
        case dict():
            return {name: with_news(value) for name, value in written.items()} | {"news": [1]}
        case list():
            return [with_news(each) for each in written]
    return written


@pytest.mark.parametrize("kind", sorted(BEFORE))
def test_what_the_version_before_wrote_is_read_without_a_loss(kind: str):
    sample = BEFORE[kind]["sample"]

    assert missing(sample, read(kind, sample)) == []


@pytest.mark.parametrize("kind", sorted(BEFORE))
def test_what_is_written_now_the_version_before_can_read(kind: str):
    reader = Draft202012Validator(BEFORE[kind]["schema"])

    errors = reader.iter_errors(NOW[kind]["sample"])

    assert [f"{error.json_path}: {error.message}" for error in errors] == []


@pytest.mark.parametrize("kind", sorted(NOW))
def test_what_a_later_version_adds_is_passed_over(kind: str):
    """So did the version before: this test was true of it too."""
    sample = NOW[kind]["sample"]

    assert read(kind, with_news(sample)) == sample


def test_every_kind_of_the_version_before_is_still_there():
    assert BEFORE.keys() <= NOW.keys()


def test_every_order_of_the_version_before_is_still_carried_out():
    before, now = (
        set(each["Order"]["schema"]["$defs"]["OrderKind"]["enum"]) for each in (BEFORE, NOW)
    )

    assert before <= now


def test_an_order_of_a_kind_that_a_later_version_has_is_told_from_a_good_one():
    order = NOW["Order"]["sample"] | {"kind": "dance"}

    with pytest.raises(BadEvent, match="kind"):
        decode_order(json.dumps(order))


@pytest.mark.parametrize("change", ["leave out", "retype"])
def test_a_field_that_the_version_before_needs_would_be_missed(change: str):
    sample = dict(NOW["Order"]["sample"])
    sample["not_after_s"] = "soon"
    if change == "leave out":
        del sample["not_after_s"]

    assert list(Draft202012Validator(BEFORE["Order"]["schema"]).iter_errors(sample))


def test_a_cure_that_a_later_version_has_written_is_none():
    """Its deployment was taken back meanwhile: the look goes on, the offering rests as it would."""
    later = BEFORE["Resting"]["sample"] | {"cure": "of-a-later-version"}

    assert read("Resting", later)["cure"] == ""
