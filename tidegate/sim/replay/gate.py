"""Gates for CI: `cost_usd > 1.05 * baseline` fails a replay whose figures say so."""

import re
from collections.abc import Callable, Sequence
from operator import ge, gt, le, lt

from tidegate.sim.replay.outcome import Outcome

COMPARE: dict[str, Callable[[float, float], bool]] = {">=": ge, "<=": le, ">": gt, "<": lt}

FIGURES: dict[str, Callable[[Outcome], float]] = {
    "cost_usd": lambda o: o.cost_usd,
    "multiple_of_bound": lambda o: o.multiple,
    "gpu_hours_billed": lambda o: o.gpu_hours_billed,
    "gpu_hours_lost": lambda o: o.gpu_hours_lost,
    "idle_share": lambda o: o.idle_share,
    "wait_p50_s": lambda o: o.waits.p50_s,
    "wait_p95_s": lambda o: o.waits.p95_s,
    "wait_p99_s": lambda o: o.waits.p99_s,
    "launches": lambda o: o.launches,
    "interruptions": lambda o: o.interruptions,
    "breaches": lambda o: o.breaches,
    "unmet_jobs": lambda o: o.jobs - o.jobs_ended,
}

_NUMBER = r"\d+(?:\.\d+)?"
_GATE = re.compile(
    rf"\s*(\w+)\s*(>=|<=|>|<)\s*(?:({_NUMBER})|(?:({_NUMBER})\s*\*\s*)?(baseline))\s*"
)


class BadGate(Exception):
    """A gate that says nothing that can be tested."""


class Gate:
    """A figure, a comparison, and a number or a multiple of the same figure of the baseline.

    The baseline is the first outcome; the others are judged against it. With a number every
    outcome is judged. Errors: BadGate.
    """

    def __init__(self, text: str) -> None:
        found = _GATE.fullmatch(text)
        if found is None:
            said = "is not like 'cost_usd > 1.05 * baseline' or 'wait_p95_s > 315'"
            raise BadGate(f"{text!r} {said}")
        figure, sign, number, factor, baseline = found.groups()
        if figure not in FIGURES:
            raise BadGate(f"there is no figure {figure}; there are {', '.join(FIGURES)}")
        self.text = text.strip()
        self.is_relative = bool(baseline)
        self._figure, self._compare = FIGURES[figure], COMPARE[sign]
        self._number = float(number or factor or 1.0)

    def failures(self, outcomes: Sequence[Outcome]) -> list[str]:
        """A sentence for each outcome of which the gate's condition is true."""
        scale = self._figure(outcomes[0]) if self.is_relative else 1.0
        bound = self._number * scale
        return [
            f"{each.name} ({each.policy}): {self.text}: {self._figure(each):.6g}, bound {bound:.6g}"
            for each in outcomes[self.is_relative :]
            if self._compare(self._figure(each), bound)
        ]
