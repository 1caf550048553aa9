"""Whether the account's quotas let a pool reach its limits, machines start, a network be made."""

import re
from collections.abc import Iterable, Iterator, Mapping
from math import ceil

from tidegate.core.model.cluster import Limits, Pool
from tidegate.core.model.ec2 import InstanceType, Market
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.config import ClusterFile
from tidegate.wire.problems import Problem

# Names as EC2 gives them (User Guide, "Spot Instance quotas", "On-Demand Instance quotas"):
# "Running On-Demand G and VT instances", "All P4, P3 and P2 Spot Instance Requests",
# "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances".
_NAMES = {
    Market.ON_DEMAND: re.compile(r"Running On-Demand (?:Standard \()?(.+?)\)? instances"),
    Market.SPOT: re.compile(r"All (?:Standard \()?(.+?)\)? Spot Instance Requests"),
}
# Names as Service Quotas gives them, of the services `vpc` and `ec2` (VPC user guide, "Quotas").
_VPCS = "VPCs per Region"
_ADDRESSES = "EC2-VPC Elastic IPs"
_FAMILY = re.compile(r"([a-z]+)([0-9]*)")

type Quotas = Mapping[str, float]


def problems(pools: Iterable[Pool], quotas: Quotas) -> Iterator[Problem]:
    """Pools that cannot start anything, or not as much as their limits say."""
    for pool in pools:
        for index, market in enumerate(pool.markets):
            if market in _NAMES:
                yield from _of_market(pool, index, market, quotas)


def machine_problems(file: ClusterFile, quotas: Quotas) -> Iterator[Problem]:
    """Head and login nodes that EC2 would refuse to start: the deployment would be rolled back."""
    counts = {kind.place: kind.model.count for kind in file.login_kinds}
    for place, name, _ in file.machines:
        quota = quota_name(name, Market.ON_DEMAND, quotas)
        vcpus = load_catalogue()[name].instance_type.vcpus * counts.get(place, 1)
        if quota and vcpus > quotas[quota]:
            text = f"{vcpus} vCPUs in all, the quota `{quota}` is {quotas[quota]:g}: raise it"
            yield Problem((*place, "instance_type"), text)


def quota_name(instance_type: str, market: Market, names: Iterable[str]) -> str:
    """The name of the quota that an instance type counts against; "" when none is known.

    `gr6` has no letters of its own among the quotas: it counts as G.
    """
    family = _FAMILY.match(instance_type)
    assert family, instance_type
    letters, number = family.groups()
    covered = {word: name for name in names for word in _families(name, market)}
    found = (covered.get(word) for word in (f"{letters}{number}", letters, letters[0]))
    return next((name for name in found if name), "")


def _families(name: str, market: Market) -> list[str]:
    found = _NAMES[market].fullmatch(name)
    return re.split(r", | and ", found.group(1).lower()) if found else []


def _of_market(pool: Pool, index: int, market: Market, quotas: Quotas) -> Iterator[Problem]:
    by_name: dict[str, list[InstanceType]] = {}
    for each in pool.instance_types:
        by_name.setdefault(quota_name(each.name, market, quotas), []).append(each)
    if "" in by_name:  # a family whose quota we do not know bounds nothing
        return
    usable: list[InstanceType] = []
    for name, types in by_name.items():
        fitting = [each for each in types if each.vcpus <= quotas[name]]
        usable += fitting
        if not fitting:
            smallest = min(types, key=lambda each: each.vcpus)
            yield Problem(
                ("pools", pool.name, "capacity_types", index),
                f"the quota `{name}` is {quotas[name]:g} vCPUs, {smallest.name} has "
                f"{smallest.vcpus}: none of this kind could ever start",
            )
    need = needed_vcpus(pool.limits, usable)
    total = sum(quotas[name] for name, types in by_name.items() if set(types) & set(usable))
    if usable and need is not None and need[0] > total:
        told = " and ".join(f"`{name}`" for name in sorted(by_name))
        yield Problem(
            ("pools", pool.name, "limits", need[1]),
            f"needs {need[0]} vCPUs as {market}, the quota {told} is {total:g}: raise it or "
            "lower the limit",
        )


def needed_vcpus(limits: Limits, types: list[InstanceType]) -> tuple[int, str] | None:
    """The fewest vCPUs with which the tightest limit is reached, and that limit's name.

    None: no limit that vCPUs follow from.
    """
    needs: list[tuple[int, str]] = []
    if limits.nodes is not None and types:
        needs.append((limits.nodes * min(each.vcpus for each in types), "nodes"))
    if limits.vcpus is not None:
        needs.append((limits.vcpus, "vcpus"))
    with_gpus = [each for each in types if each.gpus]
    if limits.gpus is not None and with_gpus:
        least = min(each.vcpus / each.gpus for each in with_gpus)
        needs.append((ceil(limits.gpus * least), "gpus"))
    return min(needs, default=None)


def network_problems(
    *,
    vpcs: tuple[int, Quotas],
    needed_vpcs: int,
    addresses: tuple[int, Quotas],
    needed_addresses: int,
) -> Iterator[Problem]:
    """Whether VPCs and a NAT gateway's addresses can be made; each: how many there are, quotas.

    Of fleets Service Quotas names none that could be asked; EC2 says MaxFleetCountExceeded itself.
    """
    asked = (("cidr", needed_vpcs, vpcs, _VPCS), ("nat", needed_addresses, addresses, _ADDRESSES))
    for place, needed, (used, quotas), name in asked:
        if name in quotas and needed and used + needed > quotas[name]:
            text = f"the quota `{name}` is {quotas[name]:g}, and {used} are there already"
            yield Problem(("network", place), f"{text}: raise it, or name a network that exists")
