"""Values: read-only for mypy, equal and hashed by what they hold."""

from dataclasses import fields, replace

from tidegate.core.model.frozen import frozen


@frozen
class Place:
    zone: str
    rack: int = 0


@frozen(order=True, kw_only=True)
class Level:
    height: int


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


def test_mypy_refuses_to_assign_a_field() -> None:
    place = Place("a")
    # Mypy would call this comment unused if it let anybody assign.
    place.zone = "b"  # type: ignore[misc]
    assert place.zone == "b", "nothing stops it at run time, which is what makes it quick"
