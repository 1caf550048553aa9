"""The critical path of a boot."""

from bench.boot import Row, critical_path


def row(stage: str, at_ms: int, ms: int) -> Row:
    return Row(stage, "apply", at_ms, ms, 1)


def test_the_path_follows_what_each_stage_waited_for_longest():
    rows = [row("a", 0, 10), row("b", 10, 5), row("c", 10, 50), row("d", 60, 5), row("e", 10, 1)]
    needs = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["a"]}

    assert [each.stage for each in critical_path(rows, needs)] == ["a", "c", "d"]
