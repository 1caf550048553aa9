"""Delivers events and schedules to their targets, as far as the deployed policies allow."""

import copy
import json
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from moto.events.models import Rule
from moto.events.utils import EventTemplateParser

from local.router.clock import VirtualClock, iso
from local.router.deployed import Deployed, ScheduleSettings
from local.router.functions import Functions
from local.router.roles import LAMBDA, Authorizer

EVENTS = "events.amazonaws.com"
SCHEDULER = "scheduler.amazonaws.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Undelivered:
    """What did not reach its target. `went_to`: the dead-letter queue's ARN; "": it is lost."""

    source: str
    target: str
    reason: str
    payload: str
    went_to: str


@dataclass(frozen=True, slots=True)
class Work:
    """An asynchronous invocation that waits for its turn."""

    function_arn: str
    payload: str


@dataclass(slots=True)
class Delivery:
    """`enqueue` takes asynchronous invocations; `repeat`: how often everything is delivered."""

    deployed: Deployed
    authorizer: Authorizer
    functions: Functions
    clock: VirtualClock
    enqueue: Callable[[Work], None]
    repeat: int = 1
    undelivered: list[Undelivered] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def now_s(self) -> float:
        """What EventBridge stamps events with."""
        return self.clock.now_s()

    def deliver(self, rule: Rule, event: dict[str, Any]) -> list[dict[str, Any]]:
        """Deliver an event that matched a rule; gives back the targets that are moto's to do.

        Called while moto answers PutEvents: it must neither wait nor call the local cloud.
        """
        rest: list[dict[str, Any]] = []
        for target in rule.targets:
            service = target["Arn"].split(":")[2]
            if service not in ("lambda", "sqs"):
                rest.append(target)
                continue
            payload = _payload(target, {**event, "time": iso(float(event["time"]))})
            for _ in range(self.repeat):
                if service == "lambda":
                    self._to_function(rule.arn, target, payload)
                else:
                    self._to_queue(rule.arn, target, payload)
        return rest

    def fire(self, schedule: ScheduleSettings, at_s: float) -> None:
        """Start what a schedule asks for, as of `at_s`, with the rights of its role."""
        target = dict(schedule.target)
        payload = _filled_in(target.get("Input") or "{}", schedule.arn, at_s)
        role, arn = target["RoleArn"], target["Arn"]
        kind = arn.split(":")[2]
        action = {"lambda": "lambda:InvokeFunction", "sqs": "sqs:SendMessage"}[kind]
        for _ in range(self.repeat):
            if not self.authorizer.trusts(role, SCHEDULER, _of_schedule(schedule.arn)):
                self._give_up(schedule.arn, target, payload, f"{role} does not trust {SCHEDULER}")
            elif not self.authorizer.allows(role, action, arn):
                self._give_up(schedule.arn, target, payload, f"{role} may not {action} {arn}")
            elif kind == "lambda":
                self.enqueue(Work(arn, payload))
            else:
                self._send(arn, payload, _group(target))

    def run(self, work: Work) -> None:
        """Invoke a function asynchronously: with retries, then to where its failures go.

        Source: Lambda developer guide, "Asynchronous invocation". The minutes that Lambda
        waits between attempts are left out.
        """
        attempts = 1 + self.deployed.retries(work.function_arn)
        for _ in range(attempts):
            done = self.functions.invoke(work.function_arn, json.loads(work.payload))
            if done.is_ok:
                return
        function = self.deployed.function(work.function_arn)
        queue = self.deployed.on_failure(work.function_arn)
        is_allowed = bool(queue) and self.authorizer.allows(
            function.role_arn, "sqs:SendMessage", queue
        )
        reason = f"failed {attempts} times: {done.error}"
        self._bury(LAMBDA, work.function_arn, work.payload, reason, queue if is_allowed else "")

    def _to_function(self, source: str, target: dict[str, Any], payload: str) -> None:
        arn = target["Arn"]
        try:
            policy = self.deployed.function_policy(arn)
        except KeyError:
            self._give_up(source, target, payload, f"{arn} does not exist")
            return
        if self._lets_in(policy, "lambda:InvokeFunction", arn, source):
            self.enqueue(Work(arn, payload))
        else:
            why = f"the policy of {arn} does not let {EVENTS} invoke it"
            self._give_up(source, target, payload, why)

    def _to_queue(self, source: str, target: dict[str, Any], payload: str) -> None:
        arn = target["Arn"]
        try:
            policy = self.deployed.queue_policy(arn)
        except KeyError:
            self._give_up(source, target, payload, f"{arn} does not exist")
            return
        if not self._lets_in(policy, "sqs:SendMessage", arn, source):
            why = f"the policy of {arn} does not let {EVENTS} send to it"
            self._give_up(source, target, payload, why)
        else:
            self._send(arn, payload, _group(target))

    def _lets_in(self, policy: dict[str, Any], action: str, arn: str, source: str) -> bool:
        context = {"aws:SourceArn": source, "aws:SourceAccount": self.deployed.place.account}
        return self.authorizer.resource_policy_allows(policy, EVENTS, action, arn, context)

    def _give_up(self, source: str, target: dict[str, Any], payload: str, reason: str) -> None:
        """To the target's dead-letter queue; a denial is not tried again."""
        queue = (target.get("DeadLetterConfig") or {}).get("Arn", "")
        is_allowed = bool(queue)
        if queue and ":rule/" in source:
            policy = self.deployed.queue_policy(queue)
            is_allowed = self._lets_in(policy, "sqs:SendMessage", queue, source)
        elif queue:
            is_allowed = self.authorizer.allows(target["RoleArn"], "sqs:SendMessage", queue)
        self._bury(source, target["Arn"], payload, reason, queue if is_allowed else "")

    def _bury(self, source: str, target: str, payload: str, reason: str, queue: str) -> None:
        if queue:
            self._send(queue, payload, "dead" if queue.endswith(".fifo") else None)
        with self._lock:
            self.undelivered.append(
                Undelivered(
                    source=source, target=target, reason=reason, payload=payload, went_to=queue
                )
            )

    def _send(self, queue_arn: str, body: str, group: str | None) -> None:
        name = queue_arn.rsplit(":", 1)[-1]
        self.deployed.place.backend("sqs").send_message(name, body, group_id=group)


