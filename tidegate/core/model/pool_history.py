"""What is remembered of each pool: launches that gave no node, and the last good template."""

from dataclasses import field, replace

from tidegate.core.model.ec2 import Template
from tidegate.core.model.finding import Finding, StoppedCheck
from tidegate.core.model.frozen import frozen
from tidegate.core.model.idle_check import IdleChecks
from tidegate.core.model.rollout import Rollout

# Half an hour; so many launches whose nodes all fail may fall into it.
BREAKER_S = 1800.0
BREAKER_LAUNCHES = 3

# After so many failures in a row a pool tries one launch at a time.
DOUBT_AFTER = 2

FAILED_MAX = 8


@frozen
class FailedLaunch:
    """A launch of which a node did not join, or joined broken."""

    launch_id: str  #: the launch
    launched_at_s: float  #: when it was launched
    failed_at_s: float  #: when it was seen to have failed
    template: str = ""  #: digest of what its nodes were made from


@frozen
class SpareNode:
    """What one spare node of a type would have saved, as means over an hour and a day."""

    saved_lately: float = 0.0  #: jobs that it would have started sooner within a boot, over an hour
    saved_daily: float = 0.0  #: the same over a day
    used_lately: float = 0.0  #: the share of time in which a job would have taken it, over an hour
    used_daily: float = 0.0  #: the same over a day


@frozen
class HourSeen:
    """What came in one hour of the week. A busy pool has 168 of them, so they are written short."""

    hour: int  #: of the week in UTC; 0: Monday, the first
    week: int  #: number of the newest week in which anything came
    #: in that week: nodes that jobs filled; jobs, as much as their waiting costs beside the
    #: dearest; the share of its time in which any node was wanted
    newest: tuple[float, float, float] = (0.0, 0.0, 0.0)
    #: the same summed over the weeks before it, each faded by its age, and last the nodes squared
    before: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)


@frozen
class Week:
    """What came in the hours of the week, and how far off that was as a forecast."""

    since: int  #: the first hour that was seen, in hours since 1970
    judged: int  #: the first hour of which the forecasts are not judged yet, likewise
    late_nodes: float = 0.0  #: nodes that were expected in it by what came lately
    late_error: float = 0.0  #: squares of how far that was off, of late hours
    week_error: float = 0.0  #: squares of how far the same hours of other weeks were off
    hours: tuple[HourSeen, ...] = ()  #: those in which anything came


@frozen
class Arrivals:
    """Jobs that came for nodes of one type."""

    instance_type: str  #: the type
    piece: int = 0  #: number of the piece of time, as long as a boot, that has not ended
    jobs: float = 0.0  #: that came in it, as much as their waiting costs beside the dearest
    nodes: float = 0.0  #: that these fill
    spare: tuple[SpareNode, ...] = ()  #: for the first spare node, the second, and so on
    week: Week | None = None  #: the same by the hour of the week; null: nothing came yet


@frozen
class SpotSeen:
    """How long nodes of one spot offering ran, and how many of them AWS took back. What is older
    counts less, see `tidegate.core.offers.seen_hazards`.
    """

    instance_type: str  #: the type
    zone: str  #: its zone
    until_s: float = 0.0  #: when this was counted; what runs has run on since then
    node_hours: float = 0.0  #: hours of all its nodes
    hours: float = 0.0  #: hours in which any node of it was there
    taken: float = 0.0  #: nodes that AWS took back
    storms: float = 0.0  #: the same with those that went together as one
    newest_s: float = 0.0  #: when AWS last took any
    counted: tuple[str, ...] = ()  #: nodes that are counted as taken, with records still open


@frozen
class PoolHistory:
    """One pool's past, as far as it decides what comes."""

    pool: str  #: the pool
    #: the newest launches of which a node did not join, or joined broken; those of a template are
    #: forgotten when a node made from it joins well
    failed: tuple[FailedLaunch, ...] = ()
    joined_at_s: float = 0.0  #: when a node last joined well while failures were known
    good: Template | None = None  #: the template that all nodes may be made from
    #: when jobs came for nodes lately, where the idle time follows that
    taken_at_s: tuple[float, ...] = ()
    freed_at_s: tuple[float, ...] = ()  #: when nodes became free lately, where it does
    #: jobs that came for nodes of each type, where waiting has a price
    arrivals: tuple[Arrivals, ...] = ()
    newest_job: int = 0  #: the highest number of a job that is counted there
    spot: tuple[SpotSeen, ...] = ()  #: its spot offerings, those of which nodes have ended
    findings: tuple[Finding, ...] = ()  #: nodes that software drained lately
    #: checks that drained too many nodes, and are believed no more
    stopped_checks: tuple[StoppedCheck, ...] = ()
    #: nodes that a person's word let go although such a check drained them
    excused: tuple[str, ...] = ()
    #: its way to a newer template, which has to show first that it is good; null: nothing was
    #: deployed since
    rollout: Rollout | None = None
    #: the site's checks of its idle nodes; null: there was none
    idle_checks: IdleChecks | None = None
    noted: int = field(default=0, compare=False)  #: how often the ledger noted it until it was read

    def failures(self, template: Template) -> int:
        return sum(each.template == template.digest for each in self.failed)

    def recent(self, now_s: float) -> list[FailedLaunch]:
        """Failures since a node last joined well, of launches of the last half hour."""
        return [
            each
            for each in self.failed
            if each.failed_at_s > self.joined_at_s and each.launched_at_s > now_s - BREAKER_S
        ]

    def closed_until_s(self, now_s: float) -> float | None:
        """Until when nothing is bought for the pool; None: it is open."""
        recent = sorted(each.launched_at_s for each in self.recent(now_s))
        return recent[-BREAKER_LAUNCHES] + BREAKER_S if len(recent) >= BREAKER_LAUNCHES else None

    def launches_left(self, now_s: float, in_flight: int) -> int | None:
        """How many launches the pool may begin now; None: any number."""
        recent = len(self.recent(now_s))
        if recent < DOUBT_AFTER:
            return None
        return max(BREAKER_LAUNCHES - recent - in_flight, 0)

    def after_failure(self, failed: FailedLaunch) -> "PoolHistory":
        if any(each.launch_id == failed.launch_id for each in self.failed):
            return self
        return replace(self, failed=(*self.failed, failed)[-FAILED_MAX:])

    def after_join(self, made_from: str, newest: Template | None, now_s: float) -> "PoolHistory":
        """A node joined well. `made_from`: the digest of its template.

        The first template of all is good at once; a later one by its roll-out.
        """
        found = self
        if made_from:
            left = tuple(each for each in self.failed if each.template != made_from)
            is_newest = newest is not None and newest.digest == made_from
            is_known = self.good is None or self.good.digest == made_from
            good = newest if is_newest and is_known else self.good
            if (left, good) != (self.failed, self.good):
                found = replace(self, failed=left, good=good)
        return replace(found, joined_at_s=now_s) if found.recent(now_s) else found
