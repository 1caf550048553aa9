"""The time of day, ours and that of the AWS service that just answered."""

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from tidegate.core.model.frozen import frozen
from tidegate.ports import Clock


@frozen
class SystemClock:
    """This machine's clock, kept by chrony or by Lambda."""

    def now_s(self) -> float:
        return time.time()


def answered_at_s(response: Mapping[str, Any], clock: Clock) -> float:
    """When the service sent this response, by its own clock: the HTTP Date header.

    Ours where the header is missing, as some proxies strip it.
    """
    headers = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    date = headers.get("date", "")
    try:
        return parsedate_to_datetime(date).timestamp()
    except ValueError:
        return clock.now_s()