def _of_schedule(schedule_arn: str) -> dict[str, str]:
    """Source: EventBridge Scheduler user guide, "Confused deputy prevention": it is the group's
    ARN that a role's trust policy may name.
    """
    *parts, resource = schedule_arn.split(":", maxsplit=5)
    group = resource.split("/")[1]
    return {
        "aws:SourceArn": ":".join((*parts, f"schedule-group/{group}")),
        "aws:SourceAccount": parts[4],
    }


def _group(target: dict[str, Any]) -> str | None:
    group: str | None = (target.get("SqsParameters") or {}).get("MessageGroupId")
    return group


def _payload(target: dict[str, Any], event: dict[str, Any]) -> str:
    """What the target gets of an event."""
    assert "InputPath" not in target, "InputPath is not modelled"
    if "Input" in target:
        return str(target["Input"])
    event.pop("ingestion-time", None)
    if transformer := target.get("InputTransformer"):
        made = EventTemplateParser.parse(
            input_template=transformer["InputTemplate"],
            input_paths_map=transformer.get("InputPathsMap", {}),
            event=copy.deepcopy(event),  # type: ignore[arg-type]
        )
        return json.dumps(made)
    return json.dumps(event)


def _filled_in(text: str, schedule_arn: str, at_s: float) -> str:
    """Source: EventBridge Scheduler user guide, "Adding context attributes"."""
    values = {
        "scheduled-time": iso(at_s),
        "schedule-arn": schedule_arn,
        "execution-id": str(uuid.uuid4()),
        "attempt-number": "1",
    }
    for name, value in values.items():
        text = text.replace(f"<aws.scheduler.{name}>", value)
    return text
