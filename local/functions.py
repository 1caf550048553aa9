"""Stands in for Lambda: polls the look and interruption queues and calls the control loop."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tidegate.core.errors import BadEvent
from tidegate.core.interruption import Notice
from tidegate.service.control import Control, Looked
from tidegate.wire.events import SpotInterruption, parse_event

logger = logging.getLogger(__name__)

# What an SQS event source hands to a function at once.
BATCH = 10


@dataclass(slots=True)
class Functions:
    """The planner and the interruption function of one cluster, each in a thread of its own."""

    control: Control
    sqs: Callable[[], Any]
    look_queue_url: str
    interruption_queue_url: str
    on_look: Callable[[Looked], None]
    dropped: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        for url, handle in (
            (self.look_queue_url, self._look),
            (self.interruption_queue_url, self._interrupt),
        ):
            thread = threading.Thread(target=self._serve, args=(url, handle), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _serve(self, url: str, handle: Callable[[list[object]], None]) -> None:
        sqs = self.sqs()
        while not self._stop.is_set():
            answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=BATCH, WaitTimeSeconds=1)
            messages = answer.get("Messages", ())
            events = [event for m in messages if (event := self._parse(m["Body"])) is not None]
            if events:
                handle(events)
            for message in messages:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    def _parse(self, body: str) -> object | None:
        """A body that can never become good is said, counted and dropped."""
        try:
            return parse_event(body)
        except BadEvent as bad:
            self.dropped += 1
            logger.warning("dropped an event: %s", bad)
            return None

    def _look(self, events: list[object]) -> None:
        """Looks carry no orders, so any number of them is one look."""
        self.on_look(self.control.look())

    def _interrupt(self, events: list[object]) -> None:
        notice_s = self.control.cluster.timings.spot_notice_s
        self.control.interrupt(
            [
                Notice(event.instance_id, event.at_s + notice_s)
                for event in events
                if isinstance(event, SpotInterruption)
            ]
        )
