"""Spot prices by zone and time and what EC2 has of each offering, from files beside a history."""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.frozen import frozen
from tidegate.sim.replay.csv_rows import BadCsv, csv_rows, cut
from tidegate.sim.replay.steps import Steps
from tidegate.wire.finite import FINITE

PRICE_COLUMNS = ("instance_type", "zone", "spot")
HAZARD_COLUMNS = ("instance_type", "zone", "hazard_per_hour")
CAPACITY_COLUMNS = ("instance_type", "zone", "market", "nodes")

PRICES, HISTORY = "spot_prices.csv", "spot_price_history.json"
HAZARDS, ADVISOR = "hazards.csv", "spot-advisor-data.json"
CAPACITY = "capacity.csv"
FILES = (PRICES, HISTORY, HAZARDS, ADVISOR, CAPACITY)

# Spot Advisor's classes: the part of a month's instances that were interrupted, from 0 to 4:
# under 5 %, to 10, 15 and 20 %, and more. The middle of each, and 25 % for the last.
ADVISOR_SHARES = (0.025, 0.075, 0.125, 0.175, 0.25)
ADVISOR_CLASSES = ("under 5 %", "5-10 %", "10-15 %", "15-20 %", "over 20 %")
MONTH_H = 730.0
DAY_S = 86400.0


class BadMarket(Exception):
    """A market file that cannot be read; the message names file and place."""


@frozen
class Conditions:
    """What a replay's market is like.

    `cluster`: what the planner is told of prices and hazards. `prices`: what EC2 bills for
    offerings whose price changes. `capacity`: the most nodes that EC2 has; others never run out.
    """

    cluster: Cluster
    prices: Mapping[Offering, Steps] = field(default_factory=dict)
    capacity: Mapping[Offering, Steps] = field(default_factory=dict)


class _Given(BaseModel):
    """AWS may add names; numbers are finite."""

    model_config = FINITE


class _Spot(_Given):
    """An entry of `aws ec2 describe-spot-price-history`."""

    zone: str = Field(alias="AvailabilityZone")
    instance_type: str = Field(alias="InstanceType")
    product: str = Field(alias="ProductDescription")
    usd_per_hour: Annotated[float, Field(ge=0)] = Field(alias="SpotPrice")
    at: datetime = Field(alias="Timestamp")


class _History(_Given):
    entries: list[_Spot] = Field(alias="SpotPriceHistory")


class _Advice(_Given):
    """`r`: the class of its interruptions."""

    r: Annotated[int, Field(ge=0, lt=len(ADVISOR_SHARES))]


class _Advisor(_Given):
    """Spot Advisor's public data: by region, operating system and instance type."""

    spot_advisor: dict[str, dict[str, dict[str, _Advice]]]


def conditions(
    cluster: Cluster, region: str, files: Mapping[str, str], starts_at_s: float | None = None
) -> Conditions:
    """The market that these files, by name, describe. A zone "*" is every zone.

    `starts_at_s`: when the history began, in seconds since 1970; None: on the first day of the
    price history. The planner knows the mean of prices that change: it plans with the cluster
    file's, which are written once. What a contract takes off is taken off what AWS prints, and not
    off `spot_prices.csv`. Errors: BadMarket.
    """
    prices = _history(cluster, files.get(HISTORY, ""), starts_at_s)
    for offering, steps in _steps(cluster, files, PRICES, PRICE_COLUMNS).items():
        prices[offering] = steps
    hazards = _advised(cluster, region, files.get(ADVISOR, ""))
    for offering, steps in _steps(cluster, files, HAZARDS, HAZARD_COLUMNS).items():
        hazards[offering] = steps.mean
    means = {offering: steps.mean for offering, steps in prices.items()}
    told = replace(
        cluster, prices={**cluster.prices, **means}, hazards={**cluster.hazards, **hazards}
    )
    return Conditions(told, prices, _steps(cluster, files, CAPACITY, CAPACITY_COLUMNS))


