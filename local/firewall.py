"""Security groups between the machines of a world: nftables rules on its bridge, from EC2's own.

Like EC2 it drops what no rule lets through, so that whoever connects waits in vain. Of a connection
over TCP the first packet is judged; of other protocols each packet, answers too, which is stricter
than EC2 (the kernel may lack connection tracking on bridges).

Source: VPC user guide, "Control traffic to your AWS resources using security groups": groups do not
filter the metadata service and Amazon's DNS, and a default group lets its own members in.
"""

import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any

from moto.ec2.models import ec2_backends
from moto.efs.models import efs_backends

from local.imds import ADDRESS as METADATA_ADDRESS

EVERYWHERE = "0.0.0.0/0"
ANY_PROTOCOL = "-1"
HTTPS_PORT = 443
TABLE = "security_groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a group lets through. `ports`: first and last; None: all.

    `peer`: a group's id, or a range of addresses.
    """

    protocol: str
    peer: str
    ports: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A security group; what neither lets through is dropped."""

    id: str
    inbound: tuple[Rule, ...] = ()
    outbound: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Who is in groups. `address`: in the world; `private_address`: what EC2 says that it has."""

    address: str
    private_address: str
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class Outside:
    """The world's own services: `address` has names and, at `aws_port`, all of AWS's APIs.

    A machine that asks there asks port 443 of a public address.
    """

    address: str
    aws_port: int


def groups_in_cloud() -> tuple[Group, ...]:
    """All security groups of the local EC2, with their rules as they are now."""
    return tuple(
        Group(
            id=group.id,
            inbound=(*_rules(group.ingress_rules), *_of_default(group)),
            outbound=tuple(_rules(group.egress_rules)),
        )
        for backend in _backends(ec2_backends)
        for of_vpc in list(backend.groups.values())
        for group in list(of_vpc.values())
    )


def groups_of_files() -> frozenset[str]:
    """The groups of all of EFS's mount targets; one without any is in its VPC's default group."""
    return frozenset(
        group
        for backend in _backends(efs_backends)
        for target in list(backend.mount_targets_by_id.values())
        for group in target.security_groups or ()
    )


class Firewall:
    """Holds a world's bridge to security groups.

    A machine that is no member is no instance: nothing between it and others is filtered.
    """

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._loaded = ""

    def update(self, groups: Sequence[Group], members: Sequence[Member]) -> None:
        """From here on these hold; in one step, so that nothing slips through between."""
        text = ruleset(groups, members, self._outside)
        if text != self._loaded:
            subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)
            self._loaded = text


def ruleset(groups: Sequence[Group], members: Sequence[Member], outside: Outside) -> str:
    """The table for nft, which replaces what was loaded before."""
    hooks = "\n".join(
        f"chain {hook} {{ type filter hook {hook} priority filter; policy accept\n"
        "tcp flags & (syn | ack) == syn jump judged\n"
        "ether type ip ip protocol != tcp jump judged\n}"
        for hook in ("forward", "input", "output")
    )
    return f"""\
table bridge {TABLE}
delete table bridge {TABLE}
table bridge {TABLE} {{
{_set("members", [each.address for each in members])}
{"\n".join(_set(_name(each), _addresses_in(each, members)) for each in _named(groups))}
chain outbound {{
{"\n".join(_outbound(groups, members, outside))}
drop
}}
chain inbound {{
{"\n".join(_inbound(groups, members))}
drop
}}
chain judged {{
ip daddr {METADATA_ADDRESS} return
ip saddr {METADATA_ADDRESS} return
ip daddr {outside.address} udp dport 53 return
ip daddr {outside.address} tcp dport 53 return
ip saddr {outside.address} udp sport 53 return
ip saddr @members ip daddr @members jump outbound
ip saddr @members ip daddr {outside.address} jump outbound
ip saddr @members ip daddr @members jump inbound
}}
{hooks}
}}
"""


def _outbound(
    groups: Sequence[Group], members: Sequence[Member], outside: Outside
) -> Iterator[str]:
    for group in groups:
        source = f"ip saddr @{_name(group.id)}"
        for rule in group.outbound:
            yield f"{source} {_peer('daddr', rule, members)} {_what(rule)} return"
            if _lets_https_out(rule):
                yield f"{source} ip daddr {outside.address} tcp dport {outside.aws_port} return"


def _inbound(groups: Sequence[Group], members: Sequence[Member]) -> Iterator[str]:
    for group in groups:
        for rule in group.inbound:
            peer = _peer("saddr", rule, members)
            yield f"ip daddr @{_name(group.id)} {peer} {_what(rule)} return"


def _lets_https_out(rule: Rule) -> bool:
    if rule.peer != EVERYWHERE or rule.protocol != "tcp":
        return False
    return rule.ports is None or rule.ports[0] <= HTTPS_PORT <= rule.ports[1]


def _peer(side: str, rule: Rule, members: Sequence[Member]) -> str:
    """A rule's range of addresses means those that EC2 gave, which are others in the world."""
    if _is_group(rule.peer):
        return f"ip {side} @{_name(rule.peer)}"
    if rule.peer == EVERYWHERE:
        return ""
    network = ip_network(rule.peer)
    inside = [
        each.address
        for each in members
        if each.private_address and ip_address(each.private_address) in network
    ]
    return f"ip {side} {{ {', '.join([rule.peer, *inside])} }}"


def _what(rule: Rule) -> str:
    if rule.protocol == ANY_PROTOCOL:
        return ""
    if rule.ports is None or rule.protocol not in ("tcp", "udp"):
        return f"ip protocol {rule.protocol}"
    return f"{rule.protocol} dport {rule.ports[0]}-{rule.ports[1]}"


def _set(name: str, addresses: Sequence[str]) -> str:
    elements = f"elements = {{ {', '.join(addresses)} }}\n" if addresses else ""
    return f"set {name} {{ type ipv4_addr\n{elements}}}"


def _addresses_in(group_id: str, members: Iterable[Member]) -> list[str]:
    return [each.address for each in members if group_id in each.groups]


def _named(groups: Sequence[Group]) -> list[str]:
    """The ids of groups and of those whom their rules name, which may be another account's."""
    peers = {rule.peer for each in groups for rule in (*each.inbound, *each.outbound)}
    return sorted({each.id for each in groups} | {each for each in peers if _is_group(each)})


def _is_group(peer: str) -> bool:
    return peer.startswith("sg-")


def _name(group_id: str) -> str:
    return group_id.replace("-", "_")


def _backends(of_service: Mapping[str, Any]) -> list[Any]:
    """Of all accounts and regions. `list`: other threads add meanwhile."""
    return [each for account in list(of_service.values()) for each in list(account.values())]


def _rules(rules: Iterable[Any]) -> Iterator[Rule]:
    for each in list(rules):
        group = (each.source_group or {}).get("GroupId")
        peer = group or (each.ip_range or {}).get("CidrIp")
        if peer:
            ports = None if each.from_port is None else (int(each.from_port), int(each.to_port))
            yield Rule(protocol=str(each.ip_protocol), peer=str(peer), ports=ports)


def _of_default(group: Any) -> tuple[Rule, ...]:
    return (Rule(protocol=ANY_PROTOCOL, peer=group.id),) if group.name == "default" else ()
