"""Figures of the benchmarks: one table for people, one list for what comes after."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured; it holds when it is at most `bound` (None: told, not judged)."""

    name: str
    value: float
    unit: str
    bound: float | None = None

    @property
    def holds(self) -> bool:
        return self.bound is None or self.value <= self.bound


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that so many percent do not exceed."""
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)  # rounded up
    return ordered[max(int(rank) - 1, 0)]


def table(figures: Sequence[Figure]) -> str:
    wide = max(len(each.name) for each in figures)
    return "\n".join(
        f"{each.name:{wide}}  {each.value:10.4g} {each.unit:5}{_verdict(each)}" for each in figures
    )


def _verdict(figure: Figure) -> str:
    if figure.bound is None:
        return ""
    return f"  at most {figure.bound:8.4g}  {'holds' if figure.holds else 'DOES NOT HOLD'}"


def write(figures: Sequence[Figure], path: Path) -> None:
    """A list of objects with name, value, unit, bound and holds."""
    rows = [{**asdict(each), "holds": each.holds} for each in figures]
    path.write_text(json.dumps(rows, indent=1) + "\n")
