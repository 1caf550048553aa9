"""Rules across the parts of a cluster file.

They run on every part that is sound in itself, so that a mistake in one pool does not hide
the problems of the others. A part with a mistake of its own is left out, not guessed at.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from tidegate.core.ec2 import Market
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.models import (
    LimitsModel,
    NetworkModel,
    PartitionModel,
    PoolModel,
    PriceModel,
)
from tidegate.wire.names import Region
from tidegate.wire.problems import Place, Problem, did_you_mean

# Every placeholder is a node that slurmctld walks in each pass.
MAX_PLACEHOLDERS = 250

_REGION: TypeAdapter[str] = TypeAdapter(Region)
_NETWORK = TypeAdapter(NetworkModel)
_LIMITS = TypeAdapter(LimitsModel)
_PARTITION = TypeAdapter(PartitionModel)
_POOL = TypeAdapter(PoolModel)
_PRICE: TypeAdapter[PriceModel] = TypeAdapter(PriceModel)


@dataclass(frozen=True, slots=True)
class Parts:
    """What is sound in the file. None: not there, or with problems of its own.

    `all_pools`, `all_partitions` and `all_priced` name the unsound ones as well.
    """

    region: str | None
    network: NetworkModel | None
    limits: LimitsModel | None
    partitions: Mapping[str, PartitionModel]
    pools: Mapping[str, PoolModel]
    prices: Mapping[str, PriceModel]
    all_partitions: frozenset[str]
    all_pools: frozenset[str]
    all_priced: frozenset[str]


def problems_across(data: Mapping[str, object]) -> list[Problem]:
    """Everything that is wrong between the parts of a file."""
    parts = _parts(data)
    rules = (_partition_pools, _default_partition, _zones, _labels, _placeholders, _prices, _limits)
    return [problem for rule in rules for problem in rule(parts)]


def _parts(data: Mapping[str, object]) -> Parts:
    partitions, pools = _mapping(data.get("partitions")), _mapping(data.get("pools"))
    prices = _mapping(data.get("prices_usd_per_hour"))
    return Parts(
        region=_sound(_REGION, data.get("region")),
        network=_sound(_NETWORK, data.get("network")),
        limits=_sound(_LIMITS, data.get("limits", {})),
        partitions=_all_sound(_PARTITION, partitions),
        pools=_all_sound(_POOL, pools),
        prices=_all_sound(_PRICE, prices),
        all_partitions=frozenset(partitions),
        all_pools=frozenset(pools),
        all_priced=frozenset(prices),
    )


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _sound[Part](model: TypeAdapter[Part], value: object) -> Part | None:
    try:
        return model.validate_python(value)
    except ValidationError:
        return None


def _all_sound[Part](model: TypeAdapter[Part], values: Mapping[str, object]) -> dict[str, Part]:
    found = {name: _sound(model, value) for name, value in values.items()}
    return {name: part for name, part in found.items() if part is not None}


def _partition_pools(parts: Parts) -> Iterator[Problem]:
    """Partitions name pools that exist, and every pool is in a partition."""
    for name, partition in parts.partitions.items():
        for index, pool in enumerate(partition.pools):
            if pool not in parts.all_pools:
                hint = did_you_mean(pool, parts.all_pools)
                yield Problem(("partitions", name, "pools", index), f"no pool named {pool}{hint}")
    if len(parts.partitions) < len(parts.all_partitions) or not parts.all_partitions:
        return
    used = {pool for partition in parts.partitions.values() for pool in partition.pools}
    for name in parts.pools:
        if name not in used:
            yield Problem(("pools", name), "no partition has this pool, so no job can reach it")


def _default_partition(parts: Parts) -> Iterator[Problem]:
    """One partition takes the jobs that name none."""
    defaults = [name for name, partition in parts.partitions.items() if partition.default]
    is_complete = len(parts.partitions) == len(parts.all_partitions)
    if len(defaults) > 1:
        yield Problem(("partitions",), f"only one may be the default, now {_and(defaults)} are")
    elif not defaults and is_complete and len(parts.partitions) > 1:
        yield Problem(("partitions",), "one of them must have default: true")


def _zones(parts: Parts) -> Iterator[Problem]:
    """Zones belong to the region and have a subnet."""
    subnets = parts.network.subnets if parts.network else None
    places: dict[Place, str] = {("network", "subnets", zone): zone for zone in subnets or ()}
    for name, pool in parts.pools.items():
        for index, zone in enumerate(pool.zones):
            places[("pools", name, "zones", index)] = zone
    for place, zone in places.items():
        if parts.region and not _is_in_region(zone, parts.region):
            yield Problem(place, f"{zone} is not a zone of {parts.region}")
        elif subnets is not None and zone not in subnets:
            yield Problem(place, f"{zone} has no subnet in network.subnets")


def _is_in_region(zone: str, region: str) -> bool:
    """`us-east-1a` and the local zone `us-east-1-bos-1a` are in us-east-1."""
    rest = zone.removeprefix(region)
    return rest != zone and (len(rest) == 1 or rest.startswith("-"))


def _labels(parts: Parts) -> Iterator[Problem]:
    """A label that is also a pool's name would select both."""
    for name, pool in parts.pools.items():
        for index, label in enumerate(pool.labels):
            if label in parts.all_pools:
                text = f"{label} is the name of a pool, a feature that its nodes have anyway"
                yield Problem(("pools", name, "labels", index), text)


