"""What is remembered of each pool: launches that gave no node, and the last good template."""

from dataclasses import replace

from tidegate.core.model.ec2 import Template
from tidegate.core.model.finding import Finding, StoppedCheck
from tidegate.core.model.frozen import frozen
from tidegate.core.model.rollout import Rollout

# Half an hour; so many launches whose nodes all fail may fall into it.
BREAKER_S = 1800.0
BREAKER_LAUNCHES = 3

# After so many failures in a row a pool tries one launch at a time.
DOUBT_AFTER = 2

FAILED_MAX = 8


@frozen
class FailedLaunch:
    """A launch of which a node did not join, or joined broken. `template`: its digest."""

    launch_id: str
    launched_at_s: float
    failed_at_s: float
    template: str = ""


@frozen
class SpareNode:
    """What one spare node of a type would have saved, as means over an hour and a day.

    `saved`: jobs within each boot; `used`: the share of time in which a job would have taken it.
    """

    saved_lately: float = 0.0
    saved_daily: float = 0.0
    used_lately: float = 0.0
    used_daily: float = 0.0


@frozen
class Arrivals:
    """Jobs that came for nodes of one type. `spare`: for the first spare node, the second, ...

    `piece`: the number of the piece of time, as long as a boot, that has not ended; `jobs` and
    `nodes`: what came in it, and how many nodes they fill. Jobs count as much as their waiting
    costs beside the dearest.
    """

    instance_type: str
    piece: int = 0
    jobs: float = 0.0
    nodes: float = 0.0
    spare: tuple[SpareNode, ...] = ()


@frozen
class PoolHistory:
    """One pool's past, as far as it decides what comes.

    `failed`: the newest failures; those of a template are forgotten when a node made from it
    joins well. `joined_at_s`: when a node last joined well while failures were known.
    `good`: the template that all nodes may be made from; `rollout`: the pool's way to a newer one,
    which has to show first that it is good; None: nothing was deployed since.
    `taken_at_s`, `freed_at_s`: when jobs came for nodes and when nodes became free lately, of a
    pool whose idle time follows them. `arrivals`: of each type of node that jobs came for, where
    waiting has a price; `newest_job`: the highest number of a job that is counted there.
    `findings`: nodes that software drained lately; `stopped_checks`: checks that drained too many,
    and are believed no more; `excused`: nodes that a person's word let go although such a check
    drained them.
    """

    pool: str
    failed: tuple[FailedLaunch, ...] = ()
    joined_at_s: float = 0.0
    good: Template | None = None
    taken_at_s: tuple[float, ...] = ()
    freed_at_s: tuple[float, ...] = ()
    arrivals: tuple[Arrivals, ...] = ()
    newest_job: int = 0
    findings: tuple[Finding, ...] = ()
    stopped_checks: tuple[StoppedCheck, ...] = ()
    excused: tuple[str, ...] = ()
    rollout: Rollout | None = None

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
