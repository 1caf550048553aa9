"""What of a cluster file the account and its region do not have, found before it is deployed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network

from tidegate.adapters.account import EBS_AWS_KEY, Account, Image
from tidegate.cli import disk_keys, mount_targets, naming, own_parts, quotas, sessions, ways_out
from tidegate.cli.wanted_images import root_volumes, wanted_images
from tidegate.core.model.alarms import AlarmState
from tidegate.core.model.cluster import Pool
from tidegate.core.model.ec2 import SPOT_ROLE, Market
from tidegate.core.model.errors import TidegateError
from tidegate.core.model.frozen import frozen
from tidegate.wire.config import ClusterFile
from tidegate.wire.deployment import ExistingModel, Nat
from tidegate.wire.node_models import OWN_IMAGE
from tidegate.wire.problems import Place, Problem
from tidegate.wire.subnets import NamedSubnet


@frozen
class Note:
    """Something to know that hinders nothing."""

    problem: Problem


@frozen
class Unasked:
    """A part of a question that got no answer, and why."""

    text: str


@frozen
class Needless:
    """Why a question is none for this file."""

    text: str


@frozen
class Answer:
    """What AWS said to one question. `claim`: what holds when there is no problem.

    `unasked`: what could not be asked, and why. `needless`: why there is nothing to ask, or "".
    """

    code: str
    claim: str
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    unasked: tuple[str, ...] = ()
    needless: str = ""


@dataclass(slots=True)
class Findings:
    """`unknown`: what could not be asked, and why."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


# Source: Route 53 developer guide, "Associating an Amazon VPC and a private hosted zone that you
# created with different AWS accounts": by its API, after a leave of the other side.
SHARED_VPC = (
    "and the head's private zone joins a VPC of its own account alone: the deployment would be"
    " rolled back; take a VPC of this account, or a head that is there (existing.head)"
)

type Found = Iterator[Problem | Note | Unasked | Needless]
type Check = Callable[[ClusterFile, Account], Found]


def findings(file: ClusterFile, account: Account) -> Findings:
    """Everything at once: a check that may not ask does not keep the others from asking."""
    found = Findings()
    for check in CHECKS:
        one = answer(check, file, account)
        found.problems += one.problems
        found.notes += one.notes
        found.unknown += (f"{one.claim} {text}" for text in one.unasked)
    return found


def answer(check: Check, file: ClusterFile, account: Account) -> Answer:
    """What one check found, up to where it was refused an answer."""
    found: list[Problem | Note | Unasked | Needless] = []
    try:
        for each in check(file, account):
            found.append(each)
    except TidegateError as trouble:
        found.append(Unasked(f"{type(trouble).__name__}: {trouble}"))
    return Answer(
        code=check.__name__.strip("_").replace("_", "-"),
        claim=(check.__doc__ or "").strip(),
        problems=tuple(each for each in found if isinstance(each, Problem)),
        notes=tuple(each.problem for each in found if isinstance(each, Note)),
        unasked=tuple(each.text for each in found if isinstance(each, Unasked)),
        needless="; ".join(each.text for each in found if isinstance(each, Needless)),
    )


def _offerings(file: ClusterFile, account: Account) -> Found:
    """Instance types are offered in the zones that name them."""
    pools = file.cluster.pools
    names = {each.name for pool in pools for each in pool.instance_types}
    offered = account.offerings({*names, *(name for _, name, _ in file.machines)})
    for pool in pools:
        yield from _pool_offerings(pool, offered)
    for place, name, zone in file.machines:
        zones = offered.get(name, frozenset())
        if zone not in zones:
            told = f"offered in {', '.join(sorted(zones))}" if zones else "not in this region"
            text = f"{name} is not offered in {zone}; {told}"
            yield Problem((*place, "instance_type"), text)


