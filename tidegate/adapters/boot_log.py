"""What the interruption function wrote down of a node's boot (`lambdas/interruption.py`)."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from tidegate.adapters.aws_errors import aws_call
from tidegate.core.model.frozen import frozen
from tidegate.wire.finite import parse_json


@frozen
class BootTold:
    """A node's word of its boot. `failed`: the stage that it gave up in, or "" when it is ready.

    `stages`: seconds by name. `took_s`: of all, from the first stage on. `at_s`: when it was heard.
    """

    at_s: float
    failed: str = ""
    took_s: float = 0.0
    stages: Mapping[str, float] = field(default_factory=dict)


def boot_told(client: Any, cluster: str, instance_id: str, *, since_s: float) -> BootTold | None:
    """None: it has said nothing yet. Errors: Throttled, NotAuthorized."""
    pages = client.get_paginator("filter_log_events").paginate(
        logGroupName=f"/tidegate/{cluster}/interruption",
        startTime=int(since_s * 1000),
        filterPattern=f'"{instance_id}"',
    )
    with aws_call():
        events = [each for page in pages for each in page["events"]]
    for event in events:
        boot = _boot(event["message"])
        if boot.get("instance_id") == instance_id:
            at_s = event["timestamp"] / 1000
            if failed := boot.get("failed"):
                return BootTold(at_s, failed=str(failed))
            return BootTold(at_s, took_s=float(boot.get("s", 0)), stages=boot.get("stages", {}))
    return None


def _boot(line: str) -> dict[str, Any]:
    """The record of a boot in a line of the log; empty: it is about something else."""
    try:
        record = parse_json(line)
    except ValueError:
        return {}
    return dict(record.get("boot") or {}) if isinstance(record, dict) else {}
