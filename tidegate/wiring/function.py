"""What every Lambda function is made of, and what Lambda calls."""

import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics

from tidegate.adapters.clients import client_of_function
from tidegate.adapters.cluster_file import read_cluster_file
from tidegate.core.model.frozen import frozen
from tidegate.wire.config import ClusterFile, parse_deployed
from tidegate.wire.deployment import Metrics
from tidegate.wire.metrics import NAMESPACE, SERVICE, is_metric, unit_of
from tidegate.wire.settings import FunctionSettings
from tidegate.wiring.resources import Clients


@frozen(kw_only=True)
class Deployed:
    """A deployed cluster, as a function finds it."""

    settings: FunctionSettings
    file: ClusterFile
    clients: Clients


@frozen(kw_only=True)
class Function[Work]:
    """A function of a cluster; `work`: what this one does it with."""

    work: Work
    logger: Logger
    metrics: EphemeralMetrics
    chosen: Metrics

    def count(self, **figures: float) -> None:
        """Metrics by name, for CloudWatch.

        What the file chose not to pay for is a field of a log record, when it is not 0.
        """
        beside = {n: value for n, value in figures.items() if not is_metric(n, self.chosen)}
        if any(beside.values()):
            told = {name: value for name, value in beside.items() if value}
            self.logger.info("figures", extra={"figures": told})
        for name, value in figures.items():
            if name not in beside:
                self.metrics.add_metric(name=name, unit=unit_of(name), value=value)


type Event = dict[str, Any]
type Answer = dict[str, Any]
type Handler = Callable[[Event, Any], Answer]


def function[Work](
    compose: Callable[[Deployed], Work],
    environment: Mapping[str, str],
    clients: Clients = client_of_function,
) -> Function[Work]:
    """One function on AWS, as its environment and the deployed cluster file describe it.

    Errors: BadConfig, with a line per problem; Throttled and NotAuthorized of S3.
    """
    settings = FunctionSettings.from_environment(environment)
    lazy = _lazily(clients)
    name = f"s3://{settings.cluster_bucket}/{settings.cluster_key}"
    text = read_cluster_file(lazy("s3"), settings.cluster_bucket, settings.cluster_key)
    file = parse_deployed(text, name)
    metrics = EphemeralMetrics(
        namespace=environment.get("POWERTOOLS_METRICS_NAMESPACE", NAMESPACE), service=SERVICE
    )
    metrics.set_default_dimensions(cluster=file.cluster.name)
    return Function(
        work=compose(Deployed(settings=settings, file=file, clients=lazy)),
        logger=_logger(file.cluster.name),
        metrics=metrics,
        chosen=file.metrics,
    )


def _logger(cluster: str) -> Logger:
    """Loggers of one service share their keys: those of the first would stay."""
    logger = Logger()
    logger.append_keys(cluster=cluster)
    return logger


def serve[Work](
    handle: Callable[[Function[Work], Event], Answer],
    made: Function[Work],
    *,
    correlation: str | None = None,
) -> Handler:
    """A Lambda handler around `handle`: context and correlation in each log line, metrics out.

    `correlation`: where in the event the correlation id stands (JMESPath).
    """

    @made.logger.inject_lambda_context(correlation_id_path=correlation)
    def handler(event: Event, context: object) -> Answer:
        try:
            return handle(made, event)
        finally:
            # Powertools warns of an invocation that counted nothing, in the function's log.
            if made.metrics.metric_set:
                made.metrics.flush_metrics()

    wrapped: Handler = handler
    return wrapped


def entry[Work](
    handle: Callable[[Function[Work], Event], Answer],
    compose: Callable[[Deployed], Work],
    *,
    correlation: str | None = None,
) -> Handler:
    """What Lambda calls: composed from the process's environment at the first invocation.

    Errors: those of `function`, and at every further invocation anew.
    """

    @cache
    def composed() -> Handler:
        return serve(handle, function(compose, os.environ), correlation=correlation)

    def handler(event: Event, context: object) -> Answer:
        return composed()(event, context)

    return handler


def _lazily(clients: Clients) -> Clients:
    """Clients that are made when they are first used: each costs a cold start dearly."""

    class Lazy:
        def __init__(self, service: str) -> None:
            self._service = service

        def __getattr__(self, name: str) -> Any:
            return getattr(made(self._service), name)

    made = cache(clients)
    return cache(Lazy)
