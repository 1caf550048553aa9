"""People are told by the topic of the alarms, and chats by AWS's own service, without rights."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cdk.made import Stack, dev_file, synthesized
from tests.cdk.variants import OWNERS, SLACK, TEAM, TEAMS, cluster_stack, stacks_of
from tidegate.core.model.errors import BadConfig


def roles(stack: Stack) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, role in stack.resources("AWS::IAM::Role"):
        yield name, role["Properties"]


def publishing(stack: Stack) -> list[tuple[str, Any]]:
    """Roles that may publish, and where."""
    return [
        (name, each["Resource"])
        for name, role in roles(stack)
        for policy in role.get("Policies", ())
        for each in policy["PolicyDocument"]["Statement"]
        if "sns:" in str(each["Action"])
    ]


def topic(stack: Stack) -> str:
    return stack.logical_id("", "AWS::SNS::Topic")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    return cluster_stack(stacks_of(tmp_path_factory, "everything told"))


def planner_variables(stack: Stack) -> Mapping[str, Any]:
    (found,) = (
        each["Environment"]["Variables"]
        for each in stack.all("AWS::Lambda::Function")
        if each.get("FunctionName") == "tidegate-dev-planner"
    )
    return dict(found)


def test_planner_and_report_alone_may_publish_to_the_topic_of_the_alarms(told: Stack) -> None:
    assert planner_variables(told)["TIDEGATE_TOPIC"] == {"Ref": topic(told)}
    (planner, where), (report, there) = sorted(publishing(told))
    assert "PlannerRole" in planner
    assert "ReportRole" in report
    assert where == there == {"Ref": topic(told)}


def mailing(stack: Stack) -> list[tuple[str, dict[str, Any]]]:
    """Roles that may write mail, and what they are allowed of it."""
    return [
        (name, each)
        for name, role in roles(stack)
        for policy in role.get("Policies", ())
        for each in policy["PolicyDocument"]["Statement"]
        if "ses:" in str(each["Action"])
    ]


def test_the_planner_alone_may_write_to_owners_and_only_as_the_sender_of_the_file(
    told: Stack, dev: Stack
) -> None:
    (role, allowed), (same, reads) = mailing(told)

    assert same == role
    assert "PlannerRole" in role
    assert (reads["Action"], reads["Resource"]) == ("ses:GetSuppressedDestination", "*")
    assert allowed["Action"] == "ses:SendEmail"
    assert str(allowed["Resource"]).count(":ses:us-east-1:") == 1
    assert allowed["Condition"] == {"StringEquals": {"ses:FromAddress": OWNERS["sender"]}}
    assert mailing(dev) == []


def test_a_file_that_tells_nobody_gives_no_right_and_no_chat(dev: Stack) -> None:
    assert publishing(dev) == []
    assert "TIDEGATE_TOPIC" not in planner_variables(dev)
    assert not dev.all("AWS::Chatbot::SlackChannelConfiguration")


def test_the_topic_keeps_its_name_and_so_its_subscriptions(told: Stack, dev: Stack) -> None:
    """Of a topic that is replaced, CloudFormation takes the subscriptions along."""
    assert topic(told) == topic(dev) == "AlarmsTopic3A2DFEBA"


def test_channels_hear_the_topic_and_nobody_in_them_may_do_anything(told: Stack) -> None:
    slack = told.one("AWS::Chatbot::SlackChannelConfiguration")
    teams = told.one("AWS::Chatbot::MicrosoftTeamsChannelConfiguration")

    assert SLACK["workspace_id"] in slack["ConfigurationName"], "another one replaces it"
    assert TEAM in teams["ConfigurationName"]
    assert (slack["SlackWorkspaceId"], slack["SlackChannelId"]) == tuple(SLACK.values())
    assert (teams["TeamId"], teams["TeamsChannelId"]) == (TEAM, TEAMS["channel_id"])
    for each in (slack, teams):
        assert each["SnsTopicArns"] == [{"Ref": topic(told)}]
        assert "AWSDenyAll" in str(each["GuardrailPolicies"])
    (role,) = (
        each for _, each in roles(told) if "chatbot" in str(each["AssumeRolePolicyDocument"])
    )
    assert not role.get("Policies")
    assert not role.get("ManagedPolicyArns")


def test_where_there_is_no_chat_service_none_is_promised(tmp_path: Path) -> None:
    file = dev_file(region="us-gov-west-1", notifications={"slack": SLACK})

    with pytest.raises(BadConfig, match="Amazon Q Developer does not serve us-gov-west-1"):
        synthesized(tmp_path, file)
