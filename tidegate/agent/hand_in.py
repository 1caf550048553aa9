"""Hands in who ran, once for each period that is over, so that a report can be made of it.

The head has Slurm's accounting and no right on the ledger, the function that makes the page has
both the bill and no way to the head. So this puts what `sacct` says into the bucket, and that is
all of it. What is handed in twice is the same.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tidegate.core.model.errors import TidegateError
from tidegate.core.offers.periods import Every, before, ended
from tidegate.core.offers.spend import Period
from tidegate.ports import Clock

EVERY_S = 300.0
# slurmdbd hears of the last ends, and S3 of no clock that is more than 15 minutes off.
SETTLED_S = 1200.0
# After a longer stop the oldest reports are missing.
PERIODS_MAX = 7
STATE_FILE = "handed-in"

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class HandIn:
    """`runs`: what ran between two moments, as `sacct` says it. `put`: stores it by the period's
    name. `state`: a folder that outlives the agent; None: each start hands the last one in again.
    """

    every: Every
    runs: Callable[[float, float], bytes]
    put: Callable[[str, bytes], None]
    clock: Clock
    state: Path | None
    _last: str = field(default="")
    _problem: str = ""

    def step(self) -> None:
        """Hand in what is due. Raises nothing: it tries again."""
        for period in self._due():
            try:
                since_s = before(self.every, period).starts_at_s
                self.put(period.name, self.runs(since_s, period.ends_at_s))
                self._note(period)
            except (TidegateError, OSError) as error:
                self._say_once(f"Who ran in {period.name} cannot be handed in: {error}")
                return
            logger.info("Who ran in %s was handed in for the report.", period.name)
            self._problem = ""

    def _due(self) -> tuple[Period, ...]:
        """Of a clock that was put back the last period, again."""
        over = ended(self.every, self.clock.now_s() - SETTLED_S, PERIODS_MAX)
        last = self._last or self._noted()
        if not last or last > over[-1].name:
            return over[-1:]
        return tuple(each for each in over if each.name > last)

    def _noted(self) -> str:
        """The last period that was handed in; "": none of this length."""
        try:
            words = (self.state / STATE_FILE).read_text().split() if self.state else []
        except OSError:
            return ""
        return words[1] if len(words) == 2 and words[0] == self.every else ""

    def _note(self, period: Period) -> None:
        self._last = period.name
        if self.state:
            (self.state / STATE_FILE).write_text(f"{self.every} {period.name}\n")

    def _say_once(self, problem: str) -> None:
        if problem != self._problem:
            logger.warning("%s", problem)
        self._problem = problem
