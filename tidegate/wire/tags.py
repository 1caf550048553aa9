"""Tags of a site's own, on all that a cluster is made of: for cost allocation and the like.

Sources: EC2 user guide, "Tag restrictions" and "View tags for your EC2 instances using instance
metadata" (nodes read their own there, and a key that it does not take fails every launch); IAM user
guide, "Rules for tagging" (keys without regard to case).
"""

from typing import Annotated

from pydantic import AfterValidator, Field

from tidegate.core.model.ec2 import CLUSTER_TAG

# 50 for a resource: of ours a node has eleven, and what AWS's own services add comes beside them.
TAGS_MAX = 38
_OURS = CLUSTER_TAG.partition(":")[0] + ":"


def _key(key: str) -> str:
    if key.lower().startswith("aws:"):
        raise ValueError(f"{key}: AWS keeps keys that begin with aws: for itself")
    if key.lower().startswith(_OURS) or key.lower() == "name":
        raise ValueError(f"{key}: Tidegate sets Name and what begins with {_OURS} itself")
    if key in (".", "..", "_index"):
        raise ValueError(f"{key}: nodes read their tags in their metadata, where this is no name")
    return key


def _together(tags: dict[str, str]) -> dict[str, str]:
    if len(tags) > TAGS_MAX:
        text = f"has {len(tags)} tags; a resource bears 50, and {50 - TAGS_MAX} are kept"
        raise ValueError(f"{text} for Tidegate and AWS: at most {TAGS_MAX}")
    seen: dict[str, str] = {}
    for key in tags:
        if (other := seen.setdefault(key.lower(), key)) != key:
            raise ValueError(f"{other} and {key}: roles take keys that differ by more than case")
    return tags


TagKey = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9_.:=+@-]{1,128}$",
        json_schema_extra={"x-expected": "letters, digits, _.:=+-@, at most 128; no blank, no /"},
    ),
    AfterValidator(_key),
]
TagValue = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9 _.:/=+@-]{0,256}$",
        json_schema_extra={"x-expected": "letters, digits, blanks and _.:/=+-@, at most 256"},
    ),
]
Tags = Annotated[dict[TagKey, TagValue], AfterValidator(_together)]
