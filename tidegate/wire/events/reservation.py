"""Two minutes before the owner of an interruptible Capacity Reservation takes it back.

Schema: EC2 user guide, "Monitor interruptible Capacity Reservations with EventBridge";
aws-node-termination-handler knows the event without `instance-termination-time`. Instances of a
capacity block get it too ("Monitor Capacity Blocks using EventBridge"); the warning of the block
itself names no instance, and its end is in the cluster file.
"""

from typing import Literal

from pydantic import AwareDatetime, Field

from tidegate.core.model.events import ReservationInterruption
from tidegate.wire.events.envelope import InstanceDetail, Wire

DETAIL_TYPE = "EC2 Capacity Reservation Instance Interruption Warning"
# What an earlier edition of the guide called it.
EARLIER_DETAIL_TYPE = "EC2 Interruptible Capacity Reservation Instance Interruption Warning"


class _Detail(InstanceDetail):
    ends_at: AwareDatetime | None = Field(default=None, alias="instance-termination-time")


class _Notice(Wire):
    source: Literal["aws.ec2"]
    time: AwareDatetime
    detail: _Detail


def parse(fields: object) -> ReservationInterruption:
    """Errors: pydantic.ValidationError."""
    notice = _Notice.model_validate(fields)
    ends_at = notice.detail.ends_at
    return ReservationInterruption(
        notice.detail.instance_id,
        notice.time.timestamp(),
        ends_at.timestamp() if ends_at else None,
    )
