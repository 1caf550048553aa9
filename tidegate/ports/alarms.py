"""Alarms of CloudWatch, for roll-outs that heed them."""

from collections.abc import Sequence
from typing import Protocol

from tidegate.core.model.alarms import SeenAlarm


class Alarms(Protocol):
    """CloudWatch's alarms, of this account and region."""

    def states(self, names: Sequence[str]) -> tuple[SeenAlarm, ...]:
        """Each of these, at most `ALARMS_MAX`: metric and composite alarms, and what there is not.

        Errors: Throttled, NotAuthorized.
        """
        ...
