"""Networks: ParallelCluster knows subnets by their ids, a cluster file by their zones."""

from collections.abc import Mapping

from tidegate.cli.pcluster import asking
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
            text = f"say --vpc, as {asking.of_subnets(subnets[:1], 'VpcId')} tells it"
            done.gaps.append(Gap(("network", "vpc"), text, STAND_IN_VPC))
        told["subnets"] = shared_subnets(old, places)
        _zones(old, subnets, region, places, done)
    if proxy := _proxy(old, done):
        told["proxy"] = {"url": proxy}
    if told:
        done.file["network"] = told
    if own := own_subnet(old, head_subnet(old), places):
        done.file.setdefault("head", {}).update(own)


def _zones(
    old: Configuration, subnets: list[str], region: str, places: Places, done: Translated
) -> None:
    """Those that nobody said are to be filled in."""
    unknown = [subnet for subnet in subnets if not places.zone(subnet)]
    if unknown:
        stand_ins = {stand_in_zone(old, each, region, places): each for each in subnets}
        command = asking.of_subnets(unknown, "AvailabilityZone")
        text = f"say --zone SUBNET=ZONE for each, as {command} tells them"
        done.gaps.append(Gap(("network", "subnets"), text, stand_ins))


def shared_subnets(old: Configuration, places: Places) -> dict[str, str]:
    """One for each zone that is known: that of nodes, who need its way out, before the head's."""
    known: dict[str, str] = {}
    of_nodes = [each for queue in old.queues for each in queue.subnets]
    for subnet in dict.fromkeys((*of_nodes, *subnets_of(old))):
        if (zone := places.zone(subnet)) is not None:
            known.setdefault(zone, subnet)
    return known


def own_subnet(old: Configuration, subnet: str | None, places: Places) -> Yaml:
    """What a machine says of its subnet: its zone, and the subnet where the zone's is another."""
    zone = places.zone(subnet) if subnet else None
    if zone is None:
        return {}
    is_shared = shared_subnets(old, places)[zone] == subnet
    return {"zone": zone} if is_shared else {"zone": zone, "subnet": subnet}


def own_subnets(old: Configuration, subnets: list[str], places: Places) -> dict[str, list[str]]:
    """Those of a queue, by zone, where they are not the zone's alone."""
    shared = shared_subnets(old, places)
    by_zone: dict[str, list[str]] = {}
    for each in dict.fromkeys(subnets):
        if (zone := places.zone(each)) is not None:
            by_zone.setdefault(zone, []).append(each)
    return {zone: ids for zone, ids in by_zone.items() if ids != [shared[zone]]}


def subnets_of(old: Configuration) -> list[str]:
    """Every subnet, each once, that of the head first."""
    head = head_subnet(old)
    named = [*([head] if head else []), *(each for queue in old.queues for each in queue.subnets)]
    named += [each.subnet for each in old.login_pools if each.subnet]
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
