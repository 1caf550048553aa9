"""Whoever an alarm wakes finds out what it means, where to look and what to do."""

import re
from pathlib import Path

from tests.cdk.made import Stack

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def test_each_alarm_has_a_section_that_says_what_to_do(dev: Stack) -> None:
    sections = {part.splitlines()[0]: part for part in PAGE.read_text().split("\n## ")[1:]}
    alarms = dev.all("AWS::CloudWatch::Alarm")

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
