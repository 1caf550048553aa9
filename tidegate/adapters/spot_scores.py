"""How likely EC2 finds a request for spot instances to be filled.

Source: EC2 API reference, GetSpotPlacementScores; EC2 user guide, "Spot placement score".
"""

from collections.abc import Sequence
from typing import Any

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_score_limit, message_of, tolerating
from tidegate.core.model.capacity import Score
from tidegate.core.model.errors import NotAuthorized, Throttled

# With fewer EC2 answers a low score, whatever there is.
SCORED_TYPES_MIN = 3


def placement_score(
    client: Any, region: str, instance_types: Sequence[str], count: int, *, pool: str
) -> Score:
    """Of `count` instances of any of these types, in all zones of the region.

    What EC2 does not say is not known, and never a bad score. EC2 limits how many different
    questions an account may ask in 24 hours, and answers old ones again.
    """
    if len(instance_types) < SCORED_TYPES_MIN:
        few = f"pool {pool} has {len(instance_types)} instance types on spot"
        return Score(None, f"{few}, and EC2 scores fewer than {SCORED_TYPES_MIN} low by itself")
    try:
        with aws_call():
            answer = tolerating(
                lambda: client.get_spot_placement_scores(
                    InstanceTypes=sorted(instance_types),
                    TargetCapacity=count,
                    TargetCapacityUnitType="units",
                    SingleAvailabilityZone=False,
                    RegionNames=[region],
                ),
                is_score_limit,
            )
    except (Throttled, NotAuthorized) as error:
        return Score(None, str(error))
    if isinstance(answer, ClientError):
        return Score(None, message_of(answer))
    scores = [each["Score"] for each in answer["SpotPlacementScores"] if each["Region"] == region]
    return Score(scores[0]) if scores else Score(None, f"EC2 names no score for {region}")
