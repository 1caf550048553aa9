"""What arrives at the functions: looks, and what EC2 and AWS Health say on the default bus.

Sources: "EC2 Spot Instance interruption notices", "EC2 instance rebalance recommendations" and
"Monitor Capacity Reservations" (EC2 user guide), "AWS Health events Amazon EventBridge schema"
(AWS Health user guide), and the event types of aws-node-termination-handler
(pkg/monitor/sqsevent) for EC2's envelope; ours are our own.
"""

import json
from dataclasses import dataclass
from typing import Annotated, Literal, assert_never

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from tidegate.core.ec2 import InstanceState
from tidegate.core.errors import BadEvent

DIGEST_DETAIL_TYPE = "Tidegate Digest"
DIGEST_SOURCE = "tidegate.agent"
SPOT_DETAIL_TYPE = "EC2 Spot Instance Interruption Warning"
REBALANCE_DETAIL_TYPE = "EC2 Instance Rebalance Recommendation"
RESERVATION_DETAIL_TYPE = "EC2 Capacity Reservation Instance Interruption Warning"
STATE_DETAIL_TYPE = "EC2 Instance State-change Notification"
HEALTH_DETAIL_TYPE = "AWS Health Event"


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


@dataclass(frozen=True, slots=True)
class StateChange:
    """An instance of the account has moved to another state; most are not ours."""

    instance_id: str
    state: InstanceState


@dataclass(frozen=True, slots=True)
class InstanceWarning:
    """AWS says that these instances may not last: rebalance, reservation or health event."""

    detail_type: str
    instance_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """A whole event of a kind that nothing here reads."""

    detail_type: str
    source: str


type Event = Look | SpotInterruption | StateChange | InstanceWarning | UnknownEvent


_ENDING = frozenset(InstanceState) - {InstanceState.PENDING, InstanceState.RUNNING}


def touched(event: Event) -> tuple[str, ...]:
    """The instances that this event gives a reason to look at; a spot notice is more than that."""
    match event:
        case StateChange(instance_id=instance_id, state=state):
            return (instance_id,) if state in _ENDING else ()
        case InstanceWarning(instance_ids=instance_ids):
            return instance_ids
        case Look() | SpotInterruption() | UnknownEvent():
            return ()
        case _:
            assert_never(event)


class _Wire(BaseModel):
    """AWS adds fields to its events without notice: unknown ones are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _OwnLook(_Wire):
    """`{"look": why, "id": unique, "at": when}`: FIFO queues drop equal bodies for 5 minutes."""

    look: str
    id: str


class _Schedule(_Wire):
    """What the stack gives EventBridge Scheduler as input; `at` is Scheduler's own time."""

    schedule: Literal["start", "stop"]
    at: AwareDatetime


class _DigestDetail(_Wire):
    head: str
    sequence: int


class _DigestPut(_Wire):
    detail_type: Literal["Tidegate Digest"] = Field(alias="detail-type")
    source: Literal["tidegate.agent"]
    detail: _DigestDetail


type _InstanceId = Annotated[str, Field(pattern=r"^i-[0-9a-f]{8,17}$")]


class _InstanceDetail(_Wire):
    instance_id: _InstanceId = Field(alias="instance-id")


class _SpotWarning(_Wire):
    detail_type: Literal["EC2 Spot Instance Interruption Warning"] = Field(alias="detail-type")
    source: Literal["aws.ec2"]
    time: AwareDatetime
    detail: _InstanceDetail


class _StateDetail(_InstanceDetail):
    state: InstanceState


class _StateNotice(_Wire):
    detail_type: Literal["EC2 Instance State-change Notification"] = Field(alias="detail-type")
    source: Literal["aws.ec2"]
    detail: _StateDetail


class _InstanceNotice(_Wire):
    detail_type: Literal[
        "EC2 Instance Rebalance Recommendation",
        "EC2 Capacity Reservation Instance Interruption Warning",
    ] = Field(alias="detail-type")
    source: Literal["aws.ec2"]
    detail: _InstanceDetail


class _HealthEntity(_Wire):
    entity: str = Field(alias="entityValue")


class _HealthDetail(_Wire):
    entities: tuple[_HealthEntity, ...] = Field(default=(), alias="affectedEntities")


class _HealthNotice(_Wire):
    """Events of other services than EC2 name other things than instances; those are left out."""

    detail_type: Literal["AWS Health Event"] = Field(alias="detail-type")
    source: Literal["aws.health"]
    detail: _HealthDetail


class _AnyEvent(_Wire):
    detail_type: str = Field(alias="detail-type")
    source: str


type _Known = _DigestPut | _SpotWarning | _StateNotice | _InstanceNotice | _HealthNotice

_KNOWN_TYPES = frozenset(
    {
        *(DIGEST_DETAIL_TYPE, SPOT_DETAIL_TYPE, REBALANCE_DETAIL_TYPE, RESERVATION_DETAIL_TYPE),
        *(STATE_DETAIL_TYPE, HEALTH_DETAIL_TYPE),
    }
)
_ENVELOPE: TypeAdapter[_Known] = TypeAdapter(
    Annotated[
        _DigestPut | _SpotWarning | _StateNotice | _InstanceNotice | _HealthNotice,
        Field(discriminator="detail_type"),
    ]
)
_ANY_EVENT = TypeAdapter(_AnyEvent)
_OWN_LOOK = TypeAdapter(_OwnLook)


def encode_look(why: str, *, look_id: str, at: str) -> str:
    """The body of a look of our own. `look_id` makes it unique; `at` is for people, ISO-8601."""
    return json.dumps({"look": why, "id": look_id, "at": at})


def parse_schedule(event: object) -> str:
    """Which schedule fired, and for when. Errors: BadEvent, with what was expected."""
    try:
        fired = _Schedule.model_validate(event)
    except ValidationError as error:
        raise _bad_event(error) from error
    return f"{fired.schedule} schedule of {fired.at.isoformat()}"


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
        envelope = _ANY_EVENT.validate_python(fields)
        if envelope.detail_type not in _KNOWN_TYPES:
            return UnknownEvent(envelope.detail_type, envelope.source)
        return _event(_ENVELOPE.validate_python(fields))
    except ValidationError as error:
        raise _bad_event(error) from error


def _bad_event(error: ValidationError) -> BadEvent:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"])) or "detail-type"
    return BadEvent(f"the event has no shape we know: {place}: {first['msg']}")


def _event(envelope: _Known) -> Event:
    match envelope:
        case _DigestPut(detail=detail):
            return Look(f"digest {detail.sequence} of {detail.head}")
        case _SpotWarning(time=time, detail=detail):
            return SpotInterruption(detail.instance_id, time.timestamp())
        case _StateNotice(detail=detail):
            return StateChange(detail.instance_id, detail.state)
        case _InstanceNotice(detail_type=detail_type, detail=detail):
            return InstanceWarning(detail_type, (detail.instance_id,))
        case _HealthNotice(detail_type=detail_type, detail=detail):
            named = (each.entity for each in detail.entities)
            return InstanceWarning(detail_type, tuple(n for n in named if n.startswith("i-")))
        case _:
            assert_never(envelope)
