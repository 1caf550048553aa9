"""Orders to the head as JSON text.

The last gate before names become arguments of Slurm's commands: an order is about nodes that
Tidegate launched, which are named after their instances, or about jobs. Another name makes it
unreadable: Slurm's own words (`ALL`, a NodeSet), hostlists, options, static nodes.
"""

from pydantic import ValidationError

from tidegate.core.model.errors import BadEvent
from tidegate.core.model.orders import Order
from tidegate.core.model.slurm_names import faults
from tidegate.wire.kind import Kind

ORDER = Kind(Order)


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
    for fault in faults(order):
        raise BadEvent(f"the order is no order: {fault}")
    return order
