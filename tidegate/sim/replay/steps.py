"""A figure that changes at moments of a history, such as a spot price."""

from bisect import bisect_right
from itertools import pairwise
from math import inf

from tidegate.core.model.frozen import frozen


@frozen
class Steps:
    """`changes`: from which second of the history on it has which value, in order, not empty.

    The first value counts before it, too. Of two at one moment the second counts.
    """

    changes: tuple[tuple[float, float], ...]

    def at(self, at_s: float) -> float:
        return self.changes[max(bisect_right(self.changes, (at_s, inf)) - 1, 0)][1]

    @property
    def mean(self) -> float:
        """Over the time between the first change and the last."""
        first_s, last_s = self.changes[0][0], self.changes[-1][0]
        if last_s <= first_s:
            return self.changes[-1][1]
        return self.sum(first_s, last_s) / (last_s - first_s)

    def sum(self, from_s: float, to_s: float) -> float:
        """The value times the seconds that it holds, from one second to another."""
        inner = (at_s for at_s, _ in self.changes if from_s < at_s < to_s)
        moments = (from_s, *inner, to_s)
        return sum(self.at(a_s) * (b_s - a_s) for a_s, b_s in pairwise(moments))
