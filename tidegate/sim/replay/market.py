"""Spot prices by zone and what EC2 has of each offering, from files beside a history."""

import csv
from collections.abc import Mapping
from dataclasses import replace

from tidegate.core.ec2 import Market, Offering
from tidegate.core.pool import Cluster

PRICE_COLUMNS = ("instance_type", "zone", "spot")
HAZARD_COLUMNS = ("instance_type", "zone", "hazard_per_hour")
CAPACITY_COLUMNS = ("instance_type", "zone", "market", "nodes")


class BadMarket(Exception):
    """A market file that cannot be read; the message names file and line."""


def with_market(cluster: Cluster, files: Mapping[str, str]) -> Cluster:
    """The cluster with prices and hazards of `spot_prices.csv` and `hazards.csv`, where given.

    A zone "*" is every zone. Errors: BadMarket.
    """
    prices, hazards = dict(cluster.prices), dict(cluster.hazards)
    for name, columns, into in (
        ("spot_prices.csv", PRICE_COLUMNS, prices),
        ("hazards.csv", HAZARD_COLUMNS, hazards),
    ):
        for line, row in _rows(name, files.get(name, ""), columns):
            value = _number(name, line, row[columns[2]])
            for offering in _offerings(cluster, row, Market.SPOT):
                into[offering] = value
    return replace(cluster, prices=prices, hazards=hazards)


def capacities(cluster: Cluster, files: Mapping[str, str]) -> dict[Offering, int]:
    """The most nodes that EC2 has of an offering, of `capacity.csv`; others never run out."""
    found: dict[Offering, int] = {}
    name = "capacity.csv"
    for line, row in _rows(name, files.get(name, ""), CAPACITY_COLUMNS):
        try:
            market = Market(row["market"])
        except ValueError:
            raise BadMarket(f"{name}, line {line}: there is no market {row['market']!r}") from None
        for offering in _offerings(cluster, row, market):
            found[offering] = int(_number(name, line, row["nodes"]))
    return found


def _rows(name: str, text: str, columns: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    if not text:
        return []
    reader = csv.DictReader(text.splitlines())
    missing = [column for column in columns if column not in (reader.fieldnames or ())]
    if missing:
        raise BadMarket(f"{name}, line 1: the columns {', '.join(missing)} are missing")
    rows = list(enumerate(reader, start=2))
    for line, row in rows:
        if None in row or None in row.values():
            raise BadMarket(f"{name}, line {line}: not {len(reader.fieldnames or ())} fields")
    return rows


def _number(name: str, line: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise BadMarket(f"{name}, line {line}: {text!r} is no number of at least 0")
    return value


def _offerings(cluster: Cluster, row: Mapping[str, str], market: Market) -> list[Offering]:
    return [
        offering
        for pool in cluster.pools
        for _, offering in pool.offerings()
        if offering.market is market
        and offering.instance_type == row["instance_type"]
        and row["zone"] in ("*", offering.zone)
    ]