def _steps(
    cluster: Cluster, files: Mapping[str, str], name: str, columns: tuple[str, ...]
) -> dict[Offering, Steps]:
    """The last column by offering; from the second `at_s` of the history on, where that is said."""
    changes: dict[Offering, list[tuple[float, float]]] = {}
    for line, row in _rows(name, files.get(name, ""), columns):
        at_s = _number(name, line, row.get("at_s") or "0")
        value = _number(name, line, row[columns[-1]])
        for offering in _offerings(cluster, row, _market(name, line, row)):
            changes.setdefault(offering, []).append((at_s, value))
    return _in_order(changes)


def _in_order(changes: Mapping[Offering, list[tuple[float, float]]]) -> dict[Offering, Steps]:
    return {offering: Steps(tuple(sorted(found))) for offering, found in changes.items()}


def _market(name: str, line: int, row: Mapping[str, str]) -> Market:
    try:
        return Market(row.get("market", Market.SPOT))
    except ValueError:
        text = f"market must be {' or '.join(Market)}, is {cut(row['market'])}"
        raise BadMarket(f"{name}, line {line}: {text}") from None


def _rows(name: str, text: str, columns: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    if not text:
        return []
    try:
        return csv_rows(text, columns, name)
    except BadCsv as error:
        raise BadMarket(str(error)) from None


def _number(name: str, line: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e11:
        raise BadMarket(f"{name}, line {line}: must be a number of at least 0, is {cut(text)}")
    return value


def _offerings(cluster: Cluster, row: Mapping[str, str], market: Market) -> list[Offering]:
    return [
        offering
        for offering in _sold(cluster, market)
        if offering.instance_type == row["instance_type"] and row["zone"] in ("*", offering.zone)
    ]


def _sold(cluster: Cluster, market: Market) -> Iterable[Offering]:
    """What the cluster's pools may buy on this market."""
    for pool in cluster.pools:
        yield from (o for _, o in pool.offerings() if o.market is market)


def _parsed[M: BaseModel](name: str, text: str, model: type[M]) -> M:
    try:
        return TypeAdapter(model).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise BadMarket(f"{name}, {where}: {first['msg']}") from None


def _history(cluster: Cluster, text: str, starts_at_s: float | None) -> dict[Offering, Steps]:
    """What `describe-spot-price-history` says of Linux; a price counts until the next."""
    if not text:
        return {}
    found = [
        each
        for each in _parsed(HISTORY, text, _History).entries
        if each.product.startswith("Linux/UNIX")
    ]
    if starts_at_s is None:
        first_s = min((each.at.timestamp() for each in found), default=0.0)
        starts_at_s = first_s // DAY_S * DAY_S
    sold = set(_sold(cluster, Market.SPOT))
    changes: dict[Offering, list[tuple[float, float]]] = {}
    for each in found:
        offering = Offering(each.instance_type, each.zone, Market.SPOT)
        if offering in sold:
            at_s = each.at.timestamp() - starts_at_s
            paid = each.usd_per_hour * (1 - cluster.discount)
            changes.setdefault(offering, []).append((at_s, paid))
    return _in_order(changes)


def _advised(cluster: Cluster, region: str, text: str) -> dict[Offering, float]:
    """Interruptions per node-hour as Spot Advisor has them for the region."""
    types = advised(region, text) if text else {}
    return {
        offering: ADVISOR_SHARES[types[offering.instance_type]] / MONTH_H
        for offering in _sold(cluster, Market.SPOT)
        if offering.instance_type in types
    }


def advised(region: str, text: str) -> dict[str, int]:
    """Spot Advisor's class of each instance type of the region. Errors: BadMarket."""
    regions = _parsed(ADVISOR, text, _Advisor).spot_advisor
    return {name: each.r for name, each in regions.get(region, {}).get("Linux", {}).items()}
