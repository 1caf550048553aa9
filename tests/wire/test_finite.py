"""No number from outside is NaN or infinite, in whatever message, record or file it comes."""

import gzip
import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.wire.test_version_mix import NOW, RECORDS, read
from tidegate.core.model.errors import BadConfig, BadEvent
from tidegate.wire.config import parse_cluster, parse_deployed
from tidegate.wire.decisions import decode_record
from tidegate.wire.events import parse_event
from tidegate.wire.finite import parse_json

NEVER = ("NaN", "Infinity", "-Infinity", "1e999", "-1e999")
MARK = 987654321.5


def spoilt(value: Any) -> Iterator[tuple[str, Any]]:
    """The value once for each number with decimals in it, which is the mark there, and where."""
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for place, part in parts:
        for where, changed in spoilt(part):
            copy: Any = value.copy()
            copy[place] = changed
            yield f"{place}.{where}", copy
    if isinstance(value, float):
        yield "", MARK


PLACES = [
    pytest.param(kind, sample, id=f"{kind}.{where}")
    for kind in (*RECORDS, "Digest", "Order")
    for where, sample in spoilt(NOW[kind]["sample"])
]


@pytest.mark.parametrize(("kind", "sample"), PLACES)
def test_every_number_of_every_message_and_record_is_finite(kind: str, sample: Any) -> None:
    read(kind, sample)  # the mark itself is a good number

    for number in NEVER:
        with pytest.raises(BadEvent):
            read(kind, json.loads(json.dumps(sample).replace(str(MARK), number)))


def test_samples_hold_numbers_of_all_kinds() -> None:
    assert len(PLACES) > 30


@pytest.mark.parametrize("number", NEVER)
@pytest.mark.parametrize("text", ['{"look": "x", "id": "1", "more": MARK}', '{"detail": [[MARK]]}'])
def test_an_event_is_json_to_the_last_number(number: str, text: str) -> None:
    with pytest.raises(BadEvent, match="not JSON"):
        parse_event(text.replace("MARK", number))


@pytest.mark.parametrize("number", NEVER)
def test_a_stored_decision_is_json(number: str) -> None:
    with pytest.raises(BadEvent, match="no stored decision"):
        decode_record(gzip.compress(b'{"at_s": MARK}'.replace(b"MARK", number.encode())))


CLUSTER = """\
name: dev
region: us-east-1
hazards_per_hour: {g4dn.xlarge: 0.1}
prices_usd_per_hour: {g4dn.xlarge: {on-demand: 0.5, spot: 0.2}}
time_limit_ratio: 0.5
time_limit_ratio_by_account: {ada: 0.5}
budget: {usd_per_day: 5.5, usd_per_month: 50.5}
limits: {usd_per_hour: 9.5}
timings: {rest_min_s: 180.5}
bill_alert: {usd_per_month: 60.5, email: a@example.org}
partitions: {gpu: {pools: [t4]}}
pools:
  t4:
    instance_types: [g4dn.xlarge]
    zones: [us-east-1a]
    capacity_types: [on-demand, spot]
    idle_s: 60.5
    limits: {usd_per_hour: 7.5}
"""
NUMBERS = ("0.1", "0.2", "0.5", "5.5", "50.5", "9.5", "180.5", "60.5", "7.5")


def _deployed(text: str, name: str) -> object:
    import yaml

    plain = json.dumps(yaml.safe_load(text.replace("MARK", str(MARK))))
    return parse_deployed(plain.replace(str(MARK), "NaN"), name)


def test_the_cluster_file_of_this_test_is_a_good_one() -> None:
    parse_cluster(CLUSTER, "dev.yaml")


@pytest.mark.parametrize("number", [*NEVER, ".nan", "inf", "nan", "-inf"])
@pytest.mark.parametrize("before", NUMBERS)
def test_a_cluster_file_holds_finite_numbers(before: str, number: str) -> None:
    start = CLUSTER.index(f" {before}")
    text = f"{CLUSTER[:start]} {number}{CLUSTER[start + 1 + len(before) :]}"

    with pytest.raises(BadConfig):
        parse_cluster(text, "dev.yaml")


def test_so_does_the_one_that_was_deployed() -> None:
    with pytest.raises(BadConfig):
        _deployed(CLUSTER.replace("usd_per_hour: 9.5", "usd_per_hour: MARK"), "dev.json")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[NaN]", "NaN is no number of JSON"),
        ("[1e999]", "1e999 is too large a number"),
        ("[" * 100_000, "nested too deeply"),
        ("[1", "Expecting"),
        ("9" * 5_000, "4300 digits"),
    ],
)
def test_what_is_no_json_is_a_value_error(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_json(text)


@pytest.mark.parametrize("kind", [str, bytes])
def test_json_is_what_it_was(kind: Callable[..., Any]) -> None:
    value = {"a": [1, 2.5, 1e300, None, True, "NaN"], "b": -0.0}
    text = json.dumps(value)

    found = parse_json(text if kind is str else text.encode())

    assert found == value
    assert math.copysign(1, found["b"]) == -1