def _placeholders(parts: Parts) -> Iterator[Problem]:
    """slurm.conf gets a group of placeholders for each instance type; pools share it."""
    groups: dict[str, int] = {}
    for pool in parts.pools.values():
        for instance_type in pool.instance_types:
            groups[instance_type] = max(groups.get(instance_type, 0), pool.max_job_nodes)
    total = sum(groups.values())
    if total > MAX_PLACEHOLDERS:
        summands = " + ".join(f"{count} {name}" for name, count in sorted(groups.items()))
        text = f"need {total} placeholders in slurm.conf, at most {MAX_PLACEHOLDERS} are possible"
        yield Problem(("pools",), f"{text}; lower max_job_nodes: {summands}")


def _prices(parts: Parts) -> Iterator[Problem]:
    """Every instance type and capacity type that a pool uses has a price."""
    missing: dict[Place, list[str]] = {}
    for name, pool in parts.pools.items():
        for instance_type in pool.instance_types:
            for market in pool.capacity_types:
                if _has_no_price(parts, instance_type, market):
                    place: Place = ("prices_usd_per_hour", instance_type, market.value)
                    missing.setdefault(place, []).append(name)
    for place, pools in missing.items():
        yield Problem(place, f"missing, used by pool {_and(pools)}")


def _has_no_price(parts: Parts, instance_type: str, market: Market) -> bool:
    if instance_type in parts.prices:
        return market not in parts.prices[instance_type]
    return instance_type not in parts.all_priced


def _limits(parts: Parts) -> Iterator[Problem]:
    """A pool whose smallest or cheapest node breaks a limit could never start anything."""
    for name, pool in parts.pools.items():
        yield from _too_small(("pools", name, "limits"), pool.limits, name, pool, parts)
        if parts.limits:
            yield from _too_small(("limits",), parts.limits, name, pool, parts)


def _too_small(
    place: Place, limits: LimitsModel, name: str, pool: PoolModel, parts: Parts
) -> Iterator[Problem]:
    catalogue = load_catalogue()
    smallest = min(pool.instance_types, key=lambda each: (catalogue[each].gpus, each))
    gpus = catalogue[smallest].gpus
    if limits.gpus is not None and gpus > limits.gpus:
        text = f"{limits.gpus}, but {smallest}, the smallest of pool {name}, has {gpus} GPUs"
        yield Problem((*place, "gpus"), f"{text}: nothing could ever start")
    offers = [
        (price, instance_type, market)
        for instance_type in pool.instance_types
        for market, price in parts.prices.get(instance_type, {}).items()
        if market in pool.capacity_types
    ]
    is_known = len(offers) == len(pool.instance_types) * len(pool.capacity_types)
    if limits.usd_per_hour is not None and is_known and min(offers)[0] > limits.usd_per_hour:
        price, instance_type, market = min(offers)
        text = f"{limits.usd_per_hour:g}, but {instance_type} {market}, the cheapest of pool"
        yield Problem(
            (*place, "usd_per_hour"),
            f"{text} {name}, costs {price:g} USD per hour: nothing could ever start",
        )


def _and(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
