"""What was handed in about who ran, and the pages made of it, in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.core.offers.allocation import Accounted
from tidegate.ports import Clock
from tidegate.sim.faults import Faults, effect, no_faults


@dataclass(slots=True)
class SimReports:
    """One cluster's. `kept`: the pages, by the names of their periods."""

    clock: Clock
    faults: Faults = no_faults
    kept: dict[str, str] = field(default_factory=dict)
    _handed_in: dict[str, tuple[float, Accounted]] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)

    def hand_in(self, period: str, found: Accounted) -> None:
        self._handed_in[period] = self.clock.now_s(), found

    def handed_in(self) -> Mapping[str, float]:
        with effect(self.faults, "handed_in"):
            return {period: at_s for period, (at_s, _) in self._handed_in.items()}

    def pages(self) -> Mapping[str, bool]:
        with effect(self.faults, "pages"):
            return {period: period in self._told for period in self.kept}

    def accounted(self, period: str, until_s: float) -> Accounted:
        with effect(self.faults, "accounted"):
            return self._handed_in[period][1]

    def put(self, period: str, page: str) -> bool:
        with effect(self.faults, "put"):
            return self.kept.setdefault(period, page) is page

    def note_told(self, period: str) -> None:
        with effect(self.faults, "note_told"):
            self._told.add(period)

    def where(self, period: str) -> str:
        return f"sim:{period}"
