"""What AWS asks for data that goes from one region to another."""

from typing import Any

from tidegate.adapters.aws_errors import aws_call
from tidegate.adapters.prices import listed_usd

# Source: attributes of AWSDataTransfer in the Price List, as AWS's own pages filter them; Data
# Exports user guide, "Understanding data transfer charges": what comes in costs nothing.
OUTBOUND = "InterRegion Outbound"


def usd_per_gb(pricing: Any, from_region: str, to_region: str) -> float | None:
    """The list price; None: it says none, or several.

    Errors: Throttled, NotAuthorized.
    """
    asked = {
        "transferType": OUTBOUND,
        "fromRegionCode": from_region,
        "toRegionCode": to_region,
    }
    with aws_call():
        answer = pricing.get_products(
            ServiceCode="AWSDataTransfer",
            Filters=[
                {"Type": "TERM_MATCH", "Field": field, "Value": value}
                for field, value in asked.items()
            ],
        )
    found = {usd for text in answer["PriceList"] for usd in listed_usd(text, "GB")}
    return found.pop() if len(found) == 1 else None
