"""Savings Plans: so many USD per hour that AWS is paid whether instances use them or not."""

from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum

from tidegate.core.model.frozen import frozen


class PlanKind(StrEnum):
    """AWS's names for the two that are for EC2."""

    COMPUTE = "compute"
    EC2_INSTANCE = "ec2-instance"


@frozen
class PlanRate:
    """Of an instance of some type, without its disk: what an hour of it uses of the commitment, and
    what it costs on demand beyond that. `discount`: what the plan takes off the list price; None:
    its rate is said.
    """

    usd_per_hour: float
    on_demand_usd_per_hour: float
    discount: float | None = None

    @property
    def saved_usd_per_hour(self) -> float:
        """What is not paid on demand for an hour that the plan covers."""
        return self.on_demand_usd_per_hour - self.usd_per_hour

    @property
    def saved_share(self) -> float:
        return self.saved_usd_per_hour / self.on_demand_usd_per_hour


@frozen
class SavingsPlan:
    """`usd_per_hour`: the part of its commitment that is this cluster's; `rates`: by the instance
    types that it covers.
    """

    arn: str
    kind: PlanKind
    usd_per_hour: float
    rates: Mapping[str, PlanRate]
    starts_at_s: float
    ends_at_s: float

    def at(self, listed: Mapping[str, float], discount: float) -> "SavingsPlan":
        """With what AWS's list asks of these types now, off which a contract takes `discount`. What
        saves nothing at that covers nothing.
        """
        new = {
            name: replace(
                rate,
                usd_per_hour=(
                    rate.usd_per_hour
                    if rate.discount is None
                    else listed[name] * (1 - rate.discount)
                ),
                on_demand_usd_per_hour=listed[name] * (1 - discount),
            )
            for name, rate in self.rates.items()
            if name in listed
        }
        rates = {
            name: rate
            for name, rate in {**self.rates, **new}.items()
            if name not in new or rate.saved_usd_per_hour > 0
        }
        return replace(self, rates=rates)

    def later(self, by_s: float) -> "SavingsPlan":
        return replace(self, starts_at_s=self.starts_at_s + by_s, ends_at_s=self.ends_at_s + by_s)

    @property
    def name(self) -> str:
        return name_of(self.arn)

    def is_active(self, now_s: float) -> bool:
        return self.starts_at_s <= now_s < self.ends_at_s


def name_of(arn: str) -> str:
    """A plan in words, by the last part of its ARN."""
    return f"Savings Plan {arn.rpartition('/')[2]}"


@frozen
class Committed:
    """The part of a node's price that the commitment of a Savings Plan pays.

    The market moves what it saves in small steps, of which nobody makes a record.
    """

    plan: str  #: the plan's ARN
    usd_per_hour: float  #: of the commitment
    #: how much less than on demand the node costs by it
    saved_usd_per_hour: float = field(default=0.0, compare=False)
