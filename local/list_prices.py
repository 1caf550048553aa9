"""Writes the list prices: `python -m local.list_prices FILE`.

FILE is AWS's public offer file of EC2 in us-east-1, which needs no account:
https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonEC2/current/us-east-1/index.csv
Source of its columns: AWS Billing user guide, "Reading the service price list file".
"""

import csv
import io
import sys
from collections.abc import Iterable, Iterator
from itertools import dropwhile
from pathlib import Path

from tidegate.wire.catalogue import LIST_PRICE_REGION, load_catalogue

PRICES = Path(__file__).parent.parent / "tidegate" / "data" / "on_demand_us_east_1.csv"

# Plain Linux, paid by the hour, on shared hardware; a reservation's own line says another status.
WANTED = {
    "TermType": "OnDemand",
    "Unit": "Hrs",
    "Currency": "USD",
    "Region Code": LIST_PRICE_REGION,
    "Tenancy": "Shared",
    "Operating System": "Linux",
    "Pre Installed S/W": "NA",
    "CapacityStatus": "Used",
    "operation": "RunInstances",
}


def list_prices(lines: Iterable[str]) -> dict[str, float]:
    """Instance type -> USD per hour, of the types in the catalogue. Errors: ValueError."""
    prices: dict[str, float] = {}
    for name, price in _lines(lines):
        if name in load_catalogue() and prices.setdefault(name, price) != price:
            raise ValueError(f"{name} has two prices: {prices[name]:g} and {price:g}")
    if not prices:
        raise ValueError("no price in it: is it the offer file of EC2 in us-east-1?")
    return prices


def _lines(lines: Iterable[str]) -> Iterator[tuple[str, float]]:
    """Before the header there are some lines about the file itself."""
    table = dropwhile(lambda line: not line.startswith('"SKU"'), lines)
    for row in csv.DictReader(table):
        if all(row[key] == value for key, value in WANTED.items()):
            yield row["Instance Type"], float(row["PricePerUnit"])


def prices_csv(prices: dict[str, float]) -> str:
    """The whole file, sorted by name."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("name", "usd_per_hour"))
    table.writerows((name, f"{usd:g}") for name, usd in sorted(prices.items()))
    return text.getvalue()


if __name__ == "__main__":
    with Path(sys.argv[1]).open(encoding="utf-8", newline="") as offer_file:
        PRICES.write_text(prices_csv(list_prices(offer_file)))
