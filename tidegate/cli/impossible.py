"""What of a deployment CloudFormation would try, fail at and roll back, told before it is begun.

Sources: CloudFormation user guide, "Update behaviors of stack resources" (what is replaced is
created first and deleted in the clean-up) and "Export stack output values" (one that another stack
imports can neither change nor go); EC2 API error codes, VolumeInUse; EFS API reference,
CreateMountTarget (one in a zone, all of a file system in one VPC: MountTargetConflict); EBS user
guide, "Request Amazon EBS volume modifications" (a volume only grows); FSx for Lustre user guide,
"Linking your file system to an Amazon S3 bucket" (folders and places in S3 may not overlap) and FSx
API reference, CreateDataRepositoryAssociation.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from typing import Any

from tidegate.cli.diff import ASSOCIATION, Change, Effect, Template, Told, changes, refers
from tidegate.core.model.frozen import frozen
from tidegate.wire.data_repositories import DATA_REPOSITORIES_MAX
from tidegate.wire.data_repository_rules import overlap

ATTACHMENT = "AWS::EC2::VolumeAttachment"
_MADE = (Effect.ADDED, Effect.REPLACED)


class Code(StrEnum):
    """EC2's, EFS's, FSx's or CloudFormation's reason."""

    VOLUME_TOO_SMALL = "InvalidParameterValue"
    VOLUME_IN_USE = "VolumeInUse"
    EXPORT_IN_USE = "ExportInUse"
    MOUNT_TARGET_CONFLICT = "MountTargetConflict"
    LINKED_ALREADY = "BadRequest"


_END_HEAD = (
    "end the head first: aws ec2 terminate-instances --instance-ids HEAD (output HeadInstanceId), "
    "then deploy; jobs that run go on. Where only the nodes' `image` was to change, `head.image` "
    "keeps the head's"
)
_BUILD_AGAIN = (
    "undo the change in the cluster file, or build the stack again: end nodes and head (aws ec2 "
    "terminate-instances), npx cdk destroy tidegate-{cluster}, npx cdk deploy tidegate-{cluster}"
)
_WAYS: Mapping[Code, str] = {
    Code.VOLUME_TOO_SMALL: "leave `head.volume_gib` as it was, or name more",
    Code.VOLUME_IN_USE: _END_HEAD,
    Code.EXPORT_IN_USE: f"{_BUILD_AGAIN}; what is replaced begins empty, the old one is kept",
    Code.MOUNT_TARGET_CONFLICT: f"{_BUILD_AGAIN}; files and volume stay",
    Code.LINKED_ALREADY: (
        "deploy twice: first without this entry of `lustre.data_repositories`, then with it; files "
        "stay, and what is in those that nobody has read comes from the bucket that is linked then"
    ),
}


@frozen(kw_only=True)
class Refusal:
    """A resource or an export that the deployment would fail at: why, and the way there is."""

    stack: str
    code: Code
    logical_id: str
    kind: str
    cause: str
    way: str

    @property
    def sentence(self) -> str:
        return f"{self.logical_id} ({self.kind}): {self.code}: {self.cause}"

    def told(self) -> Told:
        return Told(
            stack=self.stack,
            effect="refused",
            logical_id=self.logical_id,
            kind=self.kind,
            properties=(),
            is_grave=True,
            sentence=f"{self.sentence}; {self.way}",
            code=self.code,
        )


def refusals(
    before: Mapping[str, Template],
    after: Mapping[str, Template],
    cluster: str,
    has_head: Callable[[], bool],
) -> list[Refusal]:
    """By stack, templates as they are deployed and as they would be.

    `has_head`: whether there is an instance that still holds the data volume; asked only where
    it matters.
    """

    def refusal(stack: str, code: Code, logical_id: str, kind: str, cause: str) -> Refusal:
        way = _WAYS[code].format(cluster=cluster)
        return Refusal(
            stack=stack, code=code, logical_id=logical_id, kind=kind, cause=cause, way=way
        )

    found: list[Refusal] = []
    for stack, template in after.items():
        those = changes(before[stack], template)
        others = [each for name, each in before.items() if name != stack]
        imported = {name for each in others for name in _imports(each)}
        for name in _exports_that_change(before[stack], template, imported, those):
            cause = "another stack uses this export, which can neither change nor go"
            found.append(refusal(stack, Code.EXPORT_IN_USE, name, "Export", cause))
        for change in those:
            if change.effect is Effect.REPLACED and _takes_a_place(change):
                cause = "a file system has one in a zone, all in one VPC, and the old one is there"
                code = Code.MOUNT_TARGET_CONFLICT
                found.append(refusal(stack, code, change.logical_id, change.kind, cause))
            if _shrinks(before[stack], template, change):
                cause = "EC2 makes no volume smaller"
                code = Code.VOLUME_TOO_SMALL
                found.append(refusal(stack, code, change.logical_id, change.kind, cause))
            if _links_again(before[stack], template, change, those):
                cause = "FSx links a place once, eight in all, and old ones go after new ones came"
                code = Code.LINKED_ALREADY
                found.append(refusal(stack, code, change.logical_id, change.kind, cause))
            if _takes_the_volume(before[stack], template, change) and has_head():
                cause = "the volume is attached to the head, which goes only after the new one came"
                code = Code.VOLUME_IN_USE
                found.append(refusal(stack, code, change.logical_id, change.kind, cause))
    return found


def _takes_a_place(change: Change) -> bool:
    """A mount target of the same file system in the same zone."""
    return change.kind == "AWS::EFS::MountTarget" and "FileSystemId" not in change.properties


def _shrinks(before: Template, after: Template, change: Change) -> bool:
    """The same volume, with fewer GiB."""
    if change.kind != "AWS::EC2::Volume" or change.effect is not Effect.CHANGED:
        return False
    old, new = (
        each["Resources"][change.logical_id]["Properties"]["Size"] for each in (before, after)
    )
    return bool(new < old)


def _links_again(
    before: Template, after: Template, change: Change, those: Collection[Change]
) -> bool:
    """A new association that overlaps one which is there, or is one too many, on a file system that
    stays.
    """
    added = [each for each in those if each.kind == ASSOCIATION and each.effect in _MADE]
    if change not in added:
        return False
    new = after["Resources"][change.logical_id]["Properties"]
    if refers(new["FileSystemId"], {each.logical_id for each in those if each.effect in _MADE}):
        return False
    links = [
        each["Properties"]
        for each in before.get("Resources", {}).values()
        if each["Type"] == ASSOCIATION
    ]
    return len(links) + len(added) > DATA_REPOSITORIES_MAX or any(
        overlap(old[place], new[place])
        for old in links
        for place in ("FileSystemPath", "DataRepositoryPath")
    )


def _takes_the_volume(before: Template, after: Template, change: Change) -> bool:
    """A new head, where an old one holds the volume; or the end of an attachment that heads of
    earlier versions had beside them.
    """
    if change.kind == ATTACHMENT:
        return change.effect is Effect.REMOVED
    is_new = change.effect in (Effect.REPLACED, Effect.ADDED)
    return is_new and change.logical_id in _holders(after) and bool(_holders(before))


def _holders(template: Template) -> set[str]:
    """Instances that have volumes which outlive them."""
    resources: Mapping[str, Any] = template.get("Resources", {})
    return {name for name, each in resources.items() if each.get("Properties", {}).get("Volumes")}


def _exports_that_change(
    before: Template, after: Template, imported: Collection[str], those: Collection[Change]
) -> Iterator[str]:
    """Names of exports in use whose value would be another, or that would be gone."""
    replaced = {each.logical_id for each in those if each.effect is Effect.REPLACED}
    wanted = _exports(after)
    for name, value in _exports(before).items():
        if name in imported and (wanted.get(name) != value or refers(value, replaced)):
            yield name


def _exports(template: Template) -> Mapping[str, Any]:
    """Name of each export -> its value."""
    outputs = template.get("Outputs", {}).values()
    return {str(each["Export"]["Name"]): each["Value"] for each in outputs if "Export" in each}


def _imports(value: Any) -> Iterator[str]:
    """Every export that a template names."""
    match value:
        case {"Fn::ImportValue": str(name)}:
            yield name
        case Mapping():
            for each in value.values():
                yield from _imports(each)
        case list():
            for each in value:
                yield from _imports(each)
