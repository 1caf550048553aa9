"""The screenshots in the documentation are those of this version."""

import re

import pytest

from tests.cli.screens import FOLDER, mark, report, screens


@pytest.mark.parametrize("name", ["status", "why"])
def test_screenshots_are_what_the_commands_show(name: str) -> None:
    kept = (FOLDER / f"{name}.svg").read_text()

    assert kept == screens()[name], "make screens"
    assert "<svg" in kept


def test_the_picture_of_the_report_shows_the_report_of_this_version() -> None:
    kept = (FOLDER / "report.png").read_bytes()

    assert kept.startswith(b"\x89PNG")
    assert mark(report()) in kept, "make screens"


def test_every_screenshot_is_on_a_page() -> None:
    pages = "".join(each.read_text() for each in FOLDER.parent.glob("*.md"))

    assert set(re.findall(r"\]\(screens/([\w.]+)\)", pages)) == {
        each.name for each in FOLDER.iterdir()
    }
