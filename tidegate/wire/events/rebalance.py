"""A spot instance is at an elevated risk of interruption.

Schema: EC2 user guide, "EC2 instance rebalance recommendations". It can come together with the
notice of the reclaim.
"""

from typing import Literal

from tidegate.core.model.events import RebalanceRecommendation
from tidegate.wire.events.envelope import InstanceDetail, Wire

DETAIL_TYPE = "EC2 Instance Rebalance Recommendation"


class _Notice(Wire):
    source: Literal["aws.ec2"]
    detail: InstanceDetail


def parse(fields: object) -> RebalanceRecommendation:
    """Errors: pydantic.ValidationError."""
    return RebalanceRecommendation(_Notice.model_validate(fields).detail.instance_id)
