"""Values: read-only, equal and hashed by what they hold."""

import re
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path

import pytest

from tidegate.core.model.frozen import frozen

ROOT = Path(__file__).parents[2]


@frozen
class Place:
    zone: str
    rack: int = 0


@frozen(order=True, kw_only=True)
class Level:
    height: int


@frozen(quick=True)
class Tally:
    count: int


def test_values_are_equal_and_hashed_by_their_fields() -> None:
    assert Place("a", 1) == Place("a", 1) != Place("a", 2)
    assert len({Place("a", 1), Place("a", 1), Place("b", 1)}) == 2


def test_a_changed_copy_leaves_the_value_as_it_was() -> None:
    place = Place("a")
    assert (replace(place, rack=3), place) == (Place("a", 3), Place("a", 0))


def test_it_is_a_dataclass_with_slots() -> None:
    assert [each.name for each in fields(Place)] == ["zone", "rack"]
    assert not hasattr(Place("a"), "__dict__")


def test_order_and_keywords_are_asked_for() -> None:
    assert sorted([Level(height=2), Level(height=1)])[0].height == 1


def test_nobody_may_assign_a_field() -> None:
    place = Place("a")
    with pytest.raises(FrozenInstanceError):
        # Mypy would call this comment unused if it let anybody assign.
        place.zone = "b"  # type: ignore[misc]
    assert place == Place("a")


def test_mypy_alone_keeps_what_is_quick_to_make() -> None:
    tally = Tally(1)
    tally.count = 2  # type: ignore[misc]
    assert tally == Tally(2), "nothing stops it at run time, which is what makes it quick"
    assert {Tally(1), Tally(1)} == {Tally(1)}


def test_only_what_there_is_one_of_for_each_job_is_quick() -> None:
    quick = {
        f"{path.stem}:{name}"
        for path in (ROOT / "tidegate").rglob("*.py")
        for name in re.findall(
            r"^@frozen\([^)]*quick=True[^)]*\)\nclass (\w+)", path.read_text(), re.M
        )
    }
    assert quick == {"slurm:Job", "demand:Need", "plan:Served"}
