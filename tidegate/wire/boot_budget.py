"""How long a node takes to boot, by estimates, and what a baked image is worth."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from tidegate.core.model.frozen import frozen
from tidegate.wire.config import ClusterFile
from tidegate.wire.own_table import own_table


@frozen
class Range:
    """Seconds, from least to most."""

    least_s: int
    most_s: int

    def __add__(self, other: "Range") -> "Range":
        return Range(self.least_s + other.least_s, self.most_s + other.most_s)

    def __sub__(self, other: "Range") -> "Range":
        """What a step takes less, where it is as quick or as slow with both."""
        return Range(self.least_s - other.least_s, self.most_s - other.most_s)

    def __str__(self) -> str:
        return f"{self.least_s}-{self.most_s}" if self.most_s else "0"


NOTHING = Range(0, 0)


@frozen
class Step:
    """A part of a boot. `driver`: what `image: install` adds to it where nothing is baked.

    `aws`: from AWS's image, with one GPU. `baked`, `baked_8_gpus`: from one that was baked.
    """

    name: str
    aws: Range
    baked: Range
    baked_8_gpus: Range
    driver: Range
    source: str


@cache
def boot_steps() -> tuple[Step, ...]:
    """All of them, from the launch to a job's start. Read once per process."""
    return tuple(
        Step(
            name=row["step"],
            aws=_range(row, "aws_s"),
            baked=_range(row, "baked_s"),
            baked_8_gpus=_range(row, "baked_8_gpus_s"),
            driver=_range(row, "driver_s"),
            source=row["source"],
        )
        for row in own_table("boot_budget.yaml")
    )


def saved_by_baking(file: ClusterFile) -> Range:
    """What each boot takes less from a baked image than from the file's; nothing for one's own."""
    if file.has_own_nodes:
        return NOTHING
    saved = (
        step.aws - step.baked + (step.driver if file.installs_driver else NOTHING)
        for step in boot_steps()
    )
    return sum(saved, NOTHING)


def notes(file: ClusterFile) -> Iterator[str]:
    """What the file's image means for its boots, for people."""
    saved = saved_by_baking(file)
    if saved == NOTHING:
        return
    more = f"an estimated {saved} s longer"
    if file.images:
        yield (
            "images: until one is baked (`tidegate image bake`) each boot installs what it lacks,"
            f" and takes {more}"
        )
    else:
        yield (
            f"image: each boot installs what it lacks, and takes {more} than from a baked"
            " image; `images: {}` bakes one (docs/images.md)"
        )


def _range(row: Mapping[str, Any], name: str) -> Range:
    return Range(*row.get(name, (0, 0)))
