"""Two minutes before EC2 reclaims a spot instance.

Schema: EC2 user guide, "Spot Instance interruption notices". `resources` carries the zone in
place of the region, and no account.
"""

from typing import Literal

from pydantic import AwareDatetime

from tidegate.core.model.events import SpotInterruption
from tidegate.wire.events.envelope import InstanceDetail, Wire

DETAIL_TYPE = "EC2 Spot Instance Interruption Warning"


class _Notice(Wire):
    source: Literal["aws.ec2"]
    time: AwareDatetime
    detail: InstanceDetail


def parse(fields: object) -> SpotInterruption:
    """Errors: pydantic.ValidationError."""
    notice = _Notice.model_validate(fields)
    return SpotInterruption(notice.detail.instance_id, notice.time.timestamp())
