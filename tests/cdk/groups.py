"""What the security groups of a template let through, once CloudFormation has made them.

Source: CloudFormation reference, AWS::EC2::SecurityGroup and AWS::EC2::SecurityGroupEgress; the
reports aws-cdk 987 and 3355: a group gets a rule that lets everything out, which goes as soon as
a separate egress rule is added to the group. ParallelCluster therefore adds that rule itself,
after the others.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.cdk.made import Stack, joined

EVERYWHERE = "0.0.0.0/0"
ALL = "-1"


@dataclass(frozen=True, slots=True)
class Rule:
    """`peer`: another group, or a range of addresses. `protocol` -1: all of them."""

    group: str
    peer: str
    protocol: str
    first_port: int = 0
    last_port: int = 65535

    @property
    def lets_everything_out(self) -> bool:
        return (self.peer, self.protocol) == (EVERYWHERE, ALL)

    def covers(self, peer: str, protocol: str, port: int) -> bool:
        return (
            self.peer in (peer, EVERYWHERE)
            and self.protocol in (ALL, protocol)
            and (self.protocol == ALL or self.first_port <= port <= self.last_port)
        )


@dataclass(frozen=True, slots=True)
class Groups:
    """`known`: the groups that the template makes."""

    known: frozenset[str]
    inbound: tuple[Rule, ...]
    outbound: tuple[Rule, ...]

    def lets_out(self, group: str, peer: str, protocol: str, port: int) -> bool:
        return any(one.group == group and one.covers(peer, protocol, port) for one in self.outbound)

    def lets_in(self, group: str, peer: str, protocol: str, port: int) -> bool:
        return any(one.group == group and one.covers(peer, protocol, port) for one in self.inbound)


def groups_of(stack: Stack) -> Groups:
    """All groups of a stack, with what is left of the rules that nobody wrote."""
    known = {f"<{name}.GroupId>": each for name, each in stack.resources("AWS::EC2::SecurityGroup")}
    inbound = [_rule(each, "Source") for each in stack.all("AWS::EC2::SecurityGroupIngress")]
    return Groups(
        known=frozenset(known),
        inbound=tuple(inbound),
        outbound=tuple(
            rule for name, each in known.items() for rule in _outbound(stack, name, each)
        ),
    )


def _outbound(stack: Stack, group: str, resource: Mapping[str, Any]) -> Iterator[Rule]:
    assert not {"SecurityGroupEgress", "SecurityGroupIngress"} & resource["Properties"].keys()
    separate = {
        logical_id: rule
        for logical_id, each in stack.resources("AWS::EC2::SecurityGroupEgress")
        if (rule := _rule(each["Properties"], "Destination")).group == group
    }
    if not separate:
        yield Rule(group, EVERYWHERE, ALL)
    for logical_id, rule in separate.items():
        others = separate.keys() - {logical_id}
        if not rule.lets_everything_out or others <= _made_before(stack, logical_id):
            yield rule


def _made_before(stack: Stack, logical_id: str) -> frozenset[str]:
    """What a resource waits for by DependsOn, directly and through others."""
    waits = stack.template["Resources"][logical_id].get("DependsOn", [])
    found = frozenset(waits if isinstance(waits, list) else [waits])
    return found.union(*(_made_before(stack, each) for each in found))


def _rule(properties: Mapping[str, Any], side: str) -> Rule:
    peer = properties.get(f"{side}SecurityGroupId") or properties["CidrIp"]
    ports = [int(properties[each]) for each in ("FromPort", "ToPort") if each in properties]
    return Rule(joined(properties["GroupId"]), joined(peer), properties["IpProtocol"], *ports)
