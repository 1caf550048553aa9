"""What IAM checks before EC2 launches an instance, by RunInstances or by a fleet.

Sources: Service Authorization Reference, "Amazon EC2", RunInstances, CreateFleet and
CreateTags; EC2 user guide, "EC2 Fleet prerequisites"; Karpenter's controller policy, which
runs such fleets with conditions. Of what a launch touches, each action is asked for the types
that the reference lists for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends
from moto.ssm.models import ssm_backends

from local.iam import kms_rules
from local.iam.reference import is_asked
from local.iam.requests import Call, Check

# These exist only once the launch has succeeded, so that policies name them by type alone.
NEW_TYPES = ("instance", "network-interface", "volume")
RESOLVE = "resolve:ssm:"

type Data = Mapping[str, Any]
type Tags = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Launch:
    """One way to launch: the request's own data over those of its launch template.

    `tags`: resource type -> tags that its new resources get.
    """

    call: Call
    template_id: str
    data: Data
    tags: Tags
    is_spot: bool

    def checks(self, action: str, *, is_launch: bool) -> Iterator[Check]:
        """`action`, ec2:RunInstances or ec2:CreateFleet, on everything that it touches."""
        for resource in self._existing():
            context = self._context() | tags_context(self.call, resource)
            if is_asked(action, self._arn(resource)):
                yield Check(action, self._arn(resource), context, is_launch)
        for kind in self._new_types():
            if not is_asked(action, self._arn(f"{kind}/*")):
                continue
            context = self._context() | request_tags(self.tags.get(kind, {}))
            if kind == "instance":
                context |= self._instance_context()
            yield Check(action, self._arn(f"{kind}/*"), context, is_launch)

    def consequences(self) -> Iterator[Check]:
        """The rights that a launch needs beside ec2:RunInstances."""
        for kind, tags in self.tags.items():
            if kind != "fleet":
                yield tagging(self.call, kind, tags, "RunInstances", is_launch=True)
        if role := self._role_arn():
            context = {"iam:PassedToService": "ec2.amazonaws.com"}
            yield Check("iam:PassRole", role, context, is_launch=True)
        if parameter := self._image_parameter():
            owner = "" if parameter.startswith("/aws/") else None
            path = f"parameter/{parameter.removeprefix('/')}"
            arn = self.call.arn(path, service="ssm", account=owner)
            yield Check("ssm:GetParameters", arn, is_launch=True)
        for mapping in self.data.get("BlockDeviceMappings") or ():
            if key_arn := (mapping.get("Ebs") or {}).get("KmsKeyId"):
                yield from kms_rules.of_new_volume(self.call, key_arn)

    def _existing(self) -> Iterator[str]:
        """What the launch uses, as "type/id", or as the ARN of what another service has."""
        yield f"image/{self._image_id()}"
        yield f"subnet/{self._network('SubnetId') or '*'}"
        for group in self._security_groups():
            yield f"security-group/{group}"
        if self.template_id:
            yield f"launch-template/{self.template_id}"
        if key := self.data.get("KeyName"):
            yield f"key-pair/{key}"
        if reservation := self._target("CapacityReservationId"):
            yield f"capacity-reservation/{reservation}"
        if group := self._target("CapacityReservationResourceGroupArn"):
            yield group
            yield "capacity-reservation/*"
        if placement := (self.data.get("Placement") or {}).get("GroupName"):
            yield f"placement-group/{placement}"
        for mapping in self.data.get("BlockDeviceMappings") or ():
            if snapshot := (mapping.get("Ebs") or {}).get("SnapshotId"):
                yield f"snapshot/{snapshot}"

    def _new_types(self) -> Sequence[str]:
        return (*NEW_TYPES, "spot-instances-request") if self.is_spot else NEW_TYPES

    def _arn(self, resource: str) -> str:
        """Images and snapshots are named without an account."""
        if resource.startswith("arn:"):
            return resource
        shared = resource.startswith(("image/", "snapshot/"))
        return self.call.arn(resource, account="" if shared else None)

    def _context(self) -> dict[str, str]:
        if not self.template_id:
            return {"ec2:Region": self.call.region}
        return {
            "ec2:Region": self.call.region,
            "ec2:LaunchTemplate": self.call.arn(f"launch-template/{self.template_id}"),
            "ec2:IsLaunchTemplateResource": "true",
        }

    def _instance_context(self) -> dict[str, str]:
        context = {"ec2:InstanceMarketType": "spot" if self.is_spot else "on-demand"}
        if instance_type := self.data.get("InstanceType"):
            context["ec2:InstanceType"] = instance_type
        if profile := self._profile():
            context["ec2:InstanceProfile"] = profile.arn
        return context

    def _network(self, name: str) -> Any:
        interfaces = self.data.get("NetworkInterfaces") or [{}]
        return self.data.get(name) or interfaces[0].get(name)

    def _security_groups(self) -> Sequence[str]:
        groups: Sequence[str] = self._network("Groups") or self._network("SecurityGroupIds") or ()
        # Without any it is the default group of the VPC.
        return groups or ("*",)

    def _target(self, name: str) -> str:
        wanted = self.data.get("CapacityReservationSpecification") or {}
        target = wanted.get("CapacityReservationTarget") or {}
        return str(target.get(name) or "")

    def _image_parameter(self) -> str:
        """The name of the parameter that holds the image's id, without version or label."""
        image = str(self.data.get("ImageId") or "")
        return image.removeprefix(RESOLVE).split(":")[0] if image.startswith(RESOLVE) else ""

    def _image_id(self) -> str:
        name = self._image_parameter()
        if not name:
            return str(self.data.get("ImageId") or "*")
        backend = ssm_backends[self.call.account][self.call.region]
        found: Any = backend.get_parameter(name)
        return found.value if found else "*"

    def _profile(self) -> Any:
        wanted = self.data.get("IamInstanceProfile") or {}
        profiles = iam_backends[self.call.account]["aws"].get_instance_profiles()
        return next(
            (
                one
                for one in profiles
                if wanted.get("Arn") == one.arn or wanted.get("Name") == one.name
            ),
            None,
        )

    def _role_arn(self) -> str:
        profile = self._profile()
        return profile.roles[0].arn if profile and profile.roles else ""


