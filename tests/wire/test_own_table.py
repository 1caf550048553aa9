"""Our own tables are read by libyaml, and mean what PyYAML reads in them."""

from pathlib import Path

import pytest
import yaml

from tidegate.wire.own_table import own_table

DATA = Path(__file__).parents[2] / "tidegate" / "data"


@pytest.mark.parametrize("name", [file.name for file in DATA.glob("*.yaml")])
def test_both_readers_find_the_same(name: str) -> None:
    read = own_table(name)

    assert read
    assert read == yaml.safe_load((DATA / name).read_text(encoding="utf-8"))
