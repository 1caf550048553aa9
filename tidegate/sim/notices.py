"""Messages to people, and what they were told, in memory."""

from dataclasses import dataclass, field

from tidegate.core.model.notice import Message, Told
from tidegate.sim.faults import Faults, effect, no_faults


@dataclass(slots=True)
class SimNotices:
    """One cluster's. `sent`: every message, the oldest first."""

    faults: Faults = no_faults
    noted: Told = field(default_factory=Told)
    sent: list[Message] = field(default_factory=list)

    def told(self) -> Told:
        with effect(self.faults, "told"):
            return self.noted

    def publish(self, message: Message) -> None:
        with effect(self.faults, "publish"):
            self.sent.append(message)

    def note(self, told: Told) -> None:
        with effect(self.faults, "note"):
            self.noted = told
