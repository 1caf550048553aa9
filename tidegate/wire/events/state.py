"""An instance has moved to another state.

Schema: EC2 user guide, "State change events for Amazon EC2 instances".
"""

from typing import Literal

from pydantic import AwareDatetime

from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.events import StateChange
from tidegate.wire.events.envelope import InstanceDetail, Wire

DETAIL_TYPE = "EC2 Instance State-change Notification"


class _Detail(InstanceDetail):
    state: InstanceState


class _Notice(Wire):
    source: Literal["aws.ec2"]
    time: AwareDatetime
    detail: _Detail


def parse(fields: object) -> StateChange:
    """Errors: pydantic.ValidationError."""
    notice = _Notice.model_validate(fields)
    return StateChange(notice.detail.instance_id, notice.detail.state, notice.time.timestamp())
