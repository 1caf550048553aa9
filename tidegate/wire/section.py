"""The base of every part of a cluster file, and numbers that many parts share."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from tidegate.wire.finite import FINITE


class Section(BaseModel):
    """A part of the file; a name that it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, **FINITE)


Count = Annotated[int, Field(ge=0)]
PositiveCount = Annotated[int, Field(ge=1)]
PositiveNumber = Annotated[float, Field(gt=0)]
PositiveUsd = PositiveNumber
Seconds = PositiveNumber
VolumeGib = Annotated[int, Field(ge=8, le=16384)]
# EC2's bounds of a volume initialization rate (EC2 API reference, EbsBlockDevice).
InitializationRate = Annotated[int, Field(ge=100, le=300)]
