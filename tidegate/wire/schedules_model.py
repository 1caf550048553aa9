"""The cluster file's schedules, as pydantic models."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Annotated, Self

from cronsim import CronSim
from pydantic import AfterValidator, Field, model_validator

from tidegate.core.model.calendar import OnRunningJobs
from tidegate.wire import names
from tidegate.wire.calendar import HEAD_LEAD_S, Holidays, PreWarm, Schedules, Window
from tidegate.wire.cron import covers_always
from tidegate.wire.section import PositiveCount, Seconds, Section

WAIT_S_MAX = 7 * 24 * 3600.0
# The head needs minutes, and then its nodes do.
UP_MIN_S = 900.0
YEARS = range(2014, 2100)
_A_MONDAY = datetime(2024, 1, 1, tzinfo=UTC)


def _check_differ(start: str, stop: str) -> None:
    if start.split() == stop.split():
        raise ValueError("stop and start are the same: the cluster would never be stopped")
    begins = next(CronSim(start, _A_MONDAY))
    up_s = (next(CronSim(stop, begins)) - begins).total_seconds()
    if up_s < UP_MIN_S:
        raise ValueError(
            f"stop comes {_minutes(up_s)} after start: nodes could not even boot; take a"
            ' stop hours later, like "0 20 * * MON-FRI"'
        )
    ends = next(CronSim(stop, begins))
    down_s = (next(CronSim(start, ends)) - ends).total_seconds()
    if down_s < UP_MIN_S:
        raise ValueError(
            f"start comes {_minutes(down_s)} after stop: the cluster would never be down; take a"
            ' start hours later, like "0 8 * * MON-FRI"'
        )


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:g} minute{'s' * (seconds != 60)}"


class WindowModel(Section):
    """The cluster is up from start to stop."""

    start: names.Cron = Field(description='when the head comes back, like "0 8 * * MON-FRI"')
    stop: names.Cron = Field(description='when nodes go and then the head, like "0 20 * * MON-FRI"')

    @model_validator(mode="after")
    def _differ(self) -> Self:
        _check_differ(self.start, self.stop)
        return self


def _country(value: str) -> str:
    # The library is slow to load, and most files name no country.
    import holidays

    known = holidays.list_supported_countries(include_aliases=False)
    if value not in known:
        raise ValueError(f"{value} is not known: a country's two letters, like JP, DE or US")
    return value


def _day(value: date) -> date:
    if value.year not in YEARS:
        raise ValueError(f"must be between {YEARS[0]} and {YEARS[-1]}, is {value}")
    return value


class HolidaysModel(Section):
    """Days on which no window starts and nothing is pre-warmed."""

    country: Annotated[str, AfterValidator(_country)] | None = Field(
        default=None, description="a country's two letters (ISO 3166), like JP"
    )
    subdivision: str | None = Field(
        default=None, description="a part of the country with holidays of its own, like BY"
    )
    dates: tuple[Annotated[date, AfterValidator(_day)], ...] = Field(
        default=(), description="further days, like 2026-12-29"
    )

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.subdivision is None:
            return self
        if self.country is None:
            raise ValueError("a subdivision needs its country")
        import holidays

        known = holidays.list_supported_countries(include_aliases=False)[self.country]
        if self.subdivision not in known:
            parts = ", ".join(known) or "none"
            raise ValueError(f"{self.subdivision} is no part of {self.country}; known: {parts}")
        return self

    def holidays(self) -> Holidays:
        return Holidays(self.country or "", self.subdivision or "", frozenset(self.dates))


class PreWarmModel(Section):
    """Nodes that are there at a time, before anybody asks for them."""

    ready: names.Cron = Field(description='when they are ready, like "0 8 * * MON-FRI"')
    nodes: Annotated[dict[names.PoolName, PositiveCount], Field(min_length=1)] = Field(
        description="how many of each pool, those of its min_nodes among them"
    )
    keep_s: Seconds = Field(default=3600.0, description="how long they are kept without a job")

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if covers_always(self.ready, self.keep_s):
            text = f"ready {self.ready} comes again before keep_s ({self.keep_s:g}) is over"
            raise ValueError(
                f"{text}: the nodes, and the cluster, would never go; take a moment like"
                ' "0 8 * * MON-FRI", or min_nodes of the pool'
            )
        return self

    def pre_warm(self, boot_s: Mapping[str, float]) -> PreWarm:
        lead_s = HEAD_LEAD_S + max(boot_s[pool] for pool in self.nodes)
        return PreWarm(self.ready, self.nodes, self.keep_s, lead_s)


class SchedulesModel(Section):
    """When the cluster is up; cron with five fields, in the cluster's own time zone."""

    time_zone: names.TimeZone = Field(description="an IANA name, like Asia/Tokyo")
    start: names.Cron | None = Field(
        default=None, description='when the head comes back, like "0 8 * * MON-FRI"'
    )
    stop: names.Cron | None = Field(
        default=None, description='when nodes go and then the head, like "0 20 * * MON-FRI"'
    )
    windows: tuple[WindowModel, ...] = Field(
        default=(), description="several of start and stop; the cluster is up in each of them"
    )
    holidays: HolidaysModel = Field(
        default=HolidaysModel(), description="days on which no window starts"
    )
    on_running_jobs: OnRunningJobs = Field(
        default=OnRunningJobs.WAIT,
        description="at the stop: wait for jobs to end, requeue them (but for those that may not"
        " be, which are waited for), or stop: requeue, and end those that may not be",
    )
    wait_s: Annotated[float, Field(ge=0, le=WAIT_S_MAX)] = Field(
        default=0.0, description="how long jobs may go on before they are requeued or ended"
    )
    stops_head: bool = Field(
        default=True, description="the head is stopped as well, when the last node is gone"
    )
    pre_warm: tuple[PreWarmModel, ...] = Field(
        default=(), description="nodes that are ready at a time"
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.start is None) is not (self.stop is None):
            raise ValueError("start and stop need each other")
        if self.start is not None and self.windows:
            raise ValueError("start and stop are one window; with windows, put them there")
        if self.start is None and not self.windows and not self.pre_warm:
            raise ValueError("names no start and stop, no windows and nothing to pre-warm")
        if self.start is not None and self.stop is not None:
            _check_differ(self.start, self.stop)
        if self.wait_s and self.on_running_jobs is OnRunningJobs.WAIT:
            raise ValueError("wait_s is for on_running_jobs requeue or stop: wait has no end")
        return self

    def schedules(self, boot_s: Mapping[str, float]) -> Schedules:
        """`boot_s`: from launch to joined, by pool."""
        windows = tuple(Window(each.start, each.stop) for each in self.windows)
        if self.start is not None and self.stop is not None:
            windows = (Window(self.start, self.stop),)
        return Schedules(
            self.time_zone,
            windows,
            self.holidays.holidays(),
            tuple(each.pre_warm(boot_s) for each in self.pre_warm),
            self.on_running_jobs,
            self.wait_s,
            keeps_head=not self.stops_head,
        )