def _pool_offerings(pool: Pool, offered: Mapping[str, frozenset[str]]) -> Found:
    names = [each.name for each in pool.instance_types]
    anywhere = sorted({zone for name in names for zone in offered.get(name, ())})
    if not anywhere:
        text = f"none of {_some(names)} is offered in this region"
        yield Problem(("pools", pool.name, "instance_types"), text)
        return
    for index, zone in enumerate(pool.zones):
        if zone not in anywhere:
            text = f"no instance type of the pool is offered in {zone}"
            where = f"they are in {', '.join(anywhere)}"
            yield Problem(("pools", pool.name, "zones", index), f"{text}; {where}")
    nowhere = [name for name in names if not offered.get(name, frozenset()) & set(pool.zones)]
    if nowhere and len(nowhere) < len(names):
        text = f"{_some(nowhere)} not offered in any zone of the pool"
        yield Note(Problem(("pools", pool.name, "instance_types"), text))


def _quotas(file: ClusterFile, account: Account) -> Found:
    """Quotas of vCPUs let every pool reach its limits, head and login nodes start."""
    found = account.quotas()
    yield from quotas.problems(file.cluster.pools, found)
    yield from quotas.machine_problems(file, found)


def _addresses(file: ClusterFile, account: Account) -> Found:
    """The network that the stack makes is within the quotas of VPCs and Elastic IP addresses."""
    if file.network.vpc:
        yield Needless("the file names a network that exists")
        return
    own = [each for each in account.vpcs().values() if each.cluster == file.cluster.name]
    if own:
        yield Needless(f"{own[0].vpc_id} of this cluster is there already")
        return
    yield from quotas.network_problems(
        vpcs=(len(account.vpcs()), account.quotas("vpc")),
        needed_vpcs=1 + (file.images is not None),  # images are baked in one of their own
        addresses=(account.num_addresses(), account.quotas()),
        needed_addresses=int(file.network.nat is Nat.ONE),
    )


def _spot_role(file: ClusterFile, account: Account) -> Found:
    """Spot instances have their service-linked role, or get it at the first launch."""
    place = _first_spot(file)
    if place is None:
        yield Needless("no pool buys spot instances")
    if place and not account.has_role(SPOT_ROLE):
        command = "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
        text = f"the account has no role {SPOT_ROLE} yet: EC2 makes it at the first launch, with a "
        text += f"right of the planner's; where a policy of yours denies that, `{command}` makes it"
        yield Note(Problem(place, text))


def _first_spot(file: ClusterFile) -> Place | None:
    places: list[Place] = [
        ("pools", pool.name, "capacity_types", pool.markets.index(Market.SPOT))
        for pool in file.cluster.pools
        if Market.SPOT in pool.markets
    ]
    return places[0] if places else None


def _images(file: ClusterFile, account: Account) -> Found:
    """Machine images exist, for the processors of head and nodes, and fit their root volumes."""
    for place, named, arch in wanted_images(file):
        image_id = named if named.startswith(OWN_IMAGE) else account.parameter(named)
        image = account.image(image_id) if image_id else None
        if image is None or image_id is None:
            text = "is not there, or not shared with this account, or kept from it (Allowed AMIs)"
            where = "" if image_id else "; AWS names the images of this region there"
            yield Problem(place, f"{image_id or named} {text}{where}")
            continue
        if image.arch != arch:
            text = f"{image_id} is for {image.arch}, what boots from it is {arch}"
            yield Problem(place, text)
        if image.state != "available":
            yield Problem(place, f"{image_id} is {image.state}, not available")
        for key_id in image.keys:
            yield from _key(place, key_id, file, account)
        yield from _roots(file, place, image_id, image)


