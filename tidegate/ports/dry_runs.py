"""EC2's answer to a launch that is not made."""

from typing import Protocol

from tidegate.core.model.ec2 import FleetRequest


class DryRuns(Protocol):
    """EC2 asked whether it would take a launch; none of it launches anything.

    Each answers why not, "" when it would. Errors: Throttled.
    """

    def dry_run(self, request: FleetRequest) -> str:
        """The fleet, as a whole."""
        ...

    def dry_run_instance(self, request: FleetRequest) -> str | None:
        """One instance of its first override, without a fleet. None: that cannot be asked."""
        ...
