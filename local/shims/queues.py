"""SQS as it is where it matters to us: deduplication, groups in flight, updates of settings.

moto forgets a deduplication id together with the message that carried it, and lets the next
message of a group out in the same breath as the one before it has timed out.
Source: SQS developer guide, "Exactly-once processing" and "FIFO queue delivery logic".
"""

import time
from collections.abc import Callable
from typing import Any

from moto.sqs.models import DEDUPLICATION_TIME_IN_SECONDS, Message, Queue

from local.shims.resource import Place

_set_attributes: Callable[..., None] = Queue._set_attributes
_wait_for_messages: Callable[..., None] = Queue.wait_for_messages

LOCKED_GROUP_POLL_S = 0.05

SETTINGS = (
    "ContentBasedDeduplication",
    "DelaySeconds",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "RedrivePolicy",
    "VisibilityTimeout",
)


def _add(self: Any, message: Message) -> None:
    """Drops what was sent before within five minutes, even when that has been consumed.

    Deduplication works on sending; what a redrive moves here is let in.
    """
    if self.fifo_queue and message.deduplication_id and message.approximate_receive_count == 0:
        now_s = time.time()
        seen: dict[str, float] = self.__dict__.setdefault("deduplicated", {})
        for old in [key for key, at_s in seen.items() if at_s <= now_s]:
            del seen[old]
        if message.deduplication_id in seen:
            return
        seen[message.deduplication_id] = now_s + DEDUPLICATION_TIME_IN_SECONDS
    # moto's own goes on to push to functions from here; the router's pollers do that instead.
    with self._messages_lock:
        self._messages.append(message)
        self._messages_lock.notify_all()


def _wait(self: Any, timeout: int) -> None:
    """As moto's, which spins when all that is visible belongs to groups in flight."""
    if self.messages:
        time.sleep(LOCKED_GROUP_POLL_S)
    else:
        _wait_for_messages(self, timeout)


def _groups_in_flight(self: Any) -> set[str]:
    """Of messages that somebody holds now; moto counts those whose time ran out as well.

    With those counted, the second of two that timed out together would come first.
    """
    return {
        message.group_id
        for message in self._pending_messages
        if message.group_id is not None and not message.visible
    }


def _set(self: Any, attributes: dict[str, Any], now: float | None = None) -> None:
    """As moto's, which forgets the queue's policy whenever something else is set."""
    policy = getattr(self, "_policy_json", None)
    _set_attributes(self, attributes, now)
    if "Policy" not in attributes and policy is not None:
        self._policy_json = policy


def _update(original_resource: Any, new_resource_name: str, **given: Any) -> Any:
    """moto's own takes over two settings of all."""
    properties = given["cloudformation_json"]["Properties"]
    if new_resource_name != original_resource.name:
        place = Place(given["account_id"], given["region_name"])
        place.backend("sqs").delete_queue(original_resource.name)
        return Queue.create_from_cloudformation_json(
            new_resource_name, given["cloudformation_json"], place.account, place.region
        )
    original_resource._set_attributes(
        {key: properties[key] for key in SETTINGS if key in properties}
    )
    return original_resource


def install() -> None:
    queue: Any = Queue
    queue.add_message = _add
    queue._set_attributes = _set
    queue.wait_for_messages = _wait
    queue.pending_message_groups = property(_groups_in_flight)
    queue.update_from_cloudformation_json = staticmethod(_update)
