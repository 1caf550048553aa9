"""What is deployed, read from moto's state when it is asked for, and never kept."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local.shims.resource import Place


@dataclass(frozen=True, slots=True)
class FunctionSettings:
    """A deployed function; one that differs in anything is run by a new process."""

    name: str
    arn: str
    handler: str
    role_arn: str
    timeout_s: int
    memory_mib: int
    environment: tuple[tuple[str, str], ...]
    code_sha256: str
    log_group: str
    dead_letter_arn: str


@dataclass(frozen=True, slots=True)
class Mapped:
    """An SQS event source mapping that is enabled.

    `window_s`: for how long a batch is gathered. `concurrency`: how many invocations it runs at
    once; where the mapping names no maximum, one, although Lambda would start with five.
    """

    uuid: str
    queue_arn: str
    function_arn: str
    batch_size: int
    window_s: float
    concurrency: int
    reports_item_failures: bool

    @property
    def queue_name(self) -> str:
        return self.queue_arn.rsplit(":", 1)[-1]


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """A schedule that is enabled."""

    arn: str
    expression: str
    zone: str
    created_at_s: float
    target: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Deployed:
    """The account's state in one region. Names and ARNs that are not there raise KeyError."""

    place: Place

    def function(self, name_or_arn: str) -> FunctionSettings:
        found = self._function(name_or_arn)
        logging: Mapping[str, str] = getattr(found, "logging_config", None) or {}
        environment = sorted(found.environment_vars.items())
        return FunctionSettings(
            name=found.function_name,
            arn=found.function_arn,
            handler=found.handler,
            role_arn=found.role,
            timeout_s=int(found.timeout),
            memory_mib=int(found.memory_size),
            environment=tuple((key, str(value)) for key, value in environment),
            code_sha256=found.code_sha_256,
            log_group=logging.get("LogGroup") or f"/aws/lambda/{found.function_name}",
            dead_letter_arn=(getattr(found, "dead_letter_config", None) or {}).get("TargetArn", ""),
        )

    def code(self, name_or_arn: str) -> bytes:
        """The zip that the function was deployed with."""
        return bytes(self._function(name_or_arn).code_bytes)

    def function_policy(self, name_or_arn: str) -> dict[str, Any]:
        """Who may invoke the function."""
        statements = list(self._function(name_or_arn).policy.statements)
        return {"Version": "2012-10-17", "Statement": statements}

    def retries(self, name_or_arn: str) -> int:
        """How often a failed asynchronous invocation is tried again."""
        config = self._invoke_config(name_or_arn)
        asked = config.get("MaximumRetryAttempts")
        return 2 if asked is None else int(asked)

    def on_failure(self, name_or_arn: str) -> str:
        """Where an event goes that the function failed for good: a queue's ARN, or ""."""
        destinations = self._invoke_config(name_or_arn).get("DestinationConfig") or {}
        asked = destinations.get("OnFailure", {}).get("Destination", "")
        return asked or self.function(name_or_arn).dead_letter_arn

    def queue_policy(self, queue_arn: str) -> dict[str, Any]:
        policy = self.place.backend("sqs").queues[queue_arn.rsplit(":", 1)[-1]].policy
        return json.loads(policy) if policy else {"Version": "2012-10-17", "Statement": []}

    def mappings(self) -> list[Mapped]:
        """Event source mappings of queues. A filter is refused: it is not modelled."""
        known = list(self.place.backend("lambda")._event_source_mappings.values())
        enabled = [each for each in known if each.enabled and ":sqs:" in each.event_source_arn]
        assert not any(each.filter_criteria for each in enabled), "FilterCriteria is not modelled"
        return [
            Mapped(
                uuid=each.uuid,
                queue_arn=each.event_source_arn,
                function_arn=each.function_arn,
                batch_size=int(each.batch_size),
                window_s=float(each.max_batch_window or 0),
                concurrency=int((each.scaling_config or {}).get("MaximumConcurrency", 1)),
                reports_item_failures="ReportBatchItemFailures"
                in (each.function_response_types or ()),
            )
            for each in enabled
        ]

    def schedules(self) -> list[ScheduleSettings]:
        groups = list(self.place.backend("scheduler").schedule_groups.values())
        known = [each for group in groups for each in list(group.schedules.values())]
        return [
            ScheduleSettings(
                arn=each.arn,
                expression=each.schedule_expression,
                zone=each.schedule_expression_timezone,
                created_at_s=float(each.creation_date),
                target=each.target,
            )
            for each in known
            if each.state == "ENABLED"
        ]

    def _function(self, name_or_arn: str) -> Any:
        name = name_or_arn.split(":")[6] if name_or_arn.startswith("arn:") else name_or_arn
        versions = self.place.backend("lambda")._lambdas._functions
        return versions[name]["latest"]

    def _invoke_config(self, name_or_arn: str) -> dict[str, Any]:
        configs = self._function(name_or_arn).event_invoke_config
        return dict(configs[0].config) if configs else {}
