"""What the ledger's records look like as JSON text: keys in field order, no spaces.

The same value always gives the same text, so that a repeated write is equal byte for byte.
"""

from pydantic import ValidationError

from tidegate.core.model.calendar import ScheduleOverride
from tidegate.core.model.errors import BadEvent
from tidegate.core.model.ledger import Bill, Cordon, InterruptionLoss, LaunchRecord, NodeRecord
from tidegate.core.model.market import SeenMarket
from tidegate.core.model.notice import Told
from tidegate.core.model.orders import PendingOrder
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import Resting
from tidegate.core.model.savings_plans import Committed
from tidegate.core.model.stuck import Stuck
from tidegate.wire.kind import Kind

LAUNCH = Kind(LaunchRecord)
CORDON = Kind(Cordon)
NODE = Kind(NodeRecord)
INTERRUPTION_LOSS = Kind(InterruptionLoss)
BILL = Kind(Bill)
COMMITTED = Kind(Committed)
ORDER = Kind(PendingOrder)
RESTING = Kind(Resting)
STUCK = Kind(Stuck)
OVERRIDE = Kind(ScheduleOverride)
POOL_HISTORY = Kind(PoolHistory)
SEEN_MARKET = Kind(SeenMarket)
TOLD = Kind(Told)

# The ledger's sparse index of what a look reads: an item is in it for as long as it has this
# attribute. It is a local one, which alone can be read consistently.
# Source: DynamoDB developer guide, "Local secondary indexes".
OPEN = "open"
OPEN_INDEX = "open"


def encode[T](kind: Kind[T], record: T) -> str:
    return kind.adapter.dump_json(record).decode()


def decode[T](kind: Kind[T], text: str) -> T:
    """Errors: BadEvent, when the text was not written by `encode` of this kind."""
    try:
        return kind.adapter.validate_json(text, strict=True)
    except (ValidationError, AssertionError) as error:
        raise BadEvent(f"this record cannot be read: {error}") from error
