"""Figures of the benchmarks: one table for people, one list for what comes after."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured; it holds when it is at most `bound`."""

    name: str
    value: float
    unit: str
    bound: float

    @property
    def holds(self) -> bool:
        return self.value <= self.bound


def table(figures: Sequence[Figure]) -> str:
    wide = max(len(each.name) for each in figures)
    return "\n".join(
        f"{each.name:{wide}}  {each.value:10.4g} {each.unit:5}  at most {each.bound:8.4g}"
        f"  {'holds' if each.holds else 'DOES NOT HOLD'}"
        for each in figures
    )


def write(figures: Sequence[Figure], path: Path) -> None:
    """A list of objects with name, value, unit, bound and holds."""
    rows = [{**asdict(each), "holds": each.holds} for each in figures]
    path.write_text(json.dumps(rows, indent=1) + "\n")
