"""EventBridge's resource types, mended, and the place where a router takes over the delivery."""

import json
from typing import Any, Protocol

from moto.events.models import Archive, EventBus, EventsBackend, Rule

_create_archive: Any = Archive.create_from_cloudformation_json
_send_to_targets: Any = Rule.send_to_targets
_put_events: Any = EventsBackend.put_events


class Sink(Protocol):
    """Delivers the events that match a rule."""

    def now_s(self) -> float:
        """The time of events that carry none."""

    def deliver(self, rule: Rule, event: dict[str, Any]) -> list[dict[str, Any]]:
        """Returns the targets that moto is to serve: archives, log groups, other buses."""


class _Delivery:
    """moto's rules are the process's own, so there is at most one sink."""

    sink: Sink | None = None


def attach(sink: Sink) -> None:
    """Let `sink` deliver from now on; without one moto does, which knows no Lambda, no policy."""
    assert _Delivery.sink is None, "another router delivers the events of this process"
    _Delivery.sink = sink


def detach(sink: Sink) -> None:
    if _Delivery.sink is sink:
        _Delivery.sink = None


def _send(rule: Rule, original_event: Any, transform_input: bool = True) -> None:
    """As moto's; a disabled rule delivers nothing, and what the sink takes is the sink's."""
    sink = _Delivery.sink
    if rule.state == "DISABLED":
        return
    if sink is None:
        _send_to_targets(rule, original_event, transform_input)
        return
    if not rule.event_pattern.matches_event(original_event):
        return
    if rest := sink.deliver(rule, original_event):
        only = Rule.__new__(Rule)
        only.__dict__.update(rule.__dict__, targets=rest)
        _send_to_targets(only, original_event, transform_input)


def _put(backend: Any, events: list[dict[str, Any]]) -> Any:
    """As moto's; with the time of the sink's clock where an entry has none."""
    if (sink := _Delivery.sink) is not None:
        events = [{"Time": sink.now_s(), **event} for event in events]
    return _put_events(backend, events)


def _archive(name: str, json_: dict[str, Any], account: str, region: str, **more: Any) -> Archive:
    """moto takes a pattern as text only, and CloudFormation gives it as an object."""
    pattern = json_["Properties"].get("EventPattern")
    if isinstance(pattern, dict):
        json_["Properties"]["EventPattern"] = json.dumps(pattern)
    made: Archive = _create_archive(name, json_, account, region, **more)
    return made


def _bus(original_resource: EventBus, new_resource_name: str, **given: Any) -> EventBus:
    """A bus keeps its rules; moto's own deletes it, which fails for as long as it has any."""
    if new_resource_name == original_resource.name:
        return original_resource
    original_resource.delete(given["account_id"], given["region_name"])
    return EventBus.create_from_cloudformation_json(
        new_resource_name, given["cloudformation_json"], given["account_id"], given["region_name"]
    )


def _name(named: EventBus | Archive) -> str:
    return named.name


def install() -> None:
    bus: Any = EventBus
    archive: Any = Archive
    rule: Any = Rule
    backend: Any = EventsBackend
    bus.physical_resource_id = archive.physical_resource_id = property(_name)
    bus.update_from_cloudformation_json = staticmethod(_bus)
    archive.create_from_cloudformation_json = staticmethod(_archive)
    rule.send_to_targets = _send
    backend.put_events = _put
