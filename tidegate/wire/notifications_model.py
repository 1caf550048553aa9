"""The section `notifications` of the cluster file."""

from typing import Annotated

from pydantic import Field

from tidegate.wire import names
from tidegate.wire.section import Section

# It is of the partition aws alone.
# Source: Chatbot API reference, SlackChannelConfiguration: ARNs begin with arn:aws.
CHATLESS = ("us-gov-", "cn-", "us-iso", "eusc-")

# EC2 is often short of something for less than the alarm's eight minutes.
WaitSeconds = Annotated[float, Field(ge=600, le=30 * 86400)]


class SlackModel(Section):
    """A channel of Slack, by Amazon Q Developer in chat applications."""

    workspace_id: names.SlackId = Field(
        description="like T0123ABCDEF; the workspace was connected in the console once"
    )
    channel_id: names.SlackId = Field(
        description="like C0123ABCDEF; of a private channel, after /invite @Amazon Q there"
    )


class TeamsModel(Section):
    """A channel of Microsoft Teams, by Amazon Q Developer in chat applications."""

    tenant_id: names.Uuid = Field(description="the tenant, which was connected in the console once")
    team_id: names.Uuid = Field(description="the team")
    channel_id: names.TeamsChannelId = Field(
        description="as the channel's link has it, like 19%3Aab6e%40thread.tacv2"
    )


class NotificationsModel(Section):
    """Who is told, without asking, of what needs a person; each cause once."""

    wait_s: WaitSeconds = Field(
        default=7200.0,
        description="a job that has waited for so long, and that nobody wants to wait, is told of",
    )
    slack: SlackModel | None = Field(default=None, description="and alarms, in Slack")
    teams: TeamsModel | None = Field(default=None, description="and alarms, in Microsoft Teams")
