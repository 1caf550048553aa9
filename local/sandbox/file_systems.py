"""The file systems beside the shared one, as the sandbox's machines mount them."""

from collections.abc import Iterator, Mapping
from typing import Any

# What is left out of each: nobody has these security groups here, nor what is behind S3 Files.
LEFT_OUT = ("security_group", "bucket")
# The one that the stack would make is there already.
MADE = {"lustre": "fs-0a1b2c3d4e5f60001", "mount_name": "fsx"}
MADE_BY = ("directory", "kind", "storage_gib")


def played(given: Mapping[str, Any], shared_dir: str) -> list[dict[str, Any]]:
    """The section `file_systems`, with what `lustre` asks for."""
    made = [
        {key: value for key, value in each.items() if key not in LEFT_OUT}
        for each in given.get("file_systems", ())
        if _is_played(each, shared_dir)
    ]
    if lustre := given.get("lustre"):
        made.append({"directory": lustre.get("directory", "/fsx"), **MADE})
    return made


def left_out(given: Mapping[str, Any], shared_dir: str) -> Iterator[str]:
    for number, each in enumerate(given.get("file_systems", ())):
        if not _is_played(each, shared_dir):
            yield f"file_systems[{number}]"
    yield from (f"lustre.{key}" for key in given.get("lustre") or () if key not in MADE_BY)


def _is_played(each: Mapping[str, Any], shared_dir: str) -> bool:
    """A bucket has no stand-in, and the shared folder's own place is taken."""
    return "s3" not in each and each["directory"] != shared_dir
