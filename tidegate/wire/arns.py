"""ARNs of another partition or region than the cluster's, which CloudFormation or AWS refuses."""

from collections.abc import Iterator, Mapping

from tidegate.wire.problems import Problem
from tidegate.wire.texts import texts_in

# What the stack takes an ARN for, in a list or as a value: each is of the cluster's own region
# where its kind has one. Arguments of hooks may name what they like.
_KEYS = frozenset(
    {
        *("policies", "node_policies", "permissions_boundary", "job_role", "job_role_by_account"),
        *("munge_secret", "bind_password_secret", "components", "kms_key", "role"),
    }
)
_PARTITIONS = {"cn": "aws-cn", "us-gov": "aws-us-gov", "us-iso": "aws-iso", "us-isob": "aws-iso-b"}
_PARTITIONS |= {"eu-isoe": "aws-iso-e", "us-isof": "aws-iso-f", "eusc": "aws-eusc"}


def foreign_arns(data: Mapping[str, object], region: str | None) -> Iterator[Problem]:
    """Each with its place; none where nobody knows the region."""
    for place, text in texts_in(data) if region else ():
        if not text.startswith("arn:") or _KEYS.isdisjoint(place):
            continue
        _, partition, service, of, *_ = [*text.split(":"), "", "", "", ""]
        ours = partition_of(str(region))
        if partition != ours:
            text = f"is of partition {partition}, and what is in {region} is of {ours}"
            yield Problem(place, f"{text}: nothing of one is known in the other")
        elif of not in ("", region) and service != "kms":  # which is told by itself
            yield Problem(place, f"is in {of}, and the cluster is in {region}: take one from there")


def partition_of(region: str) -> str:
    """Source: AWS General Reference, "AWS service endpoints", regions by partition."""
    return next((of for start, of in _PARTITIONS.items() if region.startswith(f"{start}-")), "aws")
