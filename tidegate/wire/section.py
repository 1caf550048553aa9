"""The base of every part of a cluster file, and numbers that many parts share."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tidegate.wire.finite import FINITE


class Section(BaseModel):
    """A part of the file; a name that it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, **FINITE)


def at_most(number: int) -> AfterValidator:
    """Refuses longer lists, in words."""

    def check[Entry](values: tuple[Entry, ...]) -> tuple[Entry, ...]:
        if len(values) > number:
            raise ValueError(f"at most {number} entries, has {len(values)}")
        return values

    return AfterValidator(check)


# What nobody means: a typing error, or a number in another unit.
MAX_COUNT = 10_000_000
MAX_KEPT_NODES = 10_000
MAX_USD = 1_000_000_000
LEAST_S = 1
YEAR_S = 366 * 24 * 3600

Count = Annotated[int, Field(ge=0, le=MAX_KEPT_NODES)]
PositiveCount = Annotated[int, Field(ge=1, le=MAX_COUNT)]
PositiveNumber = Annotated[float, Field(gt=0, le=MAX_COUNT)]
PositiveUsd = Annotated[float, Field(gt=0, le=MAX_USD)]
Seconds = Annotated[float, Field(ge=LEAST_S, le=YEAR_S)]
VolumeGib = Annotated[int, Field(ge=8, le=16384)]
# EC2's bounds of a volume initialization rate (EC2 API reference, EbsBlockDevice).
InitializationRate = Annotated[int, Field(ge=100, le=300)]
