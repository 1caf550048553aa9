"""What arrives at the functions as text; a module for each detail-type, with its schema."""

from collections.abc import Callable, Mapping

from pydantic import ValidationError

from tidegate.core.model.errors import BadEvent
from tidegate.core.model.events import Event, UnknownEvent
from tidegate.wire.events import boot, health, rebalance, reservation, spot, state
from tidegate.wire.events.envelope import Envelope, bad_event
from tidegate.wire.events.looks import (
    ALARM_DETAIL_TYPE,
    DIGEST_DETAIL_TYPE,
    DIGEST_SOURCE,
    encode_look,
    parse_alarm_changed,
    parse_digest_put,
    parse_look,
    parse_schedule,
)
from tidegate.wire.finite import parse_json

__all__ = [
    "ALARM_DETAIL_TYPE",
    "BOOT_FAILED_DETAIL_TYPE",
    "BOOT_READY_DETAIL_TYPE",
    "DIGEST_DETAIL_TYPE",
    "DIGEST_SOURCE",
    "GPU_RESET_DETAIL_TYPE",
    "HEALTH_DETAIL_TYPE",
    "NODE_ORPHANED_DETAIL_TYPE",
    "REBALANCE_DETAIL_TYPE",
    "RESERVATION_DETAIL_TYPES",
    "SPOT_DETAIL_TYPE",
    "STATE_DETAIL_TYPE",
    "encode_look",
    "parse_event",
    "parse_schedule",
]

SPOT_DETAIL_TYPE = spot.DETAIL_TYPE
REBALANCE_DETAIL_TYPE = rebalance.DETAIL_TYPE
RESERVATION_DETAIL_TYPES = (reservation.DETAIL_TYPE, reservation.EARLIER_DETAIL_TYPE)
STATE_DETAIL_TYPE = state.DETAIL_TYPE
HEALTH_DETAIL_TYPE = health.DETAIL_TYPE
BOOT_FAILED_DETAIL_TYPE = boot.FAILED_DETAIL_TYPE
BOOT_READY_DETAIL_TYPE = boot.READY_DETAIL_TYPE
NODE_ORPHANED_DETAIL_TYPE = boot.ORPHANED_DETAIL_TYPE
GPU_RESET_DETAIL_TYPE = boot.RESET_DETAIL_TYPE

_PARSERS: Mapping[str, Callable[[object], Event]] = {
    ALARM_DETAIL_TYPE: parse_alarm_changed,
    DIGEST_DETAIL_TYPE: parse_digest_put,
    SPOT_DETAIL_TYPE: spot.parse,
    REBALANCE_DETAIL_TYPE: rebalance.parse,
    **dict.fromkeys(RESERVATION_DETAIL_TYPES, reservation.parse),
    STATE_DETAIL_TYPE: state.parse,
    HEALTH_DETAIL_TYPE: health.parse,
    BOOT_FAILED_DETAIL_TYPE: boot.parse_failed,
    BOOT_READY_DETAIL_TYPE: boot.parse_ready,
    NODE_ORPHANED_DETAIL_TYPE: boot.parse_orphaned,
    GPU_RESET_DETAIL_TYPE: boot.parse_reset,
}


def parse_event(body: str | bytes) -> Event:
    """Read the body of a queue message. Errors: BadEvent, with what was expected."""
    try:
        fields = parse_json(body)
    except ValueError as error:
        raise BadEvent(f"the event is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise BadEvent("the event is not a JSON object")
    try:
        if "look" in fields:
            return parse_look(fields)
        envelope = Envelope.model_validate(fields)
        parse = _PARSERS.get(envelope.detail_type)
        return parse(fields) if parse else UnknownEvent(envelope.detail_type, envelope.source)
    except ValidationError as error:
        raise bad_event(error) from error
