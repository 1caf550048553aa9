"""The models that are made from the core's classes."""

from tidegate.core.model.frozen import frozen
from tidegate.wire.described import Describer, field_texts


@frozen
class Told:
    """A class with a field of each kind of text."""

    beside: int  #: on the same line
    #: in a line above, which is
    #: followed by another
    above: str = ""
    untold: float = 0.0  # for whoever reads the code

    def method(self) -> int:
        """A method's names are no fields."""
        inner: int = 0  #: of nobody's
        return inner


def test_what_stands_beside_a_field_and_above_it_describes_it() -> None:
    texts = field_texts(Told)

    assert texts["beside"] == "on the same line"
    assert texts["above"] == "in a line above, which is followed by another"
    assert texts["untold"] == ""
    assert "inner" not in texts


def test_a_schema_has_the_texts_of_the_class() -> None:
    schema = Describer().model(Told).model_json_schema()

    assert schema["properties"]["beside"]["description"] == "on the same line"
    assert schema["properties"]["untold"]["description"] == ""
