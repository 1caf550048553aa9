"""Security groups: egress rules as CloudFormation adds them, and the words that EC2 takes."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.security_groups import SecurityGroup, SecurityGroupIngress

from local.shims.resource import Resource, register

EVERYWHERE = "0.0.0.0/0"

# Source: EC2 API reference, CreateSecurityGroup and IpRange; its refusal's words are those of
# aws-cloudformation/cfn-lint#173 and #1471.
DESCRIPTION = re.compile(r"[A-Za-z0-9. _\-:/()#,@\[\]+=&;{}!$*]{0,255}")
TAKEN = "a-zA-Z0-9. _-:/()#,@[]+=&;{}!$*"


class SecurityGroupEgress(Resource):
    """A rule of a group, beside the group's own resource.

    Whichever it is, the rule that lets everything out, and that each new group has, is taken away
    first: one of the template's own must therefore be added after all others. Sources: aws-cdk,
    issues 987 and 3355; ParallelCluster adds it with DependsOn.
    """

    type = "AWS::EC2::SecurityGroupEgress"

    _group: Any = None
    _added: Sequence[Any] = ()

    def put(self, properties: dict[str, Any]) -> None:
        judge_description("rule", properties.get("Description"))
        self.remove()
        ec2 = self.place.backend("ec2")
        group = ec2.get_security_group_from_id(properties["GroupId"])
        assert group, f"no security group {properties['GroupId']}"
        group.egress_rules = [each for each in group.egress_rules if not lets_all_out(each)]
        peer = properties.get("DestinationSecurityGroupId")
        cidr = properties.get("CidrIp")
        assert (peer is None) != (cidr is None), "one of a group and a range of addresses"
        self._added, _ = ec2.authorize_security_group_egress(
            group_name_or_id=group.id,
            ip_protocol=properties["IpProtocol"],
            from_port=properties.get("FromPort"),
            to_port=properties.get("ToPort"),
            ip_ranges=[{"CidrIp": cidr}] if cidr else [],
            source_groups=[{"GroupId": peer}] if peer else [],
        )
        self._group = group
        self.physical_id = f"{group.id}|{self.name}"

    def remove(self) -> None:
        """Without any rule a group lets nothing out: the default one does not come back."""
        gone = {each.id for each in self._added}
        if gone:
            left = [each for each in self._group.egress_rules if each.id not in gone]
            self._group.egress_rules = left


def lets_all_out(rule: Any) -> bool:
    addresses = (rule.ip_range or {}).get("CidrIp")
    return rule.ip_protocol == "-1" and addresses == EVERYWHERE


def judge_description(of: str, said: str | None) -> None:
    """Errors: EC2ClientError, in EC2's words; moto takes any."""
    if not DESCRIPTION.fullmatch(said or ""):
        words = "Valid descriptions are strings less than 256 characters from the following set"
        raise EC2ClientError(
            "InvalidParameterValue", f"Invalid {of} description. {words}:  {TAKEN}"
        )


def _made(create: Callable[..., Any], of: str, name: str) -> Callable[..., Any]:
    """moto's own, once EC2 would take the words."""

    def judged(name_: str, cloudformation_json: Mapping[str, Any], *rest: Any, **more: Any) -> Any:
        judge_description(of, cloudformation_json["Properties"].get(name))
        return create(name_, cloudformation_json, *rest, **more)

    return judged


def install() -> None:
    register((SecurityGroupEgress,))
    group: Any = SecurityGroup
    ingress: Any = SecurityGroupIngress
    for kind, of, name in (
        (group, "security group", "GroupDescription"),
        (ingress, "rule", "Description"),
    ):
        create = kind.create_from_cloudformation_json
        kind.create_from_cloudformation_json = staticmethod(_made(create, of, name))
