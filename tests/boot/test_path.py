"""The critical path of a boot."""

from pathlib import Path

import pytest

from bench.boot import Row, critical_path, needs_of

GOLDEN = Path(__file__).parents[1] / "golden"


def row(stage: str, at_ms: int, ms: int) -> Row:
    return Row(stage, "apply", at_ms, ms, 1)


def test_the_path_follows_what_each_stage_waited_for_longest():
    rows = [row("a", 0, 10), row("b", 10, 5), row("c", 10, 50), row("d", 60, 5), row("e", 10, 1)]
    needs = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["a"]}

    assert [each.stage for each in critical_path(rows, needs)] == ["a", "c", "d"]


@pytest.mark.parametrize("role", ["head", "node"])
def test_what_stages_need_are_stages(role: str):
    needs = needs_of((GOLDEN / f"{role}_graph").read_text())

    assert len(needs) > 10
    assert {each for one in needs.values() for each in one} <= needs.keys()
    assert any(needs.values())
