"""The screenshots in the documentation are those of this version."""

import pytest

from tests.cli.screens import FOLDER, screens


@pytest.mark.parametrize("name", ["status", "why"])
def test_screenshots_are_what_the_commands_show(name: str) -> None:
    kept = (FOLDER / f"{name}.svg").read_text()

    assert kept == screens()[name], "make screens"
    assert "<svg" in kept
