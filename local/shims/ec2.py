"""EC2's resource types, mended: instances keep what they are asked for, route tables can go."""

from functools import cache
from typing import Any

from moto.ec2.exceptions import OperationNotPermitted4
from moto.ec2.models.elastic_block_store import VolumeAttachment
from moto.ec2.models.instances import Instance, InstanceBackend, MetadataOptions
from moto.ec2.models.route_tables import RouteTable
from moto.ec2.models.security_groups import SecurityGroupIngress
from moto.ec2.utils import parse_user_data
from moto.efs.models import AccessPoint

from local.shims.engine import Replaced
from local.shims.resource import Place, Resource, register
from local.shims.volumes import Stuck, attach_all

# Source: CloudFormation reference, AWS::EC2::Instance: updates of these replace the instance.
REPLACING = ("ImageId", "SubnetId", "AvailabilityZone", "LaunchTemplate", "PrivateIpAddress")


def _create(name: str, json_: dict[str, Any], account: str, region: str, **_: Any) -> Instance:
    properties = json_["Properties"]
    ec2 = Place(account, region).backend("ec2")
    asked: dict[str, Any] = {
        "subnet_id": properties.get("SubnetId"),
        "placement": properties.get("AvailabilityZone"),
        "private_ip": properties.get("PrivateIpAddress"),
        "key_name": properties.get("KeyName"),
        "security_group_ids": list(properties.get("SecurityGroupIds", [])),
        "instance_type": properties.get("InstanceType"),
        "is_instance_type_default": not properties.get("InstanceType"),
        "launch_template": _launch_template(properties),
        "disable_api_termination": properties.get("DisableApiTermination", False),
        "nics": [_with_numbers(nic) for nic in properties.get("NetworkInterfaces", [])],
        "region_name": region,
    }
    if "BlockDeviceMappings" in properties:
        asked["block_device_mappings"] = properties["BlockDeviceMappings"]
    reservation = ec2.run_instances(
        properties.get("ImageId") or _image_of_template(properties, Place(account, region)),
        1,
        parse_user_data(properties.get("UserData")),
        properties.get("SecurityGroups", []),
        **{key: value for key, value in asked.items() if value},
        **({} if asked["is_instance_type_default"] else {"is_instance_type_default": False}),
    )
    instance: Instance = reservation.instances[0]
    _note(instance, properties, ec2)
    attach_all(instance, properties.get("Volumes", []))
    return instance


def _launch_template(properties: dict[str, Any]) -> dict[str, Any]:
    return dict(properties.get("LaunchTemplate", {}))


def _image_of_template(properties: dict[str, Any], place: Place) -> str:
    """Source: EC2 user guide: `resolve:ssm:NAME` is looked up when an instance is launched."""
    wanted = _launch_template(properties)
    if not wanted:
        return ""
    template = place.backend("ec2").get_launch_template(wanted["LaunchTemplateId"])
    image = template.get_version(wanted["Version"]).data.get("ImageId", "")
    _, is_looked_up, parameter = image.partition("resolve:ssm:")
    if not is_looked_up:
        return str(image)
    return str(place.backend("ssm").get_parameter(parameter).value)


def _with_numbers(nic: dict[str, Any]) -> dict[str, Any]:
    return {**nic, "DeviceIndex": int(nic.get("DeviceIndex", 0))}


def _note(instance: Any, properties: dict[str, Any], ec2: Any) -> None:
    """Tags, profile and metadata options, and what the next update is compared with."""
    instance.add_tags({tag["Key"]: tag["Value"] for tag in properties.get("Tags", [])})
    _set_profile(ec2, instance.id, properties.get("IamInstanceProfile"))
    if options := properties.get("MetadataOptions"):
        instance.metadata_options = MetadataOptions(options)
    instance.asked_properties = properties


def _set_profile(ec2: Any, instance_id: str, profile: str | None) -> None:
    associations = ec2.iam_instance_profile_associations
    if not profile:
        return
    associations.pop(instance_id, None)
    ec2.associate_iam_instance_profile(instance_id=instance_id, iam_instance_profile_name=profile)


