"""The cluster file's own schedules in a story, on a night on which the clocks change."""

from collections.abc import Collection
from dataclasses import field, replace
from datetime import datetime
from random import Random
from zoneinfo import ZoneInfo

from tidegate.core.model.calendar import OnRunningJobs, ScheduleOverride, Wanted, overridden
from tidegate.core.model.frozen import frozen
from tidegate.sim.clock import START_S
from tidegate.wire.calendar import Holidays, Schedules, Window

ZONE = ZoneInfo("America/New_York")
# On 2026-03-08 it is 03:00 right after 01:59, on 2026-11-01 it is 01:00 once more.
SPRING = datetime(2026, 3, 8, 3, 0, tzinfo=ZONE)
AUTUMN = datetime(2026, 11, 1, 1, 0, tzinfo=ZONE, fold=1)
ASKED_AGAIN_S = 100.0
SHARE_OF_HOLIDAYS = 0.4
TWICE = 1  # the hour that comes twice


@frozen
class Zoned:
    """Real schedules, asked `ahead_s` after the story's own time.

    `opens`: the same hours once more, in minutes of the day on the wall, from and to.
    """

    schedules: Schedules
    opens: tuple[tuple[int, int], ...]
    ahead_s: float
    day_s: float = 86_400.0
    _last: list[tuple[float, Wanted]] = field(default_factory=list, compare=False)  # of the story

    @property
    def policy(self) -> OnRunningJobs:
        return self.schedules.on_running_jobs

    @property
    def up_s(self) -> float:
        return 60.0 * max(until - since for since, until in self.opens)

    def wanted(self, now_s: float, overrides: Collection[ScheduleOverride] = ()) -> Wanted:
        wait_s = self.schedules.wait_s
        return overridden(self._asked(now_s), overrides, now_s, str, self.policy, wait_s)

    def _asked(self, now_s: float) -> Wanted:
        """Without overrides nothing changes before `until_s`, and to read cron takes long. A
        function asks anew each time, so that also this is done after a while.
        """
        if self._last:
            asked_s, said = self._last[0]
            is_fresh = asked_s <= now_s < asked_s + ASKED_AGAIN_S
            if is_fresh and (said.until_s is None or now_s < said.until_s):
                return said
        real = self.schedules.wanted(now_s + self.ahead_s)
        said = replace(
            real,
            until_s=self._of_story(real.until_s),
            since_s=self._of_story(real.since_s),
            jobs_end_at_s=self._of_story(real.jobs_end_at_s),
        )
        self._last[:] = [(now_s, said)]
        return said

    def is_open(self, now_s: float) -> bool:
        """What a person with a clock on the wall would say; written without the schedules."""
        wall = datetime.fromtimestamp(now_s + self.ahead_s, ZONE)
        minute = wall.hour * 60 + wall.minute
        if wall.hour == TWICE and wall.fold:
            minute = TWICE * 60 + 59  # who opens and closes has done it in the first of the two
        is_day_off = wall.date() in self.schedules.holidays.dates
        return not is_day_off and any(since <= minute < until for since, until in self.opens)

    def _of_story(self, at_s: float | None) -> float | None:
        return None if at_s is None else at_s - self.ahead_s


def draw_zoned(chance: Random, safety_s: float, *, may_be_free: bool) -> Zoned:
    """Two windows, or two that overlap, and the night's jump within the story.

    `may_be_free`: the day may be a holiday, after which the story waits for the next.
    """
    early, late = chance.randrange(20), chance.randint(1, 6)
    gap = chance.choice((-2, 3, 8))
    policy, wait_s = chance.choice(tuple(OnRunningJobs)), chance.choice((0.0, 60.0))
    jumps_at_s = START_S + chance.uniform(0.0, safety_s)
    night = chance.choice((SPRING, AUTUMN))
    closes = 180 + late
    if night is AUTUMN:  # the first closes, and the second opens, in the hour that comes twice
        jumps_at_s = (START_S + jumps_at_s) / 2
        closes = 60 + late
        gap = 115 - closes + gap
    opens = ((90 - 60 * (night is AUTUMN) + early, closes), (closes + gap, 24 * 60 - 1))
    days_off = frozenset(
        {night.date()} if may_be_free and chance.random() < SHARE_OF_HOLIDAYS else ()
    )
    schedules = Schedules(
        ZONE.key,
        tuple(Window(_cron(since), _cron(until)) for since, until in opens),
        holidays=Holidays(dates=days_off),
        on_running_jobs=policy,
        wait_s=wait_s,
    )
    return Zoned(schedules, opens, night.timestamp() - jumps_at_s)


def _cron(minute: int) -> str:
    return f"{minute % 60} {minute // 60} * * *"
