"""Our own: looks, the digest's announcement, and what EventBridge Scheduler is given."""

import json
from typing import Literal

from pydantic import AwareDatetime, Field, ValidationError

from tidegate.core.model.events import Look
from tidegate.wire.events.envelope import Wire, bad_event

ALARM_DETAIL_TYPE = "CloudWatch Alarm State Change"
DIGEST_DETAIL_TYPE = "Tidegate Digest"
DIGEST_SOURCE = "tidegate.agent"


class _OwnLook(Wire):
    """`{"look": why, "id": unique, "at": when}`: FIFO queues drop equal bodies for 5 minutes."""

    look: str
    id: str


class _AlarmState(Wire):
    value: str


class _AlarmDetail(Wire):
    name: str = Field(alias="alarmName")
    state: _AlarmState


class _AlarmChanged(Wire):
    """Source: CloudWatch user guide, "Alarm events and EventBridge"; the same of composite ones."""

    source: Literal["aws.cloudwatch"]
    detail: _AlarmDetail


class _Schedule(Wire):
    """What the stack gives EventBridge Scheduler as input; `at` is Scheduler's own time."""

    schedule: Literal["start", "stop", "keep-up"]
    at: AwareDatetime


class _DigestDetail(Wire):
    head: str
    sequence: int


class _DigestPut(Wire):
    source: Literal["tidegate.agent"]
    detail: _DigestDetail


def encode_look(why: str, *, look_id: str, at: str) -> str:
    """The body of a look of our own. `look_id` makes it unique; `at` is for people, ISO-8601."""
    return json.dumps({"look": why, "id": look_id, "at": at})


def parse_look(fields: object) -> Look:
    """Errors: pydantic.ValidationError."""
    return Look(_OwnLook.model_validate(fields).look)


def parse_digest_put(fields: object) -> Look:
    """Errors: pydantic.ValidationError."""
    detail = _DigestPut.model_validate(fields).detail
    return Look(f"digest {detail.sequence} of {detail.head}")


def parse_alarm_changed(fields: object) -> Look:
    """What it says may be over by now: the planner asks. Errors: pydantic.ValidationError."""
    detail = _AlarmChanged.model_validate(fields).detail
    return Look(f"alarm {detail.name} is {detail.state.value}")


def parse_schedule(event: object) -> str:
    """Which schedule fired, and for when. Errors: BadEvent, with what was expected."""
    try:
        fired = _Schedule.model_validate(event)
    except ValidationError as error:
        raise bad_event(error) from error
    return f"{fired.schedule} schedule of {fired.at.isoformat()}"
