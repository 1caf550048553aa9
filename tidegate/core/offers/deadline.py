"""Spot, on demand, or wait: how a job that must have ended by an instant spends its spare time.

Spare time is what is left until the deadline beyond the work itself. An hour of it buys an hour of
waiting for spot, or changes between spot and on demand. The safety net is that of Uniform Progress
(Wu and others, "Can't Be Late", NSDI 2024): who has no more than two changes of spare time left
goes on demand and stays there. The rest differs: that rule keeps progress even, by on-demand hours
early on, and goes idle in between. Here waiting comes first, and on demand when what is left of the
spare time is needed for changes.
"""

from enum import StrEnum

from tidegate.core.model.ec2 import Market
from tidegate.core.model.frozen import frozen

# Of the work that is left so much is kept as spare time for changes to spot and back; the rest may
# be waited away. On the public traces 0.12 to 0.18 differ by 0.2 % of the cost, 0 costs 10 % more.
KEPT_FOR_CHANGES = 0.15


class Choice(StrEnum):
    """What to do now."""

    WAIT = "wait"
    SPOT = "spot"
    ON_DEMAND = "on-demand"


@frozen
class Pressure:
    """A job before its deadline. Times in seconds.

    `left_s`: until the deadline; `work_s`: what the job still has to run; `change_s`: boot and
    what is restored at each start on other nodes; `lost_s`: the work that an interruption costs at
    most; `margin_s`: until somebody decides again. `price_ratio`: on demand by spot. `on`: where
    it runs, None: nowhere; `on_for_s`: for how long. `spot_for_s`: for how long spot has been
    there, None: it is not. `may_move`: it can be moved from on demand to spot while it runs.
    """

    left_s: float
    work_s: float
    change_s: float
    lost_s: float = 0.0
    margin_s: float = 0.0
    price_ratio: float = 1.0
    on: Market | None = None
    on_for_s: float = 0.0
    spot_for_s: float | None = None
    may_move: bool = False

    @property
    def spare_s(self) -> float:
        return self.left_s - self.work_s

    @property
    def net_s(self) -> float:
        """The spare time with which spot may be tried once more: a start there, an interruption at
        the worst moment, and a start on demand.
        """
        return 2 * self.change_s + self.lost_s + self.margin_s

    @property
    def waits_s(self) -> float:
        """For how long it can wait for spot; at most 0: not at all."""
        kept_s = KEPT_FOR_CHANGES * self.work_s if self.may_move else 0.0
        return self.spare_s - self.net_s - kept_s

    @property
    def lasting_s(self) -> float:
        """How long spot has to last that moving there and back is cheaper than to stay on demand.
        What has lasted is taken to last as long again: lifetimes have long tails. So long a job
        stays on demand, too: it is not moved back and forth.
        """
        if self.price_ratio <= 1.0:
            return float("inf")
        return 2 * self.price_ratio * self.change_s / (self.price_ratio - 1.0)


def choice(now: Pressure) -> Choice:
    """What costs least in expectation and cannot miss a deadline that on demand would meet."""
    if now.on is Market.SPOT:
        return Choice.SPOT  # nothing is cheaper, and to leave it would spend a change
    if now.spare_s < now.net_s:
        return Choice.ON_DEMAND
    if now.on is not None:
        has_lasted_s = min(now.spot_for_s or 0.0, now.on_for_s)
        is_worth = now.spot_for_s is not None and has_lasted_s >= now.lasting_s
        return Choice.SPOT if now.may_move and is_worth else Choice.ON_DEMAND
    if now.spot_for_s is not None:
        return Choice.SPOT
    return Choice.WAIT if now.waits_s > 0 else Choice.ON_DEMAND
