"""Whether the subnets that a file names belong together.

Nodes with EFA may be in several subnets of a zone: its traffic crosses neither zones nor VPCs, and
subnets are no limit any more. Source: EC2 user guide, "EFA limitations"; an older text of it, and
ParallelCluster's guide still, speak of one subnet.
"""

from collections.abc import Iterator

from tidegate.wire.deployment import HeadModel
from tidegate.wire.login import LoginOptions
from tidegate.wire.parts import Parts
from tidegate.wire.problems import Place, Problem
from tidegate.wire.subnets import named_subnets


def _machines(parts: Parts) -> dict[Place, HeadModel | LoginOptions]:
    """Those that may name a subnet, by their places."""
    head: dict[Place, HeadModel | LoginOptions] = {("head",): parts.head} if parts.head else {}
    return head | dict(parts.logins)


def _need_a_network(parts: Parts) -> Iterator[Problem]:
    """Who names a subnet of its own says in which network, and a machine in which zone that is."""
    named = [*((place, of) for place, of in _machines(parts).items() if of.subnet)]
    for place, of in named:
        if not of.zone:
            zone = Problem((*place, "zone"), "").path
            text = f"needs {zone}, the availability zone that it is in"
            yield Problem((*place, "subnet"), text)
    if parts.network is None or parts.network.vpc:
        return
    places: list[Place] = [(*place, "subnet") for place, _ in named]
    places += [("pools", name, "subnets") for name, pool in parts.pools.items() if pool.subnets]
    for place in places:
        yield Problem(place, "needs network.vpc: the VPC that the subnets are in")


def _in_a_zone_of_its_pool(parts: Parts) -> Iterator[Problem]:
    """Nodes of a pool are in its zones alone."""
    for name, pool in parts.pools.items():
        for zone in pool.subnets.keys() - set(pool.zones):
            text = f"the pool has no nodes in {zone}: add it to zones, or leave it out here"
            yield Problem(("pools", name, "subnets", zone), text)


def _in_one_zone(parts: Parts) -> Iterator[Problem]:
    """A subnet is in one availability zone."""
    known: dict[str, str] = {}
    for each in named_subnets(
        parts.network.subnets if parts.network else {},
        {name: pool.subnets for name, pool in parts.pools.items()},
        *((place, of.zone, of.subnet) for place, of in _machines(parts).items()),
    ):
        zone = known.setdefault(each.subnet_id, each.zone)
        if zone != each.zone:
            text = f"{each.subnet_id} stands for two zones, {zone} and {each.zone}, and is in one"
            yield Problem(each.place, text)


SUBNET_RULES = (_need_a_network, _in_a_zone_of_its_pool, _in_one_zone)
