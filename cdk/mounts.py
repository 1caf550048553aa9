"""Rights to mount file systems that are there already, each kind as its vendor says, and to load
data sets.
"""

from collections.abc import Iterable, Iterator, Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk.statements import s3_arn, statement
from tidegate.wire.file_systems import FileSystem


def mount_more(
    scope: Construct, file_systems: Iterable[FileSystem]
) -> Sequence[iam.PolicyStatement]:
    """What the policies of the file systems and buckets themselves may ask for.

    NFS by name asks for nothing of IAM.
    """
    more = sorted(file_systems, key=lambda each: (each.kind, each.source))
    return (
        *_of_service(scope, "MoreFiles", "elasticfilesystem", _of(more, "efs")),
        *_of_service(scope, "S3Files", "s3files", _of(more, "s3files")),
        *_behind(scope, sorted({each.bucket for each in _of(more, "s3files")} - {""})),
        *_read_buckets(scope, "Bucket", {each.source for each in _of(more, "s3")}),
    )


def load_data_sets(scope: Construct, places: Iterable[str]) -> Sequence[iam.PolicyStatement]:
    """What nodes may list and read for jobs that name data sets: of buckets, or their prefixes."""
    return tuple(_read_buckets(scope, "DataSet", places))


def _of(more: Iterable[FileSystem], kind: str) -> list[FileSystem]:
    return [each for each in more if each.kind == kind]


def _of_service(
    scope: Construct, sid: str, service: str, more: Sequence[FileSystem]
) -> Iterator[iam.PolicyStatement]:
    """Both services have the same actions; without ClientRootAccess root is squashed."""
    written = {each.source for each in more if not each.is_read_only}
    for suffix, ids, actions in (
        ("", written, ("ClientMount", "ClientWrite")),
        ("Read", {each.source for each in more} - written, ("ClientMount",)),
    ):
        arns = [
            Stack.of(scope).format_arn(service=service, resource="file-system", resource_name=each)
            for each in sorted(ids)
        ]
        if arns:
            yield statement(f"{sid}{suffix}", [f"{service}:{each}" for each in actions], arns)


def _behind(scope: Construct, places: Sequence[str]) -> Iterator[iam.PolicyStatement]:
    """Objects of buckets, the version that a file shows among them.

    efs-proxy asks for PREFIX/ and reads nothing of S3 itself when that is denied, as S3 denies what
    is not there to who may not list it. Source: S3 user guide, "Prerequisites for S3 Files", IAM
    role for compute resources; efs-utils, proxy/src/aws/s3_client.rs.
    """
    yield from _list(scope, "ListBehindS3Files", places)
    if places:
        arns = [s3_arn(scope, f"{each}/*") for each in places]
        yield statement("BehindS3Files", ["s3:GetObject", "s3:GetObjectVersion"], arns)


def _read_buckets(scope: Construct, what: str, of: Iterable[str]) -> Iterator[iam.PolicyStatement]:
    """Source: Mountpoint for Amazon S3, "Configuring Mountpoint", IAM permissions."""
    places = sorted(of)
    yield from _list(scope, f"List{what}", places)
    if places:
        arns = [s3_arn(scope, f"{each}/*") for each in places]
        yield statement(f"{what}s", ["s3:GetObject"], arns)


def _list(scope: Construct, sid: str, places: Sequence[str]) -> Iterator[iam.PolicyStatement]:
    """Of a prefix, ListBucket takes its condition. S3 asks it of single objects as well, with the
    key as their prefix, to tell 404 from 403.
    """
    for number, place in enumerate(places):
        bucket, _, prefix = place.partition("/")
        condition = {"StringLike": {"s3:prefix": [f"{prefix}/*"]}} if prefix else None
        yield statement(f"{sid}{number}", ["s3:ListBucket"], [s3_arn(scope, bucket)], condition)
