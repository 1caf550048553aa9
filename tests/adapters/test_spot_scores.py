"""Placement scores on the local cloud, and Spot Advisor's figures: what is not known is not 0."""

import pytest

from local.cloud import LocalCloud
from local.trouble import Fault, Trouble
from tidegate.adapters.spot_advisor import advisor_data
from tidegate.adapters.spot_scores import placement_score
from tidegate.core.model.capacity import Score

TYPES = ("g5.xlarge", "g5.2xlarge", "g5.4xlarge")


@pytest.fixture(autouse=True)
def clear(cloud: LocalCloud) -> None:
    cloud.blocks.clear()


def score(cloud: LocalCloud, *types: str, count: int = 4) -> Score:
    return placement_score(cloud.client("ec2"), "us-east-1", types, count, pool="a10g")


def test_the_region_s_score_is_ec2_s(cloud: LocalCloud) -> None:
    cloud.blocks.scores[tuple(sorted(TYPES))] = 3

    assert score(cloud, *TYPES) == Score(3)


def test_fewer_types_than_ec2_scores_are_not_asked_about(cloud: LocalCloud) -> None:
    """Its answer would be low, and say nothing of what there is."""
    found = score(cloud, *TYPES[:2])

    assert found.value is None
    assert "scores fewer than 3 low by itself" in found.why
    assert not cloud.blocks.asked


def test_a_used_up_number_of_questions_is_no_bad_score(cloud: LocalCloud) -> None:
    cloud.blocks.questions = 1

    assert score(cloud, *TYPES).value == 5
    found = score(cloud, *TYPES, count=5)
    assert found == Score(
        None, "You have exceeded your maximum allowed Spot placement configurations."
    )
    assert score(cloud, *TYPES).value == 5


def test_more_instances_than_ec2_scores_are_no_bad_score(cloud: LocalCloud) -> None:
    cloud.blocks.scored_max = 100

    assert score(cloud, *TYPES, count=100).value == 5
    found = score(cloud, *TYPES, count=101)

    assert found.value is None
    assert "exceeds your limit" in found.why


def test_throttled_is_no_bad_score(cloud: LocalCloud) -> None:
    cloud.trouble(Trouble("ec2:GetSpotPlacementScores", Fault.THROTTLED, times=3))

    found = score(cloud, *TYPES)

    assert found.value is None
    assert "RequestLimitExceeded" in found.why


@pytest.mark.parametrize(
    "url", ["http://example.com/data.json", "file:///etc/passwd", "https://localhost:9/x.json"]
)
def test_what_cannot_be_had_of_the_advisor_is_none(url: str) -> None:
    assert advisor_data(url) is None
