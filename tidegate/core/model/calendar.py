"""What the calendar says about a cluster: up or stopped, until when, and who overrode it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from enum import StrEnum

from tidegate.core.model.frozen import frozen


class OnRunningJobs(StrEnum):
    """What becomes of jobs that still run when the cluster stops.

    WAIT: they end in their own time. REQUEUE: they go back to the queue, and those that may not
    be requeued end in their own time. STOP: those end, too, and are lost.
    """

    WAIT = "wait"
    REQUEUE = "requeue"
    STOP = "stop"


class OverrideKind(StrEnum):
    """What a person wants instead of what the calendar says."""

    KEEP_UP = "keep-up"
    STOP = "stop"


@frozen
class ScheduleOverride:
    """Other hours for a while, which end by themselves; of two that hold the younger counts."""

    override_id: str
    kind: OverrideKind
    from_s: float
    until_s: float
    made_at_s: float
    who: str  #: the AWS identity that made it
    why: str = ""
    on_running_jobs: OnRunningJobs | None = None  #: null: as the cluster file says
    keeps_head: bool = False

    def holds(self, now_s: float) -> bool:
        return self.from_s <= now_s < self.until_s

    @property
    def by(self) -> str:
        """`by ada (demo tonight)`."""
        return f"by {self.who}{f' ({self.why})' if self.why else ''}"


# A stop that a person asked for is undone by itself: so long after its end the head of a
# cluster without schedules is started once more; later a person has stopped it.
STARTS_AFTER_STOP_S = 3600.0

# Old overrides are shown for a while, then forgotten.
OVERRIDE_KEPT_S = 24 * 3600.0


@frozen
class Wanted:
    """What should be now."""

    is_up: bool  #: the calendar wants the cluster up
    sentence: str  #: for users: `stopped until Tue 08:00`
    until_s: float | None = None  #: when that changes; null: never
    since_s: float | None = None  #: since when it is so; null: always
    keeps_head: bool = False  #: the head is neither started nor stopped
    #: when running jobs are not waited for any longer; null: never
    jobs_end_at_s: float | None = None
    ends_all: bool = False  #: then also those end that may not be requeued
    #: how many nodes of a pool should be there now, beside its own minimum
    warm_nodes: Mapping[str, int] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """Why nothing is bought and no job starts, for users."""
        return f"the cluster is {self.sentence}"


def jobs_end_at_s(
    policy: OnRunningJobs, stopped_at_s: float, wait_s: float, notice_s: float
) -> float | None:
    """When jobs that still run are not waited for any longer; None: never.

    They hear of it `notice_s` before, as of a spot reclaim.
    """
    return None if policy is OnRunningJobs.WAIT else stopped_at_s + wait_s + notice_s


# Jobs that ask for it may save their state in the last two minutes, as before a spot reclaim.
NOTICE_S = 120.0

ALWAYS_UP = Wanted(is_up=True, sentence="up: the cluster file has no schedules", keeps_head=True)


@frozen
class AlwaysUp:
    """The calendar of a cluster file without schedules; overrides of people count all the same."""

    def wanted(self, now_s: float, overrides: Collection[ScheduleOverride] = ()) -> Wanted:
        return overridden(ALWAYS_UP, overrides, now_s, _in_utc)


def _in_utc(at_s: float) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%a %d %b %H:%M} UTC"


def overridden(
    wanted: Wanted,
    overrides: Collection[ScheduleOverride],
    now_s: float,
    told: Callable[[float], str],
    policy: OnRunningJobs = OnRunningJobs.WAIT,
    wait_s: float = 0.0,
) -> Wanted:
    """What should be now, as people override it; `told` names a moment in the cluster's zone."""
    held = [one for one in overrides if one.holds(now_s)]
    if not held:
        return _after_a_stop(wanted, overrides, now_s)
    one = max(held, key=lambda each: (each.made_at_s, each.override_id))
    until = told(one.until_s)
    if one.kind is OverrideKind.KEEP_UP:
        # It says that the cluster is up, not that its own pre-warming is off.
        sentence = f"up until {until}: kept up {one.by}"
        return replace(
            wanted,
            is_up=True,
            sentence=sentence,
            until_s=one.until_s,
            since_s=wanted.since_s if wanted.is_up else one.from_s,
            keeps_head=False,
            jobs_end_at_s=None,
            ends_all=False,
        )
    chosen = one.on_running_jobs or policy
    wait_s = 0.0 if one.on_running_jobs else wait_s
    ends_at_s = jobs_end_at_s(chosen, one.from_s, wait_s, NOTICE_S)
    jobs = "" if ends_at_s is None else f", running jobs end by {told(ends_at_s)}"
    return Wanted(
        is_up=False,
        sentence=f"stopped until {until}: stopped {one.by}{jobs}",
        until_s=one.until_s,
        since_s=one.from_s,
        keeps_head=one.keeps_head,
        jobs_end_at_s=ends_at_s,
        ends_all=chosen is OnRunningJobs.STOP,
    )


def _after_a_stop(wanted: Wanted, overrides: Collection[ScheduleOverride], now_s: float) -> Wanted:
    """A head that an override has stopped is started again when the override is over."""
    ended_s = [
        one.until_s
        for one in overrides
        if one.kind is OverrideKind.STOP
        and not one.keeps_head
        and one.until_s <= now_s < one.until_s + STARTS_AFTER_STOP_S
    ]
    if not ended_s or not wanted.is_up:
        return wanted
    since_s = max(*ended_s, wanted.since_s or 0.0)
    return replace(wanted, keeps_head=False, since_s=since_s)