def _roots(file: ClusterFile, place: Place, image_id: str, image: Image) -> Found:
    roots = root_volumes(file, place)
    for volume, root in roots.items():
        if root.gib < image.root_gib:
            text = f"{root.gib} GiB, the root volume of {image_id} has {image.root_gib}"
            yield Problem(volume, f"{text}: EC2 would refuse every launch")
    for device in sorted({root.device for root in roots.values()} - {image.root_device}):
        if image.root_device:
            yield Problem(
                place,
                f"{image_id} calls its root disk {image.root_device}, and {device} is asked for: "
                "each machine would have a second disk, which is paid for, and the first at its "
                "size in the image; let `software.os` say the image's system (al2023: /dev/xvda, "
                "Ubuntu: /dev/sda1), or make the image anew with `aws ec2 register-image "
                f"--root-device-name {device}`",
            )


def _disk_key(file: ClusterFile, account: Account) -> Found:
    """The key of volumes can be used by the functions, and for spot instances."""
    if file.kms_key:
        yield from _key(("kms_key",), file.kms_key, file, account)
    elif (key_id := account.default_ebs_key()) != EBS_AWS_KEY:
        yield from _key(("region",), key_id, file, account)


def _key(place: Place, key_id: str, file: ClusterFile, account: Account) -> Found:
    has_spot = _first_spot(file) is not None
    for fit, text in disk_keys.found(key_id, account, kms_key=file.kms_key, has_spot=has_spot):
        yield Note(Problem(place, text)) if fit else Problem(place, text)


def _own_network(file: ClusterFile, account: Account) -> Found:
    """The addresses of an own network are those of no other VPC here."""
    if file.network.vpc:
        return
    own = IPv4Network(file.network.cidr)
    for vpc in account.vpcs().values():
        for cidr in vpc.cidrs:
            if vpc.cluster != file.cluster.name and own.overlaps(IPv4Network(cidr)):
                text = f"{own} overlaps {cidr} of {vpc.vpc_id}: the two could never be connected"
                yield Note(Problem(("network", "cidr"), text))


def _existing_network(file: ClusterFile, account: Account) -> Found:
    """An existing network is as the file says."""
    wanted = file.network.vpc
    if wanted is None:
        yield Needless("the stack makes a network of its own")
        return
    vpc = account.vpcs().get(wanted)
    if vpc is None:
        yield Problem(("network", "vpc"), f"{wanted} is not there")
        return
    if not account.has_dns(wanted):
        text = f"{wanted}: nodes find each other by name, which needs enableDnsSupport and "
        yield Problem(("network", "vpc"), f"{text}enableDnsHostnames")
    for text in naming.doubts(wanted, file, account):
        yield Note(Problem(("network", "vpc"), text))
    if vpc.owner and not file.existing.head and vpc.owner != account.number():
        yield Problem(("network", "vpc"), f"{wanted} is of account {vpc.owner}, {SHARED_VPC}")
    for index, apart in enumerate(file.network.connected):
        for cidr in vpc.cidrs:
            if IPv4Network(apart).overlaps(IPv4Network(cidr)):
                text = f"{apart} overlaps {cidr} of {wanted}: no route can tell them apart"
                yield Problem(("network", "connected", index), text)
    for named in file.named_subnets:
        yield from _subnet(named, wanted, file, account)


def _subnet(named: NamedSubnet, vpc_id: str, file: ClusterFile, account: Account) -> Found:
    place, zone, subnet_id = named.place, named.zone, named.subnet_id
    subnet = account.subnet(subnet_id)
    if subnet is None:
        yield Problem(place, f"{subnet_id} is not there")
        return
    if subnet.vpc_id != vpc_id:
        yield Problem(place, f"{subnet_id} is in {subnet.vpc_id}, not in {vpc_id}")
    if subnet.zone != zone:
        yield Problem(place, f"{subnet_id} is in {subnet.zone}")
    if not subnet.free_addresses and not _others_have_room(named, file, account):
        yield Problem(place, f"{subnet_id} has no free address left")


def _others_have_room(named: NamedSubnet, file: ClusterFile, account: Account) -> bool:
    """Nodes of a pool go into the next of its subnets in the zone when this one is full."""
    section, pool, *_ = named.place
    others = file.pool_subnets[str(pool)][named.zone] if section == "pools" else ()
    found = (account.subnet(each) for each in others if each != named.subnet_id)
    return any(each and each.free_addresses for each in found)


