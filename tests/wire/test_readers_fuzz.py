"""Whatever stands in a snapshot or a digest: a value, or the typed error; never anything else."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.test_digest import full_digest, packed, unpacked
from tests.wire.test_snapshot import full_snapshot
from tidegate.core.model.errors import BadConfig, BadEvent
from tidegate.core.planner import plan
from tidegate.wire.digest import decode_digest, encode_digest
from tidegate.wire.snapshot import decode_snapshot, encode_snapshot

FEW = settings(max_examples=30, deadline=None)
SNAPSHOT, DIGEST = full_snapshot(), unpacked(encode_digest(full_digest()))
TEXT = encode_snapshot(SNAPSHOT)
HUGE = "12345678901"  # what stands for a number that json.dumps could not write
NUMBERS = ["9" * 5_000, "9" * 400, "-" + "9" * 400, "1e400", "NaN", "1e308", "-1", "9" * 19]
ODD: list[Any] = [None, True, False, "", "x", "\0", [], {}, [[]]]
VALUES = st.sampled_from(ODD)


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    inner = value.items() if isinstance(value, dict) else ()
    for key, each in enumerate(value) if isinstance(value, list) else inner:
        yield from places(each, (*place, key))


def changed(text: str, place: tuple[Any, ...], value: Any) -> str:
    data: Any = {"all": deepcopy(json.loads(text))}
    here = data
    *parents, last = ("all", *place)
    for part in parents:
        here = here[part]
    here[last] = value
    return json.dumps(data["all"])


def check_snapshot(text: str) -> None:
    try:
        read = decode_snapshot(text, SNAPSHOT.cluster, "snapshot.json")
    except BadConfig as error:
        assert str(error).startswith("snapshot.json: ")
        assert all(line.isprintable() for line in str(error).split("\n"))
        return
    plan(read.snapshot)


def check_digest(text: str) -> None:
    try:
        decode_digest(packed(text))
    except BadEvent as error:
        assert len(str(error)) < 1_000


OF_SNAPSHOT = st.sampled_from(sorted(places(json.loads(TEXT)), key=str))
OF_DIGEST = st.sampled_from(sorted(places(json.loads(DIGEST)), key=str))


@FEW
@given(place=OF_SNAPSHOT, value=VALUES)
def test_a_snapshot_with_anything_in_any_place(place, value):
    check_snapshot(changed(TEXT, place, value))


@FEW
@given(place=OF_SNAPSHOT, number=st.sampled_from(NUMBERS))
def test_a_snapshot_with_any_number_in_any_place(place, number):
    check_snapshot(changed(TEXT, place, int(HUGE)).replace(HUGE, number))


@FEW
@given(place=OF_DIGEST, number=st.sampled_from(NUMBERS) | VALUES.map(json.dumps))
@pytest.mark.parametrize("is_old", [False, True])
def test_a_digest_with_anything_in_any_place(is_old, place, number):
    text = DIGEST
    if is_old:
        caps = '"gpu_type": "", "max_gpus": 8, "max_gpus_per_user": null, "max_gpus_per_job": null'
        text = text.replace('"associations":[{', '"associations":[{' + caps + ",", 1)
        assert '"max_gpus":' in text
    check_digest(changed(text, place, int(HUGE)).replace(HUGE, number))


@pytest.mark.parametrize("depth", [100, 600, 900, 990, 1_500, 20_000, 200_000])
@pytest.mark.parametrize("old", ["", '"max_gpus":'])
def test_what_is_nested_deeply(depth, old):
    nest = "[" * depth + "]" * depth
    deep = DIGEST.replace("{", f'{{"extra":{nest},', 1)
    check_digest(deep.replace("{", f"{{{old}8,", 1) if old else deep)
    check_digest(deep.replace("}", ',"x":{"max_gpus":8}}', 1))
    check_digest(nest)
    check_snapshot(nest)
    check_snapshot(TEXT.replace("{", f'{{"extra":{nest},', 1))


@pytest.mark.parametrize("count", [-1, 10_001, int("9" * 400)])
def test_a_launch_of_more_nodes_than_a_fleet_has_is_refused(count):
    place = ("launches", 0, "launch", "count")
    text = changed(TEXT, place, int(HUGE)).replace(HUGE, str(count))

    with pytest.raises(BadConfig, match=r"launches\[?.?0.*count"):
        decode_snapshot(text, SNAPSHOT.cluster, "snapshot.json")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("launch", "offerings"), []),
        (("request", "overrides"), []),
        (("request", "min_count"), 10_000),
    ],
)
def test_a_launch_that_none_of_ours_can_be_is_refused(place, value):
    text = changed(TEXT, ("launches", 0, *place), value)

    with pytest.raises(BadConfig, match=rf"launches\[?.?0.*{place[-1]}  must"):
        decode_snapshot(text, SNAPSHOT.cluster, "snapshot.json")


NODES_ASKED = ("digest", "reading", "jobs", 2, "nodes")


def test_a_job_of_as_many_nodes_as_a_number_may_have_is_planned():
    check_snapshot(changed(TEXT, NODES_ASKED, 2**53))


@pytest.mark.parametrize("digits", [19, 400])
def test_a_whole_number_that_sums_could_not_hold_is_refused(digits):
    text = changed(TEXT, NODES_ASKED, int(HUGE)).replace(HUGE, "9" * digits)

    with pytest.raises(BadConfig, match=r"jobs\[?.?2.*nodes"):
        decode_snapshot(text, SNAPSHOT.cluster, "snapshot.json")
