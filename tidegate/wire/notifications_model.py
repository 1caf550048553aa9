"""The section `notifications` of the cluster file."""

import re
from typing import Annotated, Self

from pydantic import Field, model_validator

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


# What stands in a mail's header without quotes: users' names are of their directory's choice.
_LOCAL, _DOMAIN = r"[A-Za-z0-9._%+-]", r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+"
_ADDRESS = f"^{_LOCAL}{{1,64}}@{_DOMAIN}$"
OwnAddress = Annotated[
    str,
    Field(
        pattern=_ADDRESS,
        json_schema_extra={"x-expected": "an e-mail address without a name"},
    ),
]


class OwnersModel(Section):
    """The owner of a job hears by mail that its GPUs idle, from Amazon SES."""

    sender: OwnAddress = Field(
        description="from which it is sent; it or its domain is verified in SES in this region"
    )
    address: Annotated[
        str | None,
        Field(
            pattern=rf"^{_LOCAL}*\{{user\}}{_LOCAL}*@{_DOMAIN}$",
            json_schema_extra={"x-expected": "like '{user}@example.org', in quotes"},
        ),
    ] = Field(
        default=None, description="whose mail is at the user's name, like '{user}@example.org'"
    )
    by_user: dict[names.UserName, OwnAddress] = Field(
        default_factory=dict,
        description="whose mail is elsewhere; others have none without address",
    )

    @model_validator(mode="after")
    def _finds_somebody(self) -> Self:
        if self.address is None and not self.by_user:
            raise ValueError("needs address or by_user: where the owners' mail is")
        return self

    def address_of(self, user: str) -> str:
        """Where the user's mail is; "" when nobody knows."""
        told = self.by_user.get(user) or (self.address or "").replace("{user}", user)
        return told if re.fullmatch(_ADDRESS, told) else ""


class NotificationsModel(Section):
    """Who is told, without asking, of what needs a person; each cause once."""

    wait_s: WaitSeconds = Field(
        default=7200.0,
        description="a job that has waited for so long, and that nobody wants to wait, is told of",
    )
    slack: SlackModel | None = Field(default=None, description="and alarms, in Slack")
    teams: TeamsModel | None = Field(default=None, description="and alarms, in Microsoft Teams")
    owners: OwnersModel | None = Field(
        default=None, description="the owner of a job whose GPUs idle, by mail; not when left out"
    )
