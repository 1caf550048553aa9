"""Whoever an alarm wakes finds out what it means, where to look and what to do."""

import re
from pathlib import Path

import pytest

from tests.cdk.made import Stack
from tests.cdk.variants import cluster_stack, stacks_of
from tidegate.wire.deployment import Metrics
from tidegate.wire.metrics import is_metric

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def test_each_alarm_has_a_section_that_says_what_to_do(
    dev: Stack, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sections = {part.splitlines()[0]: part for part in PAGE.read_text().split("\n## ")[1:]}
    kinds = ("capacity block and group", "everything told")
    stacks = [dev, *(cluster_stack(stacks_of(tmp_path_factory, each)) for each in kinds)]
    alarms = [alarm for each in stacks for alarm in each.all("AWS::CloudWatch::Alarm")]

    assert sections.keys() == {alarm["AlarmName"].removeprefix("tidegate-dev-") for alarm in alarms}
    for name, part in sections.items():
        words = {word.lower() for word in re.findall(r"\*\*(\w+)\*\*", part)}
        assert "As PlannerThrottles" in part or {"means", "look", "do"} <= words, name


def test_alarms_of_this_account_reach_the_topic_and_it_says_when_they_are_over(dev: Stack) -> None:
    statements = dev.one("AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"]
    ((topic, _),) = dev.resources("AWS::SNS::Topic")
    (publish,) = [each for each in statements if each["Effect"] == "Allow"]

    assert publish["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert publish["Condition"] == {
        "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    }
    for alarm in dev.all("AWS::CloudWatch::Alarm"):
        assert alarm["AlarmActions"][0] == {"Ref": topic}
        assert alarm["OKActions"] == [{"Ref": topic}]


def test_a_block_has_an_alarm_of_its_own(
    dev: Stack, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What never happens to a cluster it does not pay an alarm for."""
    stack = cluster_stack(stacks_of(tmp_path_factory, "capacity block and group"))

    def named(of: Stack) -> set[str]:
        return {each["AlarmName"] for each in of.all("AWS::CloudWatch::Alarm")}

    assert named(stack) - named(dev) == {"tidegate-dev-BlockEnds"}
    alarm = stack.named("AlarmsBlockEnds", "AWS::CloudWatch::Alarm")
    assert (alarm["MetricName"], alarm["Threshold"], alarm["Statistic"]) == (
        *("BlockEnds", 0, "Minimum"),
    )
    assert is_metric(alarm["MetricName"], Metrics.MINIMAL)  # else it would never fire
