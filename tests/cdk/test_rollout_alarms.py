"""The alarms that roll-outs heed, from the cluster file to the planner's rights and its looks."""

import json

import pytest

from tests.cdk.made import Stack
from tests.cdk.test_roles import statement, statements
from tests.cdk.variants import stacks_of
from tidegate.core.model.events import Look
from tidegate.wire.events import parse_event

NAMES = ["loss-too-high", "errors"]


@pytest.fixture(scope="module")
def watching(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    return stacks_of(tmp_path_factory, "alarms of roll-outs")["tidegate-dev"]


def test_the_planner_may_read_alarms_only_where_the_file_names_some(watching: Stack, dev: Stack):
    """On all of them: CloudWatch shows composite ones to nobody else."""
    read = statement(watching, "FunctionsPlannerRole", "Alarms")

    assert (read["Action"], read["Resource"]) == ("cloudwatch:DescribeAlarms", "*")
    assert "Alarms" not in {each["Sid"] for each in statements(dev, "FunctionsPlannerRole")}


def test_a_change_of_one_of_them_asks_for_a_look_and_says_no_more(watching: Stack, dev: Stack):
    rule = watching.named("EventsAlarms", "AWS::Events::Rule")

    assert rule["EventPattern"] == {
        "source": ["aws.cloudwatch"],
        "detail-type": ["CloudWatch Alarm State Change"],
        "detail": {"alarmName": NAMES},
    }
    (target,) = rule["Targets"]
    assert target["SqsParameters"] == {"MessageGroupId": "dev"}
    assert "Input" not in target
    changed = {
        "id": "1",
        "source": "aws.cloudwatch",
        "detail-type": "CloudWatch Alarm State Change",
        "time": "2026-01-06T00:00:00Z",
        "resources": ["arn:aws:cloudwatch:us-east-1:123456789012:alarm:errors"],
        "detail": {"alarmName": "errors", "state": {"value": "ALARM", "reason": "x"}},
    }
    assert parse_event(json.dumps(changed)) == Look("alarm errors is ALARM")
    assert not [each for each, _ in dev.resources("AWS::Events::Rule") if "Alarms" in each]
