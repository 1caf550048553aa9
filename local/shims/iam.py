"""IAM: moto's own roles forget managed policies and keep their first words on every update, and its
managed policies outlive their stack.
"""

import json
from typing import Any

from local.iam.managed import install_managed_policies
from local.shims.resource import Resource, register


class Role(Resource):
    type = "AWS::IAM::Role"
    name_property = "RoleName"
    inline: frozenset[str] = frozenset()
    managed: frozenset[str] = frozenset()

    def put(self, properties: dict[str, Any]) -> None:
        """Trust, managed and inline policies; those of AWS::IAM::Policy resources stay."""
        iam = self.place.backend("iam")
        if "Arn" not in self.attributes:
            self._create(iam, properties)
        role = iam.get_role(self.name)
        role.assume_role_policy_document = _text(properties["AssumeRolePolicyDocument"])
        role.max_session_duration = properties.get("MaxSessionDuration", 3600)
        wanted = frozenset(properties.get("ManagedPolicyArns", []))
        for arn in self.managed - wanted:
            iam.detach_role_policy(arn, self.name)
        for arn in wanted - self.managed:
            iam.attach_role_policy(arn, self.name)
        self.managed = wanted
        self._put_inline(role, properties)

    def remove(self) -> None:
        iam = self.place.backend("iam")
        role = iam.get_role(self.name)
        role.policies.clear()
        role.managed_policies.clear()
        for profile in role.instance_profile_list:
            iam.remove_role_from_instance_profile(profile.name, self.name)
        iam.delete_role(self.name)

    def _create(self, iam: Any, properties: dict[str, Any]) -> None:
        role = iam.create_role(
            role_name=self.name,
            assume_role_policy_document=_text(properties["AssumeRolePolicyDocument"]),
            path=properties.get("Path", "/"),
            permissions_boundary=properties.get("PermissionsBoundary", ""),
            description=properties.get("Description", ""),
            tags=properties.get("Tags", []),
            max_session_duration=properties.get("MaxSessionDuration", 3600),
        )
        self.attributes |= {"Arn": role.arn, "RoleId": role.id}

    def _put_inline(self, role: Any, properties: dict[str, Any]) -> None:
        inline = {each["PolicyName"]: each for each in properties.get("Policies", [])}
        for gone in self.inline - set(inline):
            role.policies.pop(gone, None)
        for name, policy in inline.items():
            role.policies[name] = json.dumps(policy["PolicyDocument"])
        self.inline = frozenset(inline)


class ManagedPolicy(Resource):
    type = "AWS::IAM::ManagedPolicy"
    name_property = "ManagedPolicyName"

    def put(self, properties: dict[str, Any]) -> None:
        """The policy, or its newest version; Ref gives its ARN."""
        iam, text = self.place.backend("iam"), _text(properties["PolicyDocument"])
        if "PolicyArn" in self.attributes:
            iam.create_policy_version(self.physical_id, text, True)
            return
        made = iam.create_policy(
            description=properties.get("Description", ""),
            path=properties.get("Path", "/"),
            policy_document=text,
            policy_name=self.name,
            tags=properties.get("Tags", []),
        )
        self.physical_id = made.arn
        self.attributes["PolicyArn"] = made.arn

    def remove(self) -> None:
        self.place.backend("iam").delete_policy(self.physical_id)


def _text(document: Any) -> str:
    return document if isinstance(document, str) else json.dumps(document)


def install() -> None:
    install_managed_policies()
    register((Role, ManagedPolicy))
