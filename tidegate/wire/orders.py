"""Orders to the head as JSON text.

The last gate before names become arguments of `scontrol`: a name that could be taken for an
option, or holds anything but the letters of node names and job ids, makes the order unreadable.
"""

import re

from pydantic import ValidationError

from tidegate.core.actions import Order
from tidegate.core.errors import BadEvent
from tidegate.wire.kind import Kind

ORDER = Kind(Order)

# Node names are instance ids; job ids are "7", "7_3" and, for heterogeneous jobs, "7+1".
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,254}")


def encode_order(order: Order) -> str:
    return ORDER.adapter.dump_json(order).decode()


def decode_order(text: str | bytes) -> Order:
    """Errors: BadEvent, with a sentence that says what is wrong."""
    try:
        order = ORDER.adapter.validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the text"
        raise BadEvent(f"the order is no order: {place}: {first['msg']}") from error
    for name in (*order.names, *order.on_nodes):
        if not NAME.fullmatch(name):
            raise BadEvent(f"the order is no order: {name!r} is no node name and no job id")
    if "\0" in order.text:
        raise BadEvent("the order is no order: its text holds a NUL")
    return order
