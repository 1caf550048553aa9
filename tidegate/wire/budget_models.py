"""What may be spent by day and by month, and by whom."""

from collections.abc import Mapping
from itertools import chain

from pydantic import Field, ValidationInfo, field_validator

from tidegate.core.model.cluster import (
    CLUSTER_SCOPE,
    SpendingBudget,
    account_scope,
    pool_scope,
    user_scope,
)
from tidegate.wire.section import PositiveUsd, Section


class SpendingBudgetModel(Section):
    """Once so much is spent, nothing more is launched until the day or month (UTC) ends."""

    usd_per_day: PositiveUsd | None = Field(default=None, description="USD per day")
    usd_per_month: PositiveUsd | None = Field(default=None, description="USD per month")

    @field_validator("usd_per_month")
    @classmethod
    def _holds_a_day(cls, month: float | None, info: ValidationInfo) -> float | None:
        day = info.data.get("usd_per_day")
        if month is not None and day is not None and month < day:
            text = f"{month:g}, less than usd_per_day ({day:g}): no day could ever spend its own"
            raise ValueError(f"{text}; lower usd_per_day, or leave it out")
        return month

    def budget(self) -> SpendingBudget | None:
        """None: there is none."""
        made = SpendingBudget(self.usd_per_day, self.usd_per_month)
        return None if made == SpendingBudget() else made


type Budgets = Mapping[str, SpendingBudgetModel]


def budgets(
    cluster: SpendingBudgetModel, pools: Budgets, accounts: Budgets, users: Budgets
) -> Mapping[str, SpendingBudget]:
    """Those that there are, by scope."""
    models = chain(
        [(CLUSTER_SCOPE, cluster)],
        ((pool_scope(name), model) for name, model in pools.items()),
        ((account_scope(name), model) for name, model in accounts.items()),
        ((user_scope(name), model) for name, model in users.items()),
    )
    found = ((scope, model.budget()) for scope, model in models)
    return {scope: budget for scope, budget in found if budget}
