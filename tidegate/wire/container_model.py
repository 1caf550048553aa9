"""The section `container_cache` of the cluster file."""

from typing import Annotated

from pydantic import Field

from tidegate.wire.section import Section


class ContainerCacheModel(Section):
    """For how long and up to which size a user's images stay."""

    unused_days: Annotated[int, Field(ge=1, le=3650)] = Field(
        default=14, description="an image that no job of its user used for so long goes"
    )
    max_gib: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=200,
        description="of images a user's home holds so much; beyond it the one goes that was used"
        " longest ago",
    )


ContainerCache = Annotated[
    ContainerCacheModel | None,
    Field(
        description="an image of containers: pyxis is imported once for all nodes, into its user's"
        " home; by each node for itself when left out"
    ),
]
