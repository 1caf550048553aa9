"""Orders as text, and the names that may become arguments of scontrol."""

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.model.errors import BadEvent
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.site_check import check_name
from tidegate.core.model.slurm_names import ABOUT_JOBS
from tidegate.wire.orders import decode_order, encode_order

RELEASE = Order(
    "abcd-7-1", OrderKind.RELEASE, ("i-0b662ef9931388ba0",), 1_800_000_060.5, ("IDLE",), "idle"
)


# Slurm's own words, hostlists, functions of them, lists, options, and what no shell should see.
WORDS = (
    *("", "ALL", "all", "DEFAULT", "localhost", "gpu", "spot", "gpu-static-1", "i-[0-9]"),
    *("i-0b662ef9931388ba[0-9]", "{gpu}", "i-1", "-M", "--help", "a b", "a;b", "a,b", "7,8"),
    *("ALL=", "i-0b662ef9931388ba0\n", "i-0b662ef9931388ba\u0660", "x" * 256),
)
JOB_IDS = ("7", "7_3")


@pytest.mark.parametrize("kind", OrderKind)
def test_an_order_survives_the_way(kind: OrderKind) -> None:
    names = JOB_IDS if kind in ABOUT_JOBS else RELEASE.names
    text = (
        check_name("t4", "new-2", 1_800_000_000.0, 1) if kind is OrderKind.CHECK else RELEASE.text
    )
    order = replace(RELEASE, kind=kind, names=names, on_nodes=RELEASE.names, text=text)

    assert decode_order(encode_order(order)) == order


@pytest.mark.parametrize("kind", OrderKind)
@pytest.mark.parametrize("name", [*WORDS, "7+1", "7_", "7_[1-3]", "-7", "\u0667"])
def test_a_word_of_slurms_or_a_strangers_node_makes_the_order_unreadable(
    kind: OrderKind, name: str
) -> None:
    for names in ((name,), (*RELEASE.names, name), ("7", name)):
        with pytest.raises(BadEvent, match=r"is no (instance|job) id"):
            decode_order(encode_order(replace(RELEASE, kind=kind, names=names)))


@pytest.mark.parametrize("kind", OrderKind)
def test_a_job_is_no_node_and_a_node_is_no_job(kind: OrderKind) -> None:
    names = RELEASE.names if kind in ABOUT_JOBS else JOB_IDS

    with pytest.raises(BadEvent, match=r"is no (instance|job) id"):
        decode_order(encode_order(replace(RELEASE, kind=kind, names=names)))


@pytest.mark.parametrize("name", WORDS)
def test_a_job_runs_on_nodes_that_have_a_name(name: str) -> None:
    with pytest.raises(BadEvent, match="is no instance id"):
        decode_order(encode_order(replace(RELEASE, on_nodes=(name,))))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_an_order_has_an_end(number: str) -> None:
    text = encode_order(RELEASE).replace("1800000060.5", number)

    with pytest.raises(BadEvent, match="not_after_s: Input should be a finite number"):
        decode_order(text)


def test_a_text_with_a_nul_cannot_become_an_argument() -> None:
    with pytest.raises(BadEvent, match="NUL"):
        decode_order(encode_order(replace(RELEASE, text="a\0b")))


@pytest.mark.parametrize(
    "change",
    [{"kind": "power_cycle"}, {"names": "i-1"}, {"not_after_s": "soon"}, {"order_id": None}],
)
def test_an_order_outside_the_vocabulary_is_a_bad_event(change: dict[str, Any]) -> None:
    fields = json.loads(encode_order(RELEASE)) | change

    with pytest.raises(BadEvent, match="the order is no order"):
        decode_order(json.dumps(fields))


@given(st.binary() | st.text())
def test_any_body_is_an_order_or_a_bad_event(body: bytes | str) -> None:
    with suppress(BadEvent):
        decode_order(body)


def test_a_check_has_a_name_that_a_shell_takes() -> None:
    for text in ("", "tidegate:check:t4:x:1-1; reboot", "mine"):
        with pytest.raises(BadEvent, match="is no name of a check"):
            decode_order(encode_order(replace(RELEASE, kind=OrderKind.CHECK, text=text)))
