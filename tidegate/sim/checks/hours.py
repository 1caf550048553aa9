"""Invariants of when the cluster is up."""

from datetime import datetime

from tidegate.core.model.ec2 import FleetRequest
from tidegate.sim.checks.witness import Check
from tidegate.sim.zoned import ZONE, Zoned


class NothingWhileStopped(Check):
    """Nothing is bought while the calendar says that the cluster is stopped."""

    def requested(self, request: FleetRequest) -> None:
        if self.witness.was_stopped():
            raise self.broken(f"{request.client_token} is asked for while the cluster is stopped")


class HoursOfTheWall(Check):
    """The cluster is up when the clock on the wall says so, also on a day that jumps an hour."""

    def begun(self) -> None:
        hours = self.witness.chaos.options.calendar
        if isinstance(hours, Zoned):
            now_s = self.witness.now_s
            is_up, is_open = hours.wanted(now_s).is_up, hours.is_open(now_s)
            if is_up is not is_open:
                said = "up" if is_up else "stopped"
                wall = datetime.fromtimestamp(now_s + hours.ahead_s, ZONE)
                raise self.broken(f"at {wall:%H:%M} the cluster is {said}")
