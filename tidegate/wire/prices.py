"""What an instance costs by the cluster file, or by AWS's list."""

from typing import Annotated

from pydantic import Field

from tidegate.core.model.ec2 import Market
from tidegate.wire.catalogue import LIST_PRICE_REGION, load_list_prices
from tidegate.wire.pool_models import PaidMarket

# Spot by on-demand price where the file does not say: in AWS's Spot Advisor of July 2025 nine
# of ten GPU types saved at least 54 %.
SPOT_SHARE = 0.5

# Ten times what the dearest type costs.
PriceUsd = Annotated[float, Field(gt=0, le=2000)]
PriceModel = dict[PaidMarket, PriceUsd]


def price_usd_per_hour(
    prices: PriceModel, instance_type: str, market: Market, region: str | None
) -> float | None:
    """What the file or AWS's list says; None: nobody knows.

    Spot without a price is taken to cost a share of the on-demand price.
    """
    if market in prices:
        return prices[market]
    listed = load_list_prices().get(instance_type) if region == LIST_PRICE_REGION else None
    on_demand = prices.get(Market.ON_DEMAND, listed)
    if on_demand is None or market is Market.ON_DEMAND:
        return on_demand
    return on_demand * SPOT_SHARE
