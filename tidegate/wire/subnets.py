"""Subnets of an existing network: one for each zone, and those that machines name themselves."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from tidegate.core.model.frozen import frozen
from tidegate.wire import names
from tidegate.wire.problems import Place
from tidegate.wire.section import at_most

# A fleet takes one of them at a time, and a look asks for four fleets in a row at most.
MOST_IN_ZONE = 4

SubnetsOfZone = Annotated[
    tuple[names.SubnetId, ...],
    Field(min_length=1),
    at_most(MOST_IN_ZONE),
    AfterValidator(names.no_repeats),
]

type SubnetsByZone = Mapping[str, tuple[str, ...]]


@frozen
class NamedSubnet:
    """A subnet, where the file names it and in which zone that says it is."""

    place: Place
    zone: str
    subnet_id: str


def named_subnets(
    of_network: Mapping[str, str],
    of_pools: Mapping[str, SubnetsByZone],
    *of_machines: tuple[Place, str | None, str | None],
) -> Iterator[NamedSubnet]:
    """All of a file. `of_machines`: place, zone and subnet of head and of login nodes."""
    for zone, subnet_id in of_network.items():
        yield NamedSubnet(("network", "subnets", zone), zone, subnet_id)
    for place, of, subnet in of_machines:
        if of and subnet:
            yield NamedSubnet((*place, "subnet"), of, subnet)
    for pool, by_zone in of_pools.items():
        for zone, ids in by_zone.items():
            for index, each in enumerate(ids):
                yield NamedSubnet(("pools", pool, "subnets", zone, index), zone, each)
