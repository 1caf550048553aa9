"""What arrives at the planner and at the interruption handler.

Sources: "EC2 Spot Instance interruption notices" (EC2 user guide) and the event types of
aws-node-termination-handler (pkg/monitor/sqsevent) for EC2's envelope; ours are our own.
"""

import json
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from tidegate.core.errors import BadEvent

DIGEST_DETAIL_TYPE = "Tidegate Digest"
DIGEST_SOURCE = "tidegate.agent"
SPOT_DETAIL_TYPE = "EC2 Spot Instance Interruption Warning"


@dataclass(frozen=True, slots=True)
class Look:
    """Look now. It carries no orders, so a late or repeated one is harmless."""

    why: str


@dataclass(frozen=True, slots=True)
class SpotInterruption:
    """EC2 will reclaim this spot instance about two minutes after `at_s`.

    `at_s`: the event's own time, epoch seconds. The warning is best effort and may never come.
    """

    instance_id: str
    at_s: float


type Event = Look | SpotInterruption


class _Wire(BaseModel):
    """AWS adds fields to its events without notice: unknown ones are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _OwnLook(_Wire):
    """`{"look": why, "id": unique, "at": when}`: FIFO queues drop equal bodies for 5 minutes."""

    look: str
    id: str


class _DigestDetail(_Wire):
    head: str
    sequence: int


class _DigestPut(_Wire):
    detail_type: Literal["Tidegate Digest"] = Field(alias="detail-type")
    detail: _DigestDetail


class _SpotDetail(_Wire):
    instance_id: str = Field(alias="instance-id", pattern=r"^i-[0-9a-f]{8,17}$")


class _SpotWarning(_Wire):
    detail_type: Literal["EC2 Spot Instance Interruption Warning"] = Field(alias="detail-type")
    source: Literal["aws.ec2"]
    time: AwareDatetime
    detail: _SpotDetail


_ENVELOPE: TypeAdapter[_DigestPut | _SpotWarning] = TypeAdapter(
    Annotated[_DigestPut | _SpotWarning, Field(discriminator="detail_type")]
)
_OWN_LOOK = TypeAdapter(_OwnLook)


def encode_look(why: str, *, look_id: str, at: str) -> str:
    """The body of a look of our own. `look_id` makes it unique; `at` is for people, ISO-8601."""
    return json.dumps({"look": why, "id": look_id, "at": at})


def parse_event(body: str | bytes) -> Event:
    """Read the body of a queue message. Errors: BadEvent, with what was expected."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadEvent(f"the event is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise BadEvent("the event is not a JSON object")
    try:
        if "look" in fields:
            return Look(_OWN_LOOK.validate_python(fields).look)
        envelope = _ENVELOPE.validate_python(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "detail-type"
        raise BadEvent(f"the event has no shape we know: {place}: {first['msg']}") from error
    match envelope:
        case _DigestPut(detail=detail):
            return Look(f"digest {detail.sequence} of {detail.head}")
        case _SpotWarning(time=time, detail=detail):
            return SpotInterruption(detail.instance_id, time.timestamp())
