"""EFS's resource types, mended: a file system's ARN, and updates of mount targets."""

from typing import Any

from moto.efs.models import FileSystem, MountTarget

from local.shims.engine import Replaced
from local.shims.resource import Place


def _has_cfn_attr(attribute: str) -> bool:
    return attribute in ("Arn", "FileSystemId")


def _get_cfn_attribute(file_system: Any, attribute: str) -> str:
    found = {"Arn": file_system.file_system_arn, "FileSystemId": file_system.file_system_id}
    return str(found[attribute])


def _update_target(original_resource: Any, new_resource_name: str, **given: Any) -> Any:
    """Source: CloudFormation reference, AWS::EFS::MountTarget: groups alone change in place."""
    properties = given["cloudformation_json"]["Properties"]
    was = (original_resource.file_system_id, original_resource.subnet_id)
    if was != (properties["FileSystemId"], properties["SubnetId"]):
        raise Replaced
    Place(given["account_id"], given["region_name"]).backend(
        "efs"
    ).modify_mount_target_security_groups(
        original_resource.mount_target_id, properties.get("SecurityGroups", [])
    )
    return original_resource


def install() -> None:
    target: Any = MountTarget
    target.update_from_cloudformation_json = staticmethod(_update_target)
    mended: Any = FileSystem
    mended.has_cfn_attr = staticmethod(_has_cfn_attr)
    mended.get_cfn_attribute = _get_cfn_attribute
