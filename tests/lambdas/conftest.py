"""The Lambda functions composed of simulated ports, and what AWS hands to it."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics

from tests.contracts.conftest import cloud, names
from tests.make import cluster
from tests.service.conftest import World
from tidegate.core.explain.history import LookEvent as Told
from tidegate.core.explain.verdicts import Verdicts
from tidegate.core.model.calendar import AlwaysUp
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import FleetRequest
from tidegate.core.model.errors import TidegateError
from tidegate.ports import Calendar
from tidegate.service.hours import Hours
from tidegate.service.interruptions import Interruptions
from tidegate.service.prices import Prices
from tidegate.service.reservations import Reservations
from tidegate.service.telling import Teller
from tidegate.sim.bus import SimDeadLooks
from tidegate.sim.faults import Faults
from tidegate.sim.head import SimHead
from tidegate.sim.notices import SimNotices
from tidegate.sim.prices import SimPrices
from tidegate.sim.reservations import SimReservations
from tidegate.wire.decisions import decode_verdicts, encode_verdicts
from tidegate.wire.deployment import Metrics
from tidegate.wiring.function import Event, Function
from tidegate.wiring.planner import Planner
from tidegate.wiring.reconcile import Reconcile

__all__ = ["cloud", "names"]

NUMBERS = count()


@dataclass
class Context:
    """What Lambda passes as the second argument."""

    function_name: str = "planner"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:planner"
    aws_request_id: str = "request-1"


@dataclass
class Kept:
    """The port of decisions, in memory; what cannot be written cannot be kept, as in S3."""

    verdicts: list[Verdicts] = field(default_factory=list)
    looks: list[Sequence[Told]] = field(default_factory=list)
    trouble: Exception | None = None

    def keep(self, verdicts: Verdicts) -> None:
        if self.trouble:
            raise self.trouble
        self.verdicts.append(decode_verdicts(encode_verdicts(verdicts)))

    def append(self, events: Sequence[Told]) -> None:
        self.looks.append(events)


@dataclass
class Tried:
    """The port of dry runs, in memory."""

    fleets: list[FleetRequest] = field(default_factory=list)
    instances: list[FleetRequest] = field(default_factory=list)
    trouble: TidegateError | None = None

    def dry_run(self, request: FleetRequest) -> str:
        if self.trouble:
            raise self.trouble
        self.fleets.append(request)
        return ""

    def dry_run_instance(self, request: FleetRequest) -> str:
        self.instances.append(request)
        return "UnauthorizedOperation: no iam:PassRole"


@dataclass
class Deployed:
    """The functions of a small cluster."""

    calendar: Calendar = field(default_factory=AlwaysUp)
    chosen: Metrics = Metrics.FULL
    file: Cluster = field(default_factory=cluster)
    log: io.StringIO = field(default_factory=io.StringIO)

    def __post_init__(self) -> None:
        self.world = World(self.file)
        self.head = SimHead(self.world.clock)
        self.dead = SimDeadLooks()
        self.kept = Kept()
        self.tried = Tried()
        self.metrics = EphemeralMetrics(namespace="Tidegate", service="test")
        self.metrics.set_default_dimensions(cluster="test")
        # Loggers of one name share a handler within a process.
        self.logger = Logger(service=f"test-{next(NUMBERS)}", stream=self.log)
        of = self.world.control()
        self.notices = SimNotices()
        self.planner = self._function(
            Planner(
                control=of,
                dead_looks=self.dead,
                decisions=self.kept,
                ec2=self.tried,
                teller=Teller("test", self.notices, of.clock, wait_s=7200.0),
            )
        )
        self.interruption = self._function(Interruptions(of.cluster, of.ledger, of.bus, of.clock))
        hours = Hours(
            cluster=of.cluster,
            calendar=self.calendar,
            head=self.head,
            compute=of.compute,
            ledger=of.ledger,
            bus=of.bus,
            clock=of.clock,
        )
        self.feed = SimPrices()
        prices = Prices(cluster=of.cluster, feed=self.feed, ledger=of.ledger, clock=of.clock)
        self.hours = self._function(hours)
        held = SimReservations()
        reservations = Reservations(cluster=of.cluster, feed=held, ledger=of.ledger, clock=of.clock)
        work = Reconcile(hours=hours, prices=prices, reservations=reservations)
        self.reconcile = self._function(work)

    def _function[Work](self, work: Work) -> Function[Work]:
        return Function(work=work, logger=self.logger, metrics=self.metrics, chosen=self.chosen)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    def figures(self) -> dict[str, float]:
        """Metric name -> sum of what was counted."""
        metric_set = self.metrics.metric_set
        return {name: sum(metric["Value"]) for name, metric in metric_set.items()}

    def break_with(self, faults: Faults) -> None:
        self.world.break_with(faults)
        self.head.faults = faults
        self.dead.faults = faults


def messages(*bodies: object) -> Event:
    """An event of SQS with these bodies; what is no text is written as JSON."""
    return {
        "Records": [
            {
                "messageId": f"m-{number}",
                "receiptHandle": f"r-{number}",
                "body": body if isinstance(body, str) else json.dumps(body),
                "attributes": {"ApproximateReceiveCount": "1"},
                "messageAttributes": {},
                "md5OfBody": "",
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:queue",
                "awsRegion": "us-east-1",
            }
            for number, body in enumerate(bodies)
        ]
    }


@pytest.fixture
def deployed() -> Deployed:
    return Deployed()
