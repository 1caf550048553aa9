"""Orders as text, and the names that may become arguments of scontrol."""

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.actions import Order, OrderKind
from tidegate.core.errors import BadEvent
from tidegate.wire.orders import decode_order, encode_order

RELEASE = Order(
    "abcd-7-1", OrderKind.RELEASE, ("i-0b662ef9931388ba0",), 1_800_000_060.5, ("IDLE",), "idle"
)


@pytest.mark.parametrize("name", ["i-0b662ef9931388ba0", "7", "7_3", "7+1", "gpu-1.local"])
def test_an_order_survives_the_way(name: str) -> None:
    order = replace(RELEASE, names=(name,))

    assert decode_order(encode_order(order)) == order


@pytest.mark.parametrize(
    "name", ["", "-M", "--help", "a b", "a;b", "ALL=", "i-1\n", "a,b", "x" * 256]
)
def test_a_name_that_is_no_node_and_no_job_makes_the_order_unreadable(name: str) -> None:
    with pytest.raises(BadEvent, match="no node name"):
        decode_order(encode_order(replace(RELEASE, names=(name,))))


def test_a_text_with_a_nul_cannot_become_an_argument() -> None:
    with pytest.raises(BadEvent, match="NUL"):
        decode_order(encode_order(replace(RELEASE, text="a\0b")))


@pytest.mark.parametrize(
    "change", [{"kind": "reboot"}, {"names": "i-1"}, {"not_after_s": "soon"}, {"order_id": None}]
)
def test_an_order_outside_the_vocabulary_is_a_bad_event(change: dict[str, Any]) -> None:
    fields = json.loads(encode_order(RELEASE)) | change

    with pytest.raises(BadEvent, match="the order is no order"):
        decode_order(json.dumps(fields))


@given(st.binary() | st.text())
def test_any_body_is_an_order_or_a_bad_event(body: bytes | str) -> None:
    with suppress(BadEvent):
        decode_order(body)
