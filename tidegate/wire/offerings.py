"""Where instance types are offered, as far as `tidegate/data/offerings.csv` knows.

AWS brings types to further regions and zones: `tidegate validate --live` asks it.
"""

import csv
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from tidegate.core.model.cluster import Pool
from tidegate.wire.config import ClusterFile
from tidegate.wire.problems import Problem


@cache
def load_offerings() -> Mapping[str, Mapping[str, int]]:
    """Instance type -> region -> how many of its zones offer it; read once per process.

    Source: EC2 DescribeInstanceTypeOfferings; `python -m local.offerings` writes it.
    """
    text = (files("tidegate") / "data" / "offerings.csv").read_text(encoding="utf-8")
    return {
        row["name"]: {
            region: int(zones)
            for region, _, zones in (each.partition(":") for each in row["regions"].split())
        }
        for row in csv.DictReader(text.splitlines())
    }


def problems(file: ClusterFile) -> Iterator[Problem]:
    """Pools and a head in a region that does not sell what they want."""
    known_regions = {region for regions in load_offerings().values() for region in regions}
    if file.region not in known_regions:
        return
    for pool in file.cluster.pools:
        yield from _of_pool(pool, file.region)
    for place, name, _ in file.machines:
        if _num_zones(name, file.region) == 0:
            yield Problem((*place, "instance_type"), f"{name} is not offered in {file.region}")


def _of_pool(pool: Pool, region: str) -> Iterator[Problem]:
    zones = {each.name: _num_zones(each.name, region) for each in pool.instance_types}
    if None in zones.values():
        return
    counts = [count or 0 for count in zones.values()]
    if not any(counts):
        names = ", ".join(sorted(zones)[:3])
        text = f"none of {names} is offered in {region}" if len(zones) > 1 else ""
        yield Problem(
            ("pools", pool.name, "instance_types"), text or f"{names} is not offered in {region}"
        )
    elif len(pool.zones) > sum(counts):
        text = f"{len(pool.zones)} zones, but its instance types are offered in at most"
        yield Problem(
            ("pools", pool.name, "zones"),
            f"{text} {sum(counts)} of {region}; `tidegate validate --live` tells which",
        )


def _num_zones(instance_type: str, region: str) -> int | None:
    """None: the data do not know the type."""
    regions = load_offerings().get(instance_type)
    return None if regions is None else regions.get(region, 0)
