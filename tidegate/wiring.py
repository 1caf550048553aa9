"""The composition root: which adapter stands behind which port."""

import gc
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from tidegate.adapters.bus import AwsBus
from tidegate.adapters.clients import client
from tidegate.adapters.clock import SystemClock
from tidegate.adapters.cluster_file import read_cluster_file
from tidegate.adapters.dead_looks import SqsDeadLooks
from tidegate.adapters.decisions import S3Decisions
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.adapters.ec2 import Ec2Compute
from tidegate.adapters.ec2_head import Ec2Head
from tidegate.core.pool import Cluster
from tidegate.ports import Calendar, DeadLooks, Decisions
from tidegate.service.control import Control
from tidegate.service.hours import Did, Hours
from tidegate.service.requests import Placement, Template
from tidegate.wire.config import parse_cluster
from tidegate.wire.deployment import Metrics
from tidegate.wire.metrics import NAMESPACE, SERVICE, is_metric
from tidegate.wire.settings import FunctionSettings

type Clients = Callable[[str], Any]
"""Makes a boto3 client by service name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The names of what one cluster owns in AWS."""

    table: str
    bucket: str
    event_bus: str
    look_queue_url: str
    urgent_queue_url: str
    routine_queue_url: str


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
        client("sqs"),
        cluster=settings.cluster,
        bucket=settings.bucket,
        event_bus=settings.bus,
        urgent_queue_url=settings.urgent_queue_url,
        routine_queue_url=settings.routine_queue_url,
    )


def control(
    cluster: Cluster,
    resources: Resources,
    placement: Placement,
    clients: Clients = client,
    *,
    calendar: Calendar | None = None,
) -> Control:
    """The control loop on AWS. `calendar` None: no schedules."""
    clock = SystemClock()
    bus = AwsBus(
        clients("s3"),
        clients("events"),
        clients("sqs"),
        cluster=cluster.name,
        bucket=resources.bucket,
        event_bus=resources.event_bus,
        urgent_queue_url=resources.urgent_queue_url,
        routine_queue_url=resources.routine_queue_url,
        look_queue_url=resources.look_queue_url,
    )
    return Control(
        cluster=cluster,
        compute=Ec2Compute(clients("ec2"), cluster.name),
        ledger=DynamoLedger(clients("dynamodb"), resources.table, clock),
        bus=bus,
        clock=clock,
        placement=placement,
        calendar=calendar,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """What every Lambda function of a cluster is made of."""

    control: Control
    hours: Hours
    dead_looks: DeadLooks
    decisions: Decisions
    logger: Logger
    metrics: EphemeralMetrics
    chosen: Metrics

    def count(self, **figures: float) -> None:
        """Metrics by name, for CloudWatch; ages are seconds, all others are counts.

        What the file chose not to pay for is a field of a log record, when it is not 0.
        """
        for name, value in figures.items():
            if not is_metric(name, self.chosen):
                if value:
                    self.logger.info("figure", extra={"figure": {name: value}})
                continue
            unit = MetricUnit.Seconds if name.endswith("Age") else MetricUnit.Count
            self.metrics.add_metric(name=name, unit=unit, value=value)

    def keep_hours(self, why: str) -> dict[str, str]:
        """Keep the head's hours, log and count what came of it. Errors: those of `Hours.keep`."""
        kept = self.hours.keep(why)
        self.logger.info("hours", extra={"hours": kept.record(), "why": why})
        self.count(HeadStarted=kept.did is Did.STARTED, HeadStopped=kept.did is Did.STOPPED)
        return kept.record()


def collect_rarely() -> None:
    """Keep Python's cyclic collector out of a plan: 15 % of its time at 100,000 jobs.

    A plan makes hundreds of thousands of objects that live until its end; none is garbage.
    """
    gc.set_threshold(200_000, 20, 20)


type Event = dict[str, Any]
type Answer = dict[str, Any]
type Handler = Callable[[Event, Any], Answer]


def function(environment: Mapping[str, str], clients: Clients = client) -> Function:
    """One function on AWS, as its environment and the deployed cluster file describe it.

    Errors: BadConfig, with a line per problem; Throttled and NotAuthorized of S3.
    """
    settings = FunctionSettings.from_environment(environment)
    lazy = _lazily(clients)
    name = f"s3://{settings.cluster_bucket}/{settings.cluster_key}"
    text = read_cluster_file(lazy("s3"), settings.cluster_bucket, settings.cluster_key)
    file = parse_cluster(text, name)
    cluster = file.cluster
    made = control(
        cluster, resources_of(settings), placement_of(settings), lazy, calendar=file.schedules
    )
    metrics = EphemeralMetrics(
        namespace=environment.get("POWERTOOLS_METRICS_NAMESPACE", NAMESPACE), service=SERVICE
    )
    metrics.set_default_dimensions(cluster=cluster.name)
    return Function(
        control=made,
        hours=Hours(
            cluster=cluster,
            calendar=file.schedules,
            head=Ec2Head(lazy("ec2"), cluster.name),
            compute=made.compute,
            ledger=made.ledger,
            bus=made.bus,
            clock=made.clock,
        ),
        dead_looks=SqsDeadLooks(lazy("sqs"), settings.dead_look_queue_url, cluster.name),
        decisions=S3Decisions(lazy("s3"), settings.bucket, cluster.name),
        logger=_logger(cluster.name),
        metrics=metrics,
        chosen=file.metrics,
    )


def _logger(cluster: str) -> Logger:
    """Loggers of one service share their keys: those of the first would stay."""
    logger = Logger()
    logger.append_keys(cluster=cluster)
    return logger


def serve(
    handle: Callable[[Function, Event], Answer], made: Function, *, correlation: str | None = None
) -> Handler:
    """A Lambda handler around `handle`: context and correlation in each log line, metrics out.

    `correlation`: where in the event the correlation id stands (JMESPath).
    """

    @made.metrics.log_metrics
    @made.logger.inject_lambda_context(correlation_id_path=correlation)
    def handler(event: Event, context: object) -> Answer:
        return handle(made, event)

    wrapped: Handler = handler
    return wrapped


def entry(
    handle: Callable[[Function, Event], Answer], *, correlation: str | None = None
) -> Handler:
    """What Lambda calls: composed from the process's environment at the first invocation.

    Errors: those of `function`, and at every further invocation anew.
    """

    @cache
    def composed() -> Handler:
        return serve(handle, function(os.environ), correlation=correlation)

    def handler(event: Event, context: object) -> Answer:
        return composed()(event, context)

    return handler


def resources_of(settings: FunctionSettings) -> Resources:
    return Resources(
        table=settings.table,
        bucket=settings.bucket,
        event_bus=settings.bus,
        look_queue_url=settings.look_queue_url,
        urgent_queue_url=settings.urgent_queue_url,
        routine_queue_url=settings.routine_queue_url,
    )


def placement_of(settings: FunctionSettings) -> Placement:
    templates = {pool: Template(*pair) for pool, pair in settings.templates.items()}
    return Placement(templates, settings.subnets, settings.placement_groups)


def _lazily(clients: Clients) -> Clients:
    """Clients that are made when they are first used: each costs a cold start dearly."""

    class Lazy:
        def __init__(self, service: str) -> None:
            self._service = service

        def __getattr__(self, name: str) -> Any:
            return getattr(made(self._service), name)

    made = cache(clients)
    return cache(Lazy)
