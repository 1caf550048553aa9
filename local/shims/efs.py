"""EFS's resource types, mended: moto does not tell a file system's ARN."""

from typing import Any

from moto.efs.models import FileSystem


def _has_cfn_attr(attribute: str) -> bool:
    return attribute in ("Arn", "FileSystemId")


def _get_cfn_attribute(file_system: Any, attribute: str) -> str:
    found = {"Arn": file_system.file_system_arn, "FileSystemId": file_system.file_system_id}
    return str(found[attribute])


def install() -> None:
    mended: Any = FileSystem
    mended.has_cfn_attr = staticmethod(_has_cfn_attr)
    mended.get_cfn_attribute = _get_cfn_attribute