def _update(original_resource: Any, new_resource_name: str, **given: Any) -> Any:
    """User data, type, profile and tags change in place; new user data runs at no boot again."""
    properties = given["cloudformation_json"]["Properties"]
    before = original_resource.asked_properties
    place = Place(given["account_id"], given["region_name"])
    if any(properties.get(key) != before.get(key) for key in REPLACING):
        raise Replaced
    # What a template leaves out keeps its value, whatever its default is
    # (aws-cloudformation/cloudformation-coverage-roadmap#2527).
    if "DisableApiTermination" in properties:
        original_resource.disable_api_termination = properties["DisableApiTermination"]
    original_resource.user_data = parse_user_data(properties.get("UserData"))
    original_resource.instance_type = properties.get(
        "InstanceType", original_resource.instance_type
    )
    _note(original_resource, properties, place.backend("ec2"))
    attach_all(original_resource, properties.get("Volumes", []))
    return original_resource


@cache
def _install_run() -> None:
    """As before; with the instance profile and metadata options of the launch template.

    Once, and around what stands there by then: EC2's own rules (`local.capacity`) may.
    """
    backend: Any = InstanceBackend
    before = backend.run_instances

    def run_instances(self: Any, *args: Any, **kwargs: Any) -> Any:
        reservation = before(self, *args, **kwargs)
        if kwargs.get("launch_template"):
            _follow_template(self, reservation, kwargs["launch_template"])
        return reservation

    backend.run_instances = run_instances


def _follow_template(backend: Any, reservation: Any, template: Any) -> None:
    data = backend._get_template_from_args(template).data
    profile = data.get("IamInstanceProfile") or {}
    for instance in reservation.instances:
        if options := data.get("MetadataOptions"):
            instance.metadata_options = MetadataOptions(options)
        if profile and instance.id not in backend.iam_instance_profile_associations:
            backend.associate_iam_instance_profile(
                instance_id=instance.id,
                iam_instance_profile_name=profile.get("Name"),
                iam_instance_profile_arn=profile.get("Arn"),
            )


def _delete(self: Any, account_id: str, region: str) -> None:
    """As TerminateInstances does it, which refuses what is protected; moto's own ends it.

    Source: EC2 user guide, "Change instance termination protection": whichever interface is used.
    """
    try:
        self.ec2_backend.terminate_instances([self.id])
    except OperationNotPermitted4 as refused:
        raise Stuck(message=f"{self.id} may not be terminated") from refused


def _delete_route_table(self: Any, account_id: str, region_name: str) -> None:
    """moto's own never goes, and then its VPC cannot go either."""
    if self.id in self.ec2_backend.route_tables:
        for association in list(self._associations):
            self.ec2_backend.disassociate_route_table(association)
        self.ec2_backend.delete_route_table(self.id)


def _rule_id(rule: Any) -> str:
    return f"{rule.security_group.id}|{rule.logical_resource_id}"


def _attachment_id(attachment: Any) -> str:
    return f"{attachment.volume.id}|{attachment.instance.id}"


def _access_point_id(point: Any) -> str:
    return str(point.access_point_id)


class PlacementGroup(Resource):
    type = "AWS::EC2::PlacementGroup"
    name_property = "GroupName"

    def put(self, properties: dict[str, Any]) -> None:
        self.attributes["GroupName"] = self.name


def install() -> None:
    instance: Any = Instance
    table: Any = RouteTable
    instance.create_from_cloudformation_json = staticmethod(_create)
    instance.update_from_cloudformation_json = staticmethod(_update)
    instance.delete = _delete
    _install_run()
    table.delete = _delete_route_table
    # moto gives these no id at all, which is what a resource looks like that was never made.
    ids: tuple[tuple[Any, Any], ...] = (
        (SecurityGroupIngress, _rule_id),
        (VolumeAttachment, _attachment_id),
        (AccessPoint, _access_point_id),
    )
    for model, physical_id in ids:
        model.physical_resource_id = property(physical_id)
    register((PlacementGroup,))
