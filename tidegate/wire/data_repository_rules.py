"""What FSx asks of the data repositories of a file system, taken together.

Source: FSx for Lustre user guide, "Linking your file system to an Amazon S3 bucket": neither
folders nor places in S3 may overlap, and one at / is the only one.
"""

from collections.abc import Iterator
from itertools import combinations

from tidegate.wire.parts import Parts
from tidegate.wire.problems import Place, Problem

PLACE: Place = ("lustre", "data_repositories")


def overlap(one: str, other: str) -> bool:
    """Whether one of two paths, or of two places in S3, is within the other."""
    first, second = (f"{each.rstrip('/')}/" for each in (one, other))
    return first.startswith(second) or second.startswith(first)


def _are_apart(parts: Parts) -> Iterator[Problem]:
    for (before, one), (index, other) in combinations(parts.data_repositories.items(), 2):
        for key, old, new in (("path", one.path, other.path), ("s3", one.s3, other.s3)):
            if overlap(old, new):
                where = f"data_repositories[{before}].{key} ({old})"
                text = f"{new} overlaps {where}: FSx links a place once, and nothing within it"
                yield Problem((*PLACE, index, key), text)


DATA_REPOSITORY_RULES = (_are_apart,)
