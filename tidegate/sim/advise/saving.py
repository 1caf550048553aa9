"""How much less one replay cost than another, and how sure that is: by days, drawn anew."""

from collections.abc import Mapping, Sequence
from math import sqrt
from random import Random

from tidegate.core.model.frozen import frozen

DRAWS = 2000
# By how much histories of so many jobs as the square of it differ in what they save beside `Work`,
# as a part of it: the standard deviation is 0.2 for 110 jobs, and 0.5 for 18 (docs/advise.md). What
# one half says is believed as far as it is surer than that.
SPREAD_OF_ONE = 2.1
NORMAL_95 = 1.96
# Of the drawn savings, from the 2.5th to the 97.5th percent.
TAIL = 0.025


@frozen
class Saving:
    """USD of a history, and `share` of what it cost.

    Between `low` and `high` lie 95 of 100 draws of its days.
    """

    usd: float
    low_usd: float
    high_usd: float
    share: float
    low_share: float
    high_share: float

    @property
    def is_sure(self) -> bool:
        return self.low_usd > 0

    def times(self, scale: float, cost_usd: float) -> "Saving":
        """The same of so much more work, of a history that cost so much."""
        usd = [scale * each for each in (self.usd, self.low_usd, self.high_usd)]
        return Saving(*usd, *(each / cost_usd if cost_usd else 0.0 for each in usd))


@frozen
class Work:
    """What smaller requests would save of each half of a history if each job had the cheapest node
    that holds it for itself, USD. `jobs`: how many the hidden half has.
    """

    taught: float
    hidden: float
    jobs: int


type Played = tuple[Mapping[int, float], Mapping[int, float]]
"""USD by day of two replays, as it was and with smaller requests."""


def saving_of(before: Mapping[int, float], after: Mapping[int, float], seed: int = 0) -> Saving:
    """The difference of two replays, USD by day; the same seed draws the same days."""
    return mean_saving([(before, after)], seed)


def mean_saving(plays: Sequence[Played], seed: int = 0) -> Saving:
    """The same of several plays of one history: their mean, and days drawn from all of them, as
    many as one play has.
    """
    pairs = [
        (before.get(day, 0.0), after.get(day, 0.0))
        for before, after in plays
        for day in sorted({*before, *after})
    ]
    chance = Random(f"days {seed}")
    drawn = []
    for _ in range(DRAWS):
        some = chance.choices(pairs, k=-(-len(pairs) // len(plays)))
        drawn.append((sum(b - a for b, a in some), sum(b for b, _ in some)))
    usd = sorted(saved for saved, _ in drawn)
    shares = sorted(saved / cost if cost else 0.0 for saved, cost in drawn)
    at = [int(TAIL * (DRAWS - 1)), int((1 - TAIL) * (DRAWS - 1))]
    cost = sum(before for before, _ in pairs) / len(plays)
    saved = cost - sum(after for _, after in pairs) / len(plays)
    low, high = (usd[each] for each in at)
    low_share, high_share = (shares[each] for each in at)
    return Saving(saved, low, high, saved / cost if cost else 0.0, low_share, high_share)


def foretold(plays: Sequence[Played], work: Work, cost_usd: float, seed: int = 0) -> Saving:
    """What the other half of a history saves, which costs `cost_usd`, by plays of the first one.

    What was saved beside `work` is told by a few days, on which jobs happened to share nodes or
    not: it counts as far as it is surer than that other histories save as much as their `work`.
    """
    taught = mean_saving(plays, seed)
    if work.taught <= 0 or work.hidden <= 0:
        before = sum(sum(each.values()) for each, _ in plays) / len(plays)
        return taught.times(cost_usd / max(before, 0.01), cost_usd)
    unsure = (taught.high_usd - taught.low_usd) / (2 * NORMAL_95) / work.taught
    spread = SPREAD_OF_ONE / sqrt(max(work.jobs, 1))
    weight = spread**2 / (spread**2 + unsure**2)
    ratio = 1.0 + weight * (taught.usd / work.taught - 1.0)
    at = (ratio, ratio - NORMAL_95 * spread, ratio + NORMAL_95 * spread)
    usd = [each * work.hidden for each in at]
    return Saving(*usd, *(each / cost_usd if cost_usd else 0.0 for each in usd))
