"""Networks: ParallelCluster knows subnets by their ids, a cluster file by their zones."""

from collections.abc import Mapping

from tidegate.cli.pcluster.outcome import Gap, Translated, Yaml
from tidegate.cli.pcluster.shape import Configuration, Networking
from tidegate.core.model.frozen import frozen

STAND_IN_VPC = "vpc-00000000"
ZONE_LETTERS = "abcdefgh"


@frozen
class Places:
    """What the user said of the network: the VPC, and zones by subnet."""

    vpc: str | None = None
    zones: Mapping[str, str] | None = None

    def zone(self, subnet: str) -> str | None:
        return (self.zones or {}).get(subnet)


def network(old: Configuration, region: str, places: Places, done: Translated) -> None:
    """The VPC, a subnet for each zone, and the proxy."""
    subnets = subnets_of(old)
    told: Yaml = {}
    if subnets:
        told["vpc"] = places.vpc
        if places.vpc is None:
            text = f"the VPC of {subnets[0]}, or say --vpc"
            done.gaps.append(Gap(("network", "vpc"), text, STAND_IN_VPC))
        told["subnets"] = _by_zone(old, subnets, region, places, done)
    if proxy := _proxy(old, done):
        told["proxy"] = {"url": proxy}
    if told:
        done.file["network"] = told
    head = head_subnet(old)
    if head and (zone := places.zone(head)):
        done.file.setdefault("head", {})["zone"] = zone


def _by_zone(
    old: Configuration, subnets: list[str], region: str, places: Places, done: Translated
) -> dict[str, str]:
    """A zone has one subnet: that of nodes, who need its way out, before that of the head."""
    known: dict[str, str] = {}
    of_nodes = [each for queue in old.queues for each in queue.subnets]
    for subnet in dict.fromkeys((*of_nodes, *subnets)):
        zone = places.zone(subnet)
        if zone is not None and known.setdefault(zone, subnet) != subnet:
            place, is_heavy = _named_by(old, subnet)
            means = f"machines in {zone} are in {known[zone]}: a zone has one subnet"
            code = "subnets" if is_heavy else "without-harm"
            done.lose(place, code, means, is_heavy=is_heavy)
    unknown = [subnet for subnet in subnets if not places.zone(subnet)]
    if unknown:
        stand_ins = {stand_in_zone(old, each, region, places): each for each in subnets}
        text = f"the zone of each of {', '.join(unknown)}, or say --zone SUBNET=ZONE"
        done.gaps.append(Gap(("network", "subnets"), text, stand_ins))
    return known


def _named_by(old: Configuration, subnet: str) -> tuple[str, bool]:
    """The place, and whether its machines are worse off in another subnet of their zone.

    To the head nobody comes by a public address; of login nodes that may be the point.
    """
    for queue in old.queues:
        if subnet in queue.subnets:
            return f"Scheduling.SlurmQueues[{queue.name}].Networking.SubnetIds", True
    for pool in old.login_pools[:1]:
        if subnet == pool.subnet:
            return f"LoginNodes.Pools[{pool.name}].Networking.SubnetIds", True
    return "HeadNode.Networking.SubnetId", False


def subnets_of(old: Configuration) -> list[str]:
    """Every subnet, each once, that of the head first."""
    head = head_subnet(old)
    named = [*([head] if head else []), *(each for queue in old.queues for each in queue.subnets)]
    named += [each.subnet for each in old.login_pools[:1] if each.subnet]
    return list(dict.fromkeys(named))


def head_subnet(old: Configuration) -> str | None:
    networking = old.head_node.networking if old.head_node else None
    return networking.subnet_id if networking else None


def stand_in_zone(old: Configuration, subnet: str, region: str, places: Places) -> str:
    """The subnet's zone, or one that nobody named, to check the rest of the file."""
    if zone := places.zone(subnet):
        return zone
    letters = [each for each in ZONE_LETTERS if f"{region}{each}" not in (places.zones or {})]
    unknown = [each for each in subnets_of(old) if not places.zone(each)]
    return f"{region}{letters[unknown.index(subnet) % len(letters)]}"


def _proxy(old: Configuration, done: Translated) -> str | None:
    """One proxy serves head and nodes; where some have another or none, that is told."""
    head = _address(old.head_node.networking if old.head_node else None)
    queues = {queue.name: _address(queue.networking) for queue in old.queues}
    first = next(filter(None, (head, *queues.values())), None)
    places = {"HeadNode": head} | {
        f"Scheduling.SlurmQueues[{name}]": address for name, address in queues.items()
    }
    for place, address in places.items():
        if address != first:
            means = f"goes through {first} as all machines do, not {address or 'directly'}"
            done.lose(f"{place}.Networking.Proxy", "proxy", means)
    return first


def _address(networking: Networking | None) -> str | None:
    return networking.proxy.http_proxy_address if networking and networking.proxy else None
