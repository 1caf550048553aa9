"""Schedules of the cluster file: when a cluster is up, and which nodes are ready when.

Cron, time zones and holidays are libraries' work (cronsim, zoneinfo, holidays), daylight
saving included.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from datetime import date, datetime
from functools import cache, lru_cache
from zoneinfo import ZoneInfo

from tidegate.core.model.calendar import (
    NOTICE_S,
    OnRunningJobs,
    ScheduleOverride,
    Wanted,
    jobs_end_at_s,
    overridden,
)
from tidegate.core.model.frozen import frozen
from tidegate.wire.cron import firings_after, firings_before

# The head comes up, and the next look may be five minutes away: so much before the nodes' own
# time to boot pre-warming begins.
HEAD_LEAD_S = 600.0

# How many firings are looked at for the next one that changes anything: with a holiday on each
# of its days, a window is found within a year.
FIRINGS_MAX = 1_000


@frozen
class Window:
    """The cluster is up from `start` to `stop`, two cron expressions of five fields."""

    start: str
    stop: str


@frozen
class Holidays:
    """Days on which no window starts. `country`: ISO 3166, "" none; `subdivision` of it."""

    country: str = ""
    subdivision: str = ""
    dates: frozenset[date] = frozenset()

    def __contains__(self, day: date) -> bool:
        if day in self.dates:
            return True
        return bool(self.country) and day in _of_country(self.country, self.subdivision)


@cache
def _of_country(country: str, subdivision: str) -> Collection[date]:
    # Half a second of CPU time, so only where a file names a country.
    import holidays

    found: Collection[date] = holidays.country_holidays(country, subdiv=subdivision or None)
    return found


@frozen
class PreWarm:
    """So many nodes of each pool are there when `ready` fires, and for `keep_s` after it.

    `lead_s`: how long before it the first is launched.
    """

    ready: str
    nodes: Mapping[str, int]
    keep_s: float
    lead_s: float


@frozen
class Schedules:
    """When the cluster is up: in any of its windows, always where there is none.

    `wait_s`: how long running jobs are waited for at a stop, before the policy counts.
    """

    time_zone: str
    windows: tuple[Window, ...] = ()
    holidays: Holidays = field(default_factory=Holidays)
    pre_warm: tuple[PreWarm, ...] = ()
    on_running_jobs: OnRunningJobs = OnRunningJobs.WAIT
    wait_s: float = 0.0
    keeps_head: bool = False

    def wanted(self, now_s: float, overrides: Collection[ScheduleOverride] = ()) -> Wanted:
        """What should be now. A window that starts and stops at once is up."""
        return overridden(
            self._by_the_clock(now_s),
            overrides,
            now_s,
            self.told,
            self.on_running_jobs,
            self.wait_s,
        )

    def _by_the_clock(self, now_s: float) -> Wanted:
        warm = dict(self._warm(now_s))
        ready_at_s = min((at_s for at_s, _ in self._getting_ready(now_s)), default=None)
        until_s = self._changes_at_s(now_s)
        until = "" if until_s is None else f" until {self.told(until_s)}"
        if not self._is_up(now_s):
            stopped_at_s = max(_last(each.stop, now_s, self._zone) for each in self.windows)
            ends_at_s = jobs_end_at_s(self.on_running_jobs, stopped_at_s, self.wait_s, NOTICE_S)
            jobs = "" if ends_at_s is None else f", running jobs end by {self.told(ends_at_s)}"
            return Wanted(
                is_up=False,
                sentence=f"stopped{until}{jobs}",
                until_s=until_s,
                since_s=stopped_at_s,
                keeps_head=self.keeps_head,
                jobs_end_at_s=ends_at_s,
                ends_all=self.on_running_jobs is OnRunningJobs.STOP,
            )
        ready = "" if ready_at_s is None else f", to be ready at {self.told(ready_at_s)}"
        return Wanted(
            is_up=True,
            sentence=f"up{until}{ready}",
            until_s=until_s,
            since_s=self._up_since_s(now_s),
            keeps_head=not self.windows or self.keeps_head,
            warm_nodes=warm,
        )

    @property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)

    def told(self, at_s: float) -> str:
        return f"{datetime.fromtimestamp(at_s, self._zone):%a %d %b %H:%M} {self.time_zone}"

    def _is_up(self, at_s: float) -> bool:
        if not self.windows or any(True for _ in self._warm(at_s)):
            return True
        return any(self._is_open(window, at_s) for window in self.windows)

    def _is_open(self, window: Window, at_s: float) -> bool:
        started_s = self._last_workday(window.start, at_s)
        return started_s is not None and started_s >= _last(window.stop, at_s, self._zone)

    def _up_since_s(self, at_s: float) -> float | None:
        starts = (self._last_workday(each.start, at_s) for each in self.windows)
        begun = (ready_at_s - each.lead_s for ready_at_s, each in self._getting_ready(at_s))
        known = [start for start in starts if start is not None]
        return max([*known, *begun], default=None) if self.windows else None

    def _last_workday(self, cron: str, at_s: float) -> float | None:
        """When it fired last on a day that is no holiday; None: not for a long time."""
        for _, moment in zip(
            range(FIRINGS_MAX), firings_before(cron, at_s, self._zone), strict=False
        ):
            if moment.date() not in self.holidays:
                return moment.timestamp()
        return None

    def _next_workday(self, cron: str, at_s: float) -> float | None:
        firings = firings_after(cron, at_s, self._zone)
        for _, moment in zip(range(FIRINGS_MAX), firings, strict=False):
            if moment.date() not in self.holidays:
                return moment.timestamp()
        return None

    def _warm(self, at_s: float) -> Iterator[tuple[str, int]]:
        """Pool and nodes that should be there; the most where several pre-warm one pool."""
        most: dict[str, int] = {}
        due = [each for _, each in self._getting_ready(at_s)]
        due += [each for each in self.pre_warm if self._is_kept(each, at_s)]
        for each in due:
            for pool, nodes in each.nodes.items():
                most[pool] = max(nodes, most.get(pool, 0))
        yield from sorted(most.items())

    def _getting_ready(self, at_s: float) -> Iterator[tuple[float, PreWarm]]:
        for each in self.pre_warm:
            ready_at_s = self._next_workday(each.ready, at_s)
            if ready_at_s is not None and ready_at_s - at_s <= each.lead_s:
                yield ready_at_s, each

    def _is_kept(self, each: PreWarm, at_s: float) -> bool:
        was_ready_s = self._last_workday(each.ready, at_s)
        return was_ready_s is not None and at_s - was_ready_s < each.keep_s

    def _changes_at_s(self, now_s: float) -> float | None:
        """When the cluster goes up or down next; None: not for a long time."""
        is_up, at_s = self._is_up(now_s), now_s
        for _ in range(FIRINGS_MAX if self.windows else 0):
            at_s = min(self.moments(at_s))
            if self._is_up(at_s) is not is_up:
                return at_s
        return None

    def moments(self, after_s: float) -> Iterator[float]:
        """The next moments at which anything may change."""
        for window in self.windows:
            yield _next(window.start, after_s, self._zone)
            yield _next(window.stop, after_s, self._zone)
        for each in self.pre_warm:
            yield _next(each.ready, after_s + each.lead_s, self._zone) - each.lead_s
            yield _next(each.ready, after_s - each.keep_s, self._zone) + each.keep_s


@frozen
class Change:
    """From `at_s` on this is wanted."""

    at_s: float
    wanted: Wanted


def changes(
    schedules: Schedules,
    from_s: float,
    until_s: float,
    overrides: Collection[ScheduleOverride] = (),
) -> Iterator[Change]:
    """What is wanted first, and each change of it before `until_s`."""
    at_s, said = from_s, schedules.wanted(from_s, overrides)
    yield Change(from_s, said)
    while (at_s := _next_moment(schedules, at_s, overrides)) < until_s:
        wanted = schedules.wanted(at_s, overrides)
        if wanted != said:
            yield Change(at_s, wanted)
        said = wanted


def _next_moment(
    schedules: Schedules, at_s: float, overrides: Collection[ScheduleOverride]
) -> float:
    bounds = [bound for one in overrides for bound in (one.from_s, one.until_s)]
    moments = [*schedules.moments(at_s), *(bound for bound in bounds if bound > at_s)]
    return min(moments, default=float("inf"))


@lru_cache(maxsize=256)
def _next(cron: str, at_s: float, zone: ZoneInfo) -> float:
    return next(iter(firings_after(cron, at_s, zone))).timestamp()


@lru_cache(maxsize=256)
def _last(cron: str, at_s: float, zone: ZoneInfo) -> float:
    return next(firings_before(cron, at_s, zone)).timestamp()