def fleet_launches(call: Call) -> Iterator[Launch]:
    """Every override of a CreateFleet call over its launch template."""
    market = call.params["TargetCapacitySpecification"].get("DefaultTargetCapacityType")
    tags = _tags(call.params.get("TagSpecifications"))
    for config in call.params["LaunchTemplateConfigs"]:
        template_id, data = _template(call, config.get("LaunchTemplateSpecification") or {})
        for override in config.get("Overrides") or [{}]:
            merged = {**data, **override}
            yield Launch(call, template_id, merged, _merged(tags, data), market == "spot")


def run_launch(call: Call) -> Launch:
    """The one way of a RunInstances call."""
    template_id, data = _template(call, call.params.get("LaunchTemplate") or {})
    merged = {**data, **call.params}
    market = (merged.get("InstanceMarketOptions") or {}).get("MarketType")
    tags = _merged(_tags(call.params.get("TagSpecifications")), data)
    return Launch(call, template_id, merged, tags, market == "spot")


def request_tags(tags: Mapping[str, str]) -> dict[str, Any]:
    """The context of a request that sets tags; none at all without any."""
    keys = {"aws:TagKeys": tuple(tags)} if tags else {}
    return {**{f"aws:RequestTag/{key}": value for key, value in tags.items()}, **keys}


def tags_context(call: Call, resource: str) -> dict[str, Any]:
    """The tags that "type/id" has now, as both keys that EC2 gives them."""
    # `get`, since moto's own dict makes an entry of each id that is looked up.
    backend = ec2_backends[call.account][call.region]
    tags = dict(backend.tags.get(resource.split("/", 1)[-1]) or {})
    return {
        f"{prefix}:ResourceTag/{key}": value
        for prefix in ("aws", "ec2")
        for key, value in tags.items()
    }


def tagging(
    call: Call, kind: str, tags: Mapping[str, str], creating: str, *, is_launch: bool = False
) -> Check:
    """ec2:CreateTags on resources that the action `creating` makes."""
    context = {"ec2:CreateAction": creating, "ec2:Region": call.region, **request_tags(tags)}
    return Check("ec2:CreateTags", call.arn(f"{kind}/*"), context, is_launch)


def _template(call: Call, wanted: Data) -> tuple[str, Data]:
    """Id and data of the launch template that a request names; "" and nothing for none.

    Raises what moto answers with when there is no such template or version.
    """
    if not wanted:
        return "", {}
    backend = ec2_backends[call.account][call.region]
    if template_id := wanted.get("LaunchTemplateId"):
        template = backend.get_launch_template(template_id)
    else:
        template = backend.get_launch_template_by_name(wanted["LaunchTemplateName"])
    version = template.get_version(wanted.get("Version") or "$Default")
    return template.id, version.data


def _tags(specifications: Sequence[Data] | None) -> dict[str, dict[str, str]]:
    return {
        one["ResourceType"]: {tag["Key"]: tag["Value"] for tag in one.get("Tags") or ()}
        for one in specifications or ()
    }


def _merged(tags: Tags, template: Data) -> Tags:
    """The request's tags over those of the launch template."""
    own = _tags(template.get("TagSpecifications"))
    return {kind: {**own.get(kind, {}), **tags.get(kind, {})} for kind in {**own, **tags}}
