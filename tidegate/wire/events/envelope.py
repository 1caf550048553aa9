"""What all events of EventBridge have in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tidegate.core.model.errors import BadEvent
from tidegate.wire.finite import FINITE

type InstanceId = Annotated[str, Field(pattern=r"^i-[0-9a-f]{8,17}$")]


class Wire(BaseModel):
    """AWS adds fields to its events without notice: unknown ones are ignored.

    Built when the first event of a kind comes: a function sees few of them.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True, **FINITE)


class Envelope(Wire):
    """Enough of an event to know who reads it."""

    detail_type: str = Field(alias="detail-type")
    source: str


class InstanceDetail(Wire):
    """The detail of EC2's events about one instance."""

    instance_id: InstanceId = Field(alias="instance-id")


def bad_event(error: ValidationError) -> BadEvent:
    """What was expected, of the first thing that is wrong."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"])) or "detail-type"
    return BadEvent(f"the event has no shape we know: {place}: {first['msg']}")
