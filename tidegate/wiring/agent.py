"""The agent on the head node."""

from typing import Protocol

from tidegate.adapters.bus import AwsBus
from tidegate.adapters.clients import LONG_POLL, client
from tidegate.adapters.decisions import S3Decisions
from tidegate.adapters.reports import S3Reports


class AgentSettings(Protocol):
    """What the agent must know to reach the planner."""

    @property
    def cluster(self) -> str: ...
    @property
    def bucket(self) -> str: ...
    @property
    def bus(self) -> str: ...
    @property
    def urgent_queue_url(self) -> str: ...
    @property
    def routine_queue_url(self) -> str: ...


def agent_bus(settings: AgentSettings) -> AwsBus:
    """The head's end of the bus, with the head's own role and region."""
    return AwsBus(
        client("s3"),
        client("events"),
        client("sqs", patience=LONG_POLL),
        cluster=settings.cluster,
        bucket=settings.bucket,
        event_bus=settings.bus,
        urgent_queue_url=settings.urgent_queue_url,
        routine_queue_url=settings.routine_queue_url,
    )


def agent_decisions(settings: AgentSettings) -> S3Decisions:
    """What the planner decided about each job, for the notes on jobs."""
    return S3Decisions(client("s3"), settings.bucket, settings.cluster)


def agent_reports(settings: AgentSettings) -> S3Reports:
    """Where who ran is handed in."""
    return S3Reports(client("s3"), settings.bucket, settings.cluster)
