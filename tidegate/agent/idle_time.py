"""Writes down what nodes without a job are for, by node and time, beside what `sacct` will say.

Slurm's own record of drained nodes would not do: slurmdbd keeps 255 bytes of a reason, and ends
all its open events whenever a cluster's nodes change. (Slurm 25.11, as_mysql_cluster.c: reason is
a tinytext; as_mysql_cluster_tres sets time_end of every open one.) Of a node that takes jobs the
planner says what it is for, with its verdicts, which are written and read anyway.

What nobody knew is not written: an agent that was away, a Slurm or a planner that was silent, a
clock that was put. The spans lie in the shared folder, a file a day, where a new head finds them.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tidegate.agent.gpu_time import DAY_FILE, KEEP_EVERY_S, KEPT_DAYS
from tidegate.agent.users import own_folder, replace_if_changed
from tidegate.core.fleet.idle_use import idle_use
from tidegate.core.model.errors import BadConfig
from tidegate.core.model.idle_use import IdleSpan, IdleUse
from tidegate.core.model.slurm import Node
from tidegate.core.model.slurm_names import is_instance_id
from tidegate.core.offers.spend import DAY_S, day_of
from tidegate.ports import Clock

FOLDER = Path(".tidegate") / "idle-time"
EVERY_S = 20.0
# Whoever comes later than this, or by a clock that is this much off, knows nothing of the time
# since the last step.
LATE_S = 90.0
OFF_S = 5.0
# A node that idles is judged by the next look, which its news brings about: that holds for the time
# since it idles. What drained it came when it came.
JUDGED_WITHIN_S = 120.0

logger = logging.getLogger(__name__)

type Standing = tuple[Sequence[Node], Mapping[str, str]]
"""Nodes as Slurm has them now, and the planner's word for those without a job."""


@dataclass(slots=True)
class IdleTimes:
    """`standing`: None: nobody knows now. `stopwatch`: seconds that no clock that is put moves."""

    shared_dir: Path
    clock: Clock
    standing: Callable[[], Standing | None]
    stopwatch: Callable[[], float] = time.monotonic
    _open: dict[str, IdleSpan] = field(default_factory=dict)
    _unknown_since_s: dict[str, float] = field(default_factory=dict)
    _days: dict[str, list[str]] = field(default_factory=dict)
    _last: tuple[float, float] | None = None
    _kept_at_s: float = 0.0
    _problem: str = ""

    def step(self) -> None:
        """Write down what is known of the time since the last step. Raises nothing."""
        now_s, watch_s = self.clock.now_s(), self.stopwatch()
        last, self._last = self._last, (now_s, watch_s)
        found = self.standing()
        try:
            if last is None or found is None or not _is_steady(last, (now_s, watch_s)):
                self._forget()
            else:
                self._count(found, last[0], now_s)
            if watch_s >= self._kept_at_s + KEEP_EVERY_S:
                self._keep(now_s)
                self._kept_at_s = watch_s
        except (OSError, BadConfig) as error:
            if str(error) != self._problem:
                logger.warning("What idle nodes are for cannot be written down: %s", error)
            self._problem = str(error)

    def _count(self, found: Standing, since_s: float, now_s: float) -> None:
        """A node that has left, or has a job, was until then what it had been."""
        nodes, judged = found
        self._open = {name: replace(span, until_s=now_s) for name, span in self._open.items()}
        uses = {
            node.name: idle_use(node, judged.get(node.name, ""))
            for node in nodes
            if is_instance_id(node.name)
        }
        for name in self._open.keys() - uses.keys():
            self._close(name)
        empty = {node.name for node in nodes if node.state.is_empty}
        self._unknown_since_s = {
            name: at_s for name, at_s in self._unknown_since_s.items() if name in empty
        }
        for name, use in uses.items():
            self._see(name, use, since_s, now_s, is_empty=name in empty)

    def _see(
        self, name: str, use: IdleUse | None, since_s: float, now_s: float, *, is_empty: bool
    ) -> None:
        span, day = self._open.get(name), day_of(now_s)
        if span and span.use is use:
            if span.since_s >= day.starts_at_s:
                return
            since_s = day.starts_at_s  # each day has a file of its own
        if span:
            self._open[name] = span if use is None else replace(span, until_s=since_s)
            self._close(name)
        if use is None:
            if is_empty:
                self._unknown_since_s.setdefault(name, since_s)
            return
        began_s = self._unknown_since_s.pop(name, since_s)
        is_of_all = use is not IdleUse.DRAINED and now_s - began_s <= JUDGED_WITHIN_S
        self._open[name] = IdleSpan(name, began_s if is_of_all else since_s, now_s, use)

    def _close(self, name: str) -> None:
        """Errors: OSError, BadConfig; it is lost then."""
        span = self._open.pop(name)
        if span.since_s < span.until_s:
            self._day(day_of(span.since_s).name).append(_line(span))

    def _forget(self) -> None:
        """Spans end where the last step saw them."""
        self._unknown_since_s = {}
        for name in list(self._open):
            self._close(name)

    def _day(self, day: str) -> list[str]:
        """Its spans, with those of the agents before this one. Errors: OSError, BadConfig."""
        if day not in self._days:
            path = own_folder(self.shared_dir, FOLDER) / day
            text = path.read_text(errors="replace") if path.exists() else ""
            self._days[day] = text.splitlines()
        return self._days[day]

    def _keep(self, now_s: float) -> None:
        """What is still open is written as far as it goes. Errors: OSError, BadConfig."""
        folder = own_folder(self.shared_dir, FOLDER)
        unended: dict[str, list[str]] = {}
        for span in self._open.values():
            if span.since_s < span.until_s:
                unended.setdefault(day_of(span.since_s).name, []).append(_line(span))
        for day in self._days.keys() | unended.keys():
            lines = [*self._day(day), *unended.get(day, ())]
            replace_if_changed(folder / day, "".join(f"{line}\n" for line in lines))
        current = {day_of(now_s).name, *unended}
        self._days = {day: lines for day, lines in self._days.items() if day in current}
        oldest = day_of(now_s - KEPT_DAYS * DAY_S).name
        for path in _days_in(folder):
            if path.name < oldest:
                with contextlib.suppress(OSError):
                    path.unlink()
        self._problem = ""


def _is_steady(last: tuple[float, float], now: tuple[float, float]) -> bool:
    """By clock and stopwatch."""
    by_clock_s, by_watch_s = now[0] - last[0], now[1] - last[1]
    return by_clock_s > 0.0 and by_watch_s <= LATE_S and abs(by_clock_s - by_watch_s) <= OFF_S


def _line(span: IdleSpan) -> str:
    return f"{span.node}|{span.since_s:.0f}|{span.until_s:.0f}|{span.use.value}"


def _days_in(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if DAY_FILE.fullmatch(path.name))
