"""Savings Plans in a cluster file, and rules for what they cover."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Self

from pydantic import Field, model_validator

from tidegate.core.model.ec2 import Market
from tidegate.core.model.savings_plans import PlanKind, PlanRate, SavingsPlan
from tidegate.wire import names
from tidegate.wire.pool_models import PoolModel
from tidegate.wire.prices import OnDemandPrice, PriceList, PriceUsd
from tidegate.wire.problems import Problem
from tidegate.wire.section import Section

type OnDemand = Callable[[str], OnDemandPrice | None]
"""What an instance of a type costs on demand; None: nobody knows."""

SavingsPlanArn = Annotated[
    str,
    Field(
        pattern=r"^arn:aws[a-z-]*:savingsplans::\d{12}:savingsplan/[0-9a-f-]{4,64}$",
        json_schema_extra={
            "x-expected": "a Savings Plan's ARN, like "
            "arn:aws:savingsplans::123456789012:savingsplan/0f3a1b2c-1111-2222-3333-444455556666"
        },
    ),
]
Family = Annotated[
    str,
    Field(pattern=r"^[a-z0-9-]{2,20}$", json_schema_extra={"x-expected": "a family, like p5"}),
]


class SavingsPlanModel(Section):
    """A Savings Plan: USD per hour that AWS is paid whether instances use them or not."""

    arn: SavingsPlanArn = Field(description="the ARN of the plan")
    kind: PlanKind = Field(
        description="compute: it covers every type; ec2-instance: those of one family"
    )
    family: Family | None = Field(
        default=None, description="of an ec2-instance plan, in the cluster's region, like p5"
    )
    usd_per_hour: Annotated[float, Field(gt=0, le=1e6)] = Field(
        description="the part of its commitment that is this cluster's: what others of the account"
        " use of it is not known here"
    )
    discount_percent: Annotated[float, Field(gt=0, le=90)] | None = Field(
        default=None, description="what it takes off what types cost on demand"
    )
    rates_usd_per_hour: dict[names.InstanceTypeName, PriceUsd] = Field(
        default_factory=dict,
        description="the plan's own rates of single types; what is left out has discount_percent,"
        " or is not covered without one",
    )
    starts_at: names.Instant = Field(description="when it begins, like 2027-01-01T00:00:00Z")
    ends_at: names.Instant = Field(description="when it ends, one or three years later")

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.discount_percent is None and not self.rates_usd_per_hour:
            raise ValueError("has neither discount_percent nor rates_usd_per_hour: it covers none")
        if self.kind is PlanKind.EC2_INSTANCE and not self.family:
            raise ValueError("a plan of kind ec2-instance is for one family: family is missing")
        if self.kind is PlanKind.COMPUTE and self.family:
            raise ValueError("a plan of kind compute covers every family: take family out")
        if self.ends_at <= self.starts_at:
            raise ValueError(f"ends_at must be later than starts_at, is {_iso(self.ends_at)}")
        for name in self.rates_usd_per_hour:
            if not self.covers(name):
                raise ValueError(f"rates_usd_per_hour: {name} is not of the family {self.family}")
        return self

    def covers(self, instance_type: str) -> bool:
        """Whether its kind allows it; whether it has a rate for it is another question."""
        return self.family in (None, instance_type.split(".")[0])

    def plan(self, types: Iterable[str], on_demand: OnDemand) -> SavingsPlan:
        """`types`: those that pools buy on demand. What would cost more by it is not covered."""
        rates = {name: rate for name in types if (rate := self._rate(name, on_demand(name)))}
        return SavingsPlan(
            arn=self.arn,
            kind=self.kind,
            usd_per_hour=self.usd_per_hour,
            rates=rates,
            starts_at_s=self.starts_at.timestamp(),
            ends_at_s=self.ends_at.timestamp(),
        )

    def _rate(self, name: str, known: OnDemandPrice | None) -> PlanRate | None:
        """Above the list of another region a rate saves nothing until the market is read."""
        said = self.rates_usd_per_hour.get(name)
        if known is None or not self.covers(name):
            return None
        paid = known.paid_usd
        if said is not None:
            if known.is_own:
                return PlanRate(said, paid) if said < paid else None
            return PlanRate(said, max(paid, said))
        if self.discount_percent is None:
            return None
        usd = known.listed_usd * (1 - self.discount_percent / 100)
        return PlanRate(usd, paid, self.discount_percent / 100) if usd < paid else None


SavingsPlans = Annotated[
    tuple[SavingsPlanModel, ...],
    Field(description="USD per hour that are committed to, whether instances use them or not"),
]


def bought_on_demand(pools: Mapping[str, PoolModel]) -> tuple[str, ...]:
    """The names of the instance types that these pools buy on demand."""
    buying = (each for each in pools.values() if Market.ON_DEMAND in each.capacity_types)
    return tuple(sorted({of.name for each in buying for of in each.selected}))


def plans_of(
    models: Iterable[SavingsPlanModel], pools: Mapping[str, PoolModel], listed: PriceList
) -> tuple[SavingsPlan, ...]:
    types = bought_on_demand(pools)
    return tuple(each.plan(types, listed.on_demand) for each in models)


def plan_problems(
    plans: Iterable[tuple[int, SavingsPlanModel]],
    types: Iterable[str],
    on_demand: OnDemand,
) -> Iterator[Problem]:
    """Each plan is named once and pays for something. `types`: all that pools buy on demand."""
    arns: dict[str, int] = {}
    sold = set(types)
    for index, each in plans:
        if each.arn in arns:
            text = f"is named by savings_plans[{arns[each.arn]}] already"
            yield Problem(("savings_plans", index, "arn"), text)
        arns.setdefault(each.arn, index)
        for name, usd in each.rates_usd_per_hour.items():
            known = on_demand(name)
            if known and known.is_own and usd >= known.paid_usd:
                text = f"{usd:g}, but {name} costs {known.paid_usd:g} on demand: no plan asks more"
                yield Problem(("savings_plans", index, "rates_usd_per_hour", name), text)
        if not each.plan(sold, on_demand).rates:
            text = f"no pool with {Market.ON_DEMAND} has a type that it covers"
            yield Problem(("savings_plans", index), f"{text}: it would be paid for and never used")


def _iso(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat()
