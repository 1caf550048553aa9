"""The head's instance with EC2's habits: starting and stopping take their time."""

from dataclasses import dataclass

from tidegate.core.model.ec2 import InstanceState
from tidegate.ports import Clock
from tidegate.sim.faults import Faults, effect, no_faults

# EC2's way through a change: the state meanwhile, and the one after it.
_CHANGES = {
    InstanceState.PENDING: InstanceState.RUNNING,
    InstanceState.STOPPING: InstanceState.STOPPED,
}

_UP = InstanceState.RUNNING


@dataclass(slots=True)
class SimHead:
    """One head. `exists` False: it was never launched. `shortage`: what EC2 says to a start.

    `crashed_until_s`: it is of no use until then, whatever EC2 says of it.
    """

    clock: Clock
    exists: bool = True
    start_s: float = 30.0
    stop_s: float = 60.0
    shortage: str = ""
    faults: Faults = no_faults
    num_starts: int = 0
    num_stops: int = 0
    crashed_until_s: float = 0.0
    _state: InstanceState = InstanceState.RUNNING
    _until_s: float = 0.0

    @property
    def is_up(self) -> bool:
        """Whether slurmctld and the agent can run on it."""
        if not self.exists or (self.crashed_until_s and self.clock.now_s() < self.crashed_until_s):
            return False
        return self._state is _UP or self._now() is _UP

    def next_change_s(self) -> float:
        """When a change that is under way is over; infinity when none is."""
        now_s = self.clock.now_s()
        if self._state not in _CHANGES and self.crashed_until_s <= now_s:
            return float("inf")
        changes = (self._until_s if self._state in _CHANGES else 0.0, self.crashed_until_s)
        return min((at_s for at_s in changes if at_s > now_s), default=float("inf"))

    def state(self) -> InstanceState | None:
        with effect(self.faults, "state"):
            return self._now() if self.exists else None

    def start(self) -> str:
        with effect(self.faults, "start"):
            if not self.exists:
                return "the head: EC2 shows no instance with its tags"
            if self._now() is InstanceState.STOPPING:
                return "the head: The instance is not in a state from which it can be started."
            if self._now() is InstanceState.STOPPED and self.shortage:
                return f"the head: {self.shortage}"
            if self._now() is InstanceState.STOPPED:
                self.num_starts += 1
                self._change(InstanceState.PENDING, self.start_s)
        return ""

    def stop(self) -> str:
        with effect(self.faults, "stop"):
            if not self.exists:
                return "the head: EC2 shows no instance with its tags"
            if self._now() is InstanceState.PENDING:
                return "the head: The instance is not in a state from which it can be stopped."
            if self._now() is InstanceState.RUNNING:
                self.num_stops += 1
                self._change(InstanceState.STOPPING, self.stop_s)
        return ""

    def _change(self, to: InstanceState, wait_s: float) -> None:
        self._state, self._until_s = to, self.clock.now_s() + wait_s

    def _now(self) -> InstanceState:
        is_over = self.clock.now_s() >= self._until_s
        return _CHANGES.get(self._state, self._state) if is_over else self._state
