"""Channels of Slack and Teams that hear what the cluster's topic says, by AWS's own service."""

from aws_cdk import Aws
from aws_cdk import aws_chatbot as chatbot
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk import statements
from tidegate.wire.config import ClusterFile


class Chats(Construct):
    """Amazon Q Developer in chat applications, once AWS Chatbot. Nobody in a channel may do
    anything with it: its role has no rights, and a guardrail denies what it would get later.

    Source: Chatbot API reference, SlackChannelConfiguration: without a guardrail the bound is
    AdministratorAccess.
    """

    def __init__(self, scope: Construct, id: str, *, file: ClusterFile, topic: sns.Topic) -> None:
        super().__init__(scope, id)
        told = file.notifications
        assert told, "the file tells somebody"
        if not (told.slack or told.teams):
            return
        # Another workspace replaces the configuration, which must not have the old one's name then.
        name = f"tidegate-{file.cluster.name}-{file.region}"
        role: iam.Role = statements.role(self, "Role", service="chatbot", statements=[])
        denied = [f"arn:{Aws.PARTITION}:iam::aws:policy/AWSDenyAll"]
        if told.slack:
            chatbot.CfnSlackChannelConfiguration(
                self,
                "Slack",
                configuration_name=f"{name}-slack-{told.slack.workspace_id}",
                iam_role_arn=role.role_arn,
                slack_workspace_id=told.slack.workspace_id,
                slack_channel_id=told.slack.channel_id,
                sns_topic_arns=[topic.topic_arn],
                guardrail_policies=denied,
            )
        if told.teams:
            chatbot.CfnMicrosoftTeamsChannelConfiguration(
                self,
                "Teams",
                configuration_name=f"{name}-teams-{told.teams.team_id}",
                iam_role_arn=role.role_arn,
                teams_tenant_id=told.teams.tenant_id,
                team_id=told.teams.team_id,
                teams_channel_id=told.teams.channel_id,
                sns_topic_arns=[topic.topic_arn],
                guardrail_policies=denied,
            )
