"""What a cluster file names of a site's own in IAM and S3, held against what is there.

CloudFormation finds it out only as it makes the role or the link, and rolls back all of the stack.
Sources: IAM API reference, AttachRolePolicy; IAM user guide, "Managed policies and inline
policies" (customer managed policies are of one account); FSx for Lustre user guide, "Linking your
file system to an Amazon S3 bucket" (automatic import wants a bucket of the file system's region).
"""

from collections.abc import Iterator

from tidegate.adapters.account import Account
from tidegate.wire.config import ClusterFile
from tidegate.wire.problems import Place, Problem

OF_AWS = "aws"


def policies(file: ClusterFile) -> Iterator[tuple[Place, str]]:
    """The ARNs of the policies that roles of the stack are to have, with their places."""
    named: list[tuple[Place, tuple[str, ...]]] = [
        (("head", "policies"), file.head.policies),
        *(((*each.place, "policies"), each.model.policies) for each in file.login_kinds),
        (("node_policies",), file.node_policies),
    ]
    for place, arns in named:
        for index, arn in enumerate(arns):
            yield (*place, index), arn
    if file.permissions_boundary:
        yield ("permissions_boundary",), file.permissions_boundary


def policy_problems(file: ClusterFile, account: Account) -> Iterator[Problem]:
    """Those that no role here can have."""
    named = [*policies(file)]
    own = account.number() if named else ""
    for place, arn in named:
        owner = arn.split(":")[4]
        if owner not in (OF_AWS, own):
            text = f"{arn} is of account {owner}: a role takes AWS's policies and those of {own}"
            yield Problem(place, text)
        elif not account.has_policy(arn):
            yield Problem(place, f"{arn} is not there")


def bucket_problems(file: ClusterFile, account: Account) -> Iterator[Problem]:
    """Buckets that FSx would not link."""
    for index, each in enumerate(file.lustre.data_repositories if file.lustre else ()):
        place: Place = ("lustre", "data_repositories", index)
        bucket = each.s3.partition("/")[0]
        region = account.region_of_bucket(bucket)
        if region is None:
            yield Problem((*place, "s3"), f"there is no bucket {bucket}")
        elif each.auto_import and region != file.region:
            text = f"the bucket {bucket} is in {region}: FSx imports from {file.region} alone"
            yield Problem((*place, "auto_import"), text)
