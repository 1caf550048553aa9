"""What is known of a region's market: from AWS, or from files in a folder of the region's name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidegate.adapters.account import Account
from tidegate.adapters.clock import SystemClock
from tidegate.adapters.prices import AwsPrices
from tidegate.adapters.regions import opted_in
from tidegate.adapters.transfer_prices import usd_per_gb
from tidegate.cli.quotas import Quotas
from tidegate.core.model.errors import BadConfig, TidegateError
from tidegate.core.model.market import Quote
from tidegate.sim.replay.csv_rows import BadCsv, csv_rows
from tidegate.sim.replay.market import FILES, HISTORY, PRICES
from tidegate.wire.finite import parse_json
from tidegate.wire.prices import has_price_list
from tidegate.wire.problems import shown
from tidegate.wire.yaml_file import read_text

# Beside the files of a replay's market.
LIST_PRICES, TRANSFER = "on_demand.csv", "data_transfer.csv"

type RegionClients = Callable[[str, str], object]


@dataclass
class Told:
    """`zones`: instance type -> the zones that have it; `files`: those of a replay's market.

    `closed`: why nothing can be bought there, "": it can. `unknown`: what could not be learnt.
    """

    region: str
    on_demand: dict[str, float] = field(default_factory=dict)
    spot: tuple[Quote, ...] = ()
    zones: Mapping[str, frozenset[str]] = field(default_factory=dict)
    quotas: Quotas | None = None
    usd_per_gb: float | None = None
    files: dict[str, str] = field(default_factory=dict)
    closed: str = ""
    unknown: list[str] = field(default_factory=list)


def open_regions(clients: RegionClients, own: str, names: Sequence[str]) -> dict[str, Told]:
    """Of regions that the account cannot use, why not."""
    client: Any = clients("ec2", own)
    try:
        known = opted_in(client)
    except TidegateError:  # then each of them says it itself
        return {}
    found = {}
    for name in names:
        if name in known and not known[name]:
            enable = f"aws account enable-region --region-name {name}"
            found[name] = Told(name, closed=f"not enabled for the account; enable it: {enable}")
    return found


def from_aws(
    clients: RegionClients, region: str, own: str, types: Sequence[str], *, asks_transfer: bool
) -> Told:
    """Asked with the rights of who asks. Without prices and zones nothing is played; quotas and
    the price of moving data are unknown where they cannot be read.
    """
    if not has_price_list(region):
        said = "its list prices cannot be asked for from here: give files with --market"
        return Told(region, closed=said)

    def of_region(service: str) -> Any:
        return clients(service, region)

    pricing: Any = clients("pricing", own)
    prices = AwsPrices(of_region("ec2"), pricing, region, SystemClock())
    account, told = Account(of_region), Told(region)
    try:
        told.zones = account.offerings(types)
        told.spot = prices.spot(types)
        listed = prices.on_demand(types) or ()
        told.on_demand = {each.instance_type: each.usd_per_hour for each in listed}
    except TidegateError as error:
        told.closed = f"its prices cannot be read: {type(error).__name__}: {error}"
        return told
    try:
        told.quotas = account.quotas()
    except TidegateError as error:
        told.unknown.append(f"the account's quotas: {type(error).__name__}: {error}")
    try:
        if asks_transfer and region != own:
            told.usd_per_gb = usd_per_gb(pricing, own, region)
    except TidegateError as error:
        told.unknown.append(f"the price of moving data: {type(error).__name__}: {error}")
    return told


def from_files(folder: Path, region: str, own: str, types: Sequence[str]) -> Told:
    """Quotas no file tells. Errors: BadConfig, a file cannot be read."""
    told, place = Told(region), folder / region
    if region != own and not (place / LIST_PRICES).is_file():
        told.closed = f"{place / LIST_PRICES} is not there: nothing is known of its prices"
        return told
    told.files = {name: read_text(place / name) for name in FILES if (place / name).is_file()}
    told.on_demand = {
        row["instance_type"]: _number(place / LIST_PRICES, row["usd_per_hour"])
        for row in _rows(place / LIST_PRICES, ("instance_type", "usd_per_hour"))
    }
    zones = {zone for zone in _zones(told.files) if zone != "*"} or {f"{region}a"}
    told.zones = {name: frozenset(zones) for name in types if name in told.on_demand}
    if region != own:
        path = folder / TRANSFER
        for row in _rows(path, ("from", "to", "usd_per_gb")):
            if (row["from"], row["to"]) == (own, region):
                told.usd_per_gb = _number(path, row["usd_per_gb"])
    return told


def _rows(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    try:
        return [row for _, row in csv_rows(read_text(path), columns, path)]
    except BadCsv as error:
        raise BadConfig(str(error)) from error


def _number(path: Path, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise BadConfig(f"{path}: a price must be a number of at least 0, is {shown(text)}")
    return value


def _zones(files: Mapping[str, str]) -> Iterable[str]:
    """The zones that the spot prices name; what is wrong with a file is told as it is played."""
    try:
        yield from (row["zone"] or "*" for _, row in csv_rows(files.get(PRICES, ""), (), PRICES))
        found: Any = parse_json(files.get(HISTORY) or "{}")
        yield from (each["AvailabilityZone"] for each in found.get("SpotPriceHistory", ()))
    except (BadCsv, ValueError, KeyError, TypeError, AttributeError):
        return
