"""The section `prefetch` of the cluster file."""

from typing import Annotated

from pydantic import AfterValidator, Field

from tidegate.wire import names
from tidegate.wire.section import Section, at_most

# User data carries them to every node.
PREFETCH_MAX = 20

# As core/demand/data_sets.py takes them of comments. Source of a bucket's name: S3 user guide,
# "General purpose bucket naming rules".
DataPlace = Annotated[
    str,
    Field(
        max_length=240,
        pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_=@-][A-Za-z0-9_.=@-]*)*/?$",
        json_schema_extra={"x-expected": "bucket or bucket/prefix, like data-sets/imagenet"},
    ),
]


class PrefetchModel(Section):
    """Which buckets nodes may read for jobs that name data sets."""

    buckets: Annotated[
        tuple[DataPlace, ...],
        Field(min_length=1),
        at_most(PREFETCH_MAX),
        AfterValidator(names.no_repeats),
    ] = Field(
        description="in the cluster's region, each with a prefix or none; the nodes' role may list"
        " and read what lies there, and every user of the cluster reads what was loaded"
    )

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(each.rstrip("/") for each in self.buckets)
