"""What the ledger's records look like as JSON text: keys in field order, no spaces.

The same value always gives the same text, so that a repeated write is equal byte for byte.
"""

from pydantic import TypeAdapter, ValidationError

from tidegate.core.actions import Cordon, LaunchRecord, NodeRecord, PendingOrder, Resting, Stuck
from tidegate.core.errors import BadEvent

LAUNCH = TypeAdapter(LaunchRecord)
CORDON = TypeAdapter(Cordon)
NODE = TypeAdapter(NodeRecord)
ORDER = TypeAdapter(PendingOrder)
RESTING = TypeAdapter(Resting)
STUCK = TypeAdapter(Stuck)


def encode[T](kind: TypeAdapter[T], record: T) -> str:
    return kind.dump_json(record).decode()


def decode[T](kind: TypeAdapter[T], text: str) -> T:
    """Errors: BadEvent, when the text was not written by `encode` of this kind."""
    try:
        return kind.validate_json(text, strict=True)
    except (ValidationError, AssertionError) as error:
        raise BadEvent(f"this record cannot be read: {error}") from error
