"""What EC2 gives of what it is asked for in a replay, and how fast."""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.core.model.ec2 import Offering
from tidegate.sim.replay.state import EPOCH_S, Machine
from tidegate.sim.replay.steps import Steps

# From the request for a fleet to its answer, also where that is a refusal.
FLEET_S = 3.0

# Instances that an account may start at once in a region, and how many more each second after
# that. Source: EC2 developer guide, "Request throttling", resource tokens of RunInstances; that
# fleets draw from the same bucket is the strict reading.
STARTS_AT_ONCE = 1000.0
STARTS_PER_S = 2.0


@dataclass(slots=True)
class Fleets:
    """Capacity and tokens. `capacity`: the most nodes of an offering, where that is bounded;
    `starts_at_once`: the tokens of a full bucket.
    """

    capacity: Mapping[Offering, Steps] = field(default_factory=dict)
    starts_at_once: float = STARTS_AT_ONCE
    _tokens: float = 0.0
    _counted_s: float = -math.inf

    def given(
        self, offering: Offering, count: int, machines: Iterable[Machine], now_s: float
    ) -> int:
        """How many of `count` nodes are started; the others are refused, or asked for too fast."""
        given = min(count, self.room(offering, machines, now_s), self.starts_left(now_s))
        self._tokens -= given
        return given

    def room(self, offering: Offering, machines: Iterable[Machine], now_s: float) -> int:
        """How many more nodes of the offering EC2 has."""
        bound = self.capacity.get(offering)
        if bound is None:
            return sys.maxsize
        held = sum(each.offering == offering for each in machines)
        return max(int(bound.at(now_s - EPOCH_S)) - held, 0)

    def starts_left(self, now_s: float) -> int:
        """How many instances may be started now."""
        refilled = self._tokens + STARTS_PER_S * max(now_s - self._counted_s, 0.0)
        self._tokens, self._counted_s = min(refilled, self.starts_at_once), now_s
        return int(self._tokens)

    def whole_at(
        self,
        offerings: Sequence[Offering],
        least: int,
        machines: Sequence[Machine],
        now_s: float,
    ) -> Sequence[Offering]:
        """Those of the first zone that has so many nodes: a fleet that comes whole or not at all
        is of one zone. Empty: there is none, or too many were started lately.
        """
        if self.starts_left(now_s) < least:
            return ()
        for zone in dict.fromkeys(each.zone for each in offerings):
            there = [each for each in offerings if each.zone == zone]
            if sum(self.room(each, machines, now_s) for each in there) >= least:
                return there
        return ()