def _ways_out(file: ClusterFile, account: Account) -> Found:
    """Machines in existing subnets reach what is outside them."""
    if file.network.vpc is None:
        yield Needless("the stack makes subnets of its own, with the way out that the file says")
    yield from ways_out.problems(file, account)


def _internet(file: ClusterFile, account: Account) -> Found:
    """Nothing blocks the way out to the internet."""
    yield from ways_out.blocked(file, account)


def _sessions(file: ClusterFile, account: Account) -> Found:
    """Shells by Session Manager begin, as the account wants them."""
    for place, text in sessions.doubts(file, account):
        yield Note(Problem(place, text))


def _endpoints(file: ClusterFile, account: Account) -> Found:
    """Endpoints are to be had in the head's zone, and an existing VPC has none of them."""
    if not (file.network.endpoints or file.network.instance_connect):
        yield Needless("the file names none")
    yield from ways_out.endpoint_problems(file, account)
    yield from ways_out.second_endpoints(file, account)


def _existing_parts(file: ClusterFile, account: Account) -> Found:
    """Head, file system and secret that exist are there, in the network of the file."""
    if file.existing == ExistingModel():
        yield Needless("the file names none")
    existing, vpc_id = file.existing, file.network.vpc
    in_vpc: list[tuple[Place, str, str | None]] = []
    if head := existing.head:
        place: Place = ("existing", "head")
        found = account.vpc_of_instance(head.instance)
        in_vpc.append(((*place, "instance"), head.instance, found))
        group = head.security_group
        in_vpc.append(((*place, "security_group"), group, account.vpc_of_security_group(group)))
    if group_id := existing.file_security_group:
        found = account.vpc_of_security_group(group_id)
        in_vpc.append((("existing", "file_security_group"), group_id, found))
    for place, name, found in in_vpc:
        if found is None:
            yield Problem(place, f"{name} is not there")
        elif found != vpc_id:
            yield Problem(place, f"{name} is in {found}, not in {vpc_id}")
    if existing.file_system:
        yield from mount_targets.problems(existing.file_system, file, account)
    if existing.munge_secret and not account.has_secret(existing.munge_secret):
        yield Problem(("existing", "munge_secret"), f"{existing.munge_secret} is not there")


def _policies(file: ClusterFile, account: Account) -> Found:
    """The IAM policies that the file names can be attached to roles."""
    if not any(own_parts.policies(file)):
        yield Needless("the file names none")
    yield from own_parts.policy_problems(file, account)


def _linked_buckets(file: ClusterFile, account: Account) -> Found:
    """The buckets behind Lustre are there, those that it imports from in the cluster's region."""
    if not (file.lustre and file.lustre.data_repositories):
        yield Needless("the file names none")
    yield from own_parts.bucket_problems(file, account)


def _alarms(file: ClusterFile, account: Account) -> Found:
    """The alarms that roll-outs heed are there."""
    if not file.rollout.alarms:
        yield Needless("the file names none")
    for index, each in enumerate(account.alarms(file.rollout.alarms)):
        place: Place = ("rollout", "alarms", index)
        if each.state is None:
            text = f"there is no alarm {each.name}, so a roll-out would wait for it"
            hidden = "a composite one is shown to who may use cloudwatch:DescribeAlarms on *"
            yield Problem(place, f"{text}; {hidden}")
        elif each.state is AlarmState.ALARM:
            text = f"{each.name} is in ALARM: a roll-out waits until it is over"
            yield Note(Problem(place, text))


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


CHECKS: tuple[Check, ...] = (
    *(_offerings, _quotas, _addresses, _spot_role, _images, _disk_key, _own_network),
    *(_existing_network, _ways_out, _internet, _endpoints, _existing_parts),
    *(_policies, _linked_buckets, _alarms, _sessions),
)
