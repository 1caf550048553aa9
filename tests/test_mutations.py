"""Which changes `make mutants` makes, and that tests run with one and leave the checkout alone."""

from pathlib import Path

import pytest

from bench.mutated import ROOT
from bench.mutation import MODULES, chosen, passes
from bench.mutations import Change, changes

SOURCE = '''\
"""A docstring with 1 number."""
from x import y

FACTOR: float = 2.5


def f(a: int, b: "int | 3" = 0) -> bool:
    """Says 1."""
    assert a < 7
    if not a and b >= 1:
        g(a)
        a += 1
    return any(x is None for x in [max(a, b)] if x)
'''


def news(source: str) -> list[str]:
    return [each.new for each in changes(source)]


def test_each_kind_of_node_becomes_another() -> None:
    assert news(SOURCE) == [
        *("3.5", "1", "a", "(not (not a and b >= 1))", "(not a or b >= 1)", "(b > 1)", "2"),
        *("pass", "pass", "2", "all", "(x is not None)", "min", "True"),
    ]


def test_a_change_of_a_module_can_be_compiled_and_differs() -> None:
    for file in MODULES:
        source = Path(ROOT, file).read_text()
        for each in chosen(changes(source), 5, file):
            assert compile(each.of(source), file, "exec")
            assert each.of(source) != source


def test_a_change_keeps_what_binds_tighter_together() -> None:
    (times, plus, *_) = sorted(changes("x = a * (b + c)"), key=lambda each: each.start)

    assert eval(times.of("x = a * (b + c)")[4:], {"a": 12.0, "b": 1, "c": 2}) == 4.0
    assert eval(plus.of("x = a * (b + c)")[4:], {"a": 12.0, "b": 1, "c": 2}) == -12.0


def test_letters_of_two_bytes_move_nothing() -> None:
    source = 'x = "Räume", 1\n'

    assert [each.of(source) for each in changes(source)] == ['x = "Räume", 2\n']


def test_a_diff_shows_the_changed_line_alone() -> None:
    source = "a = 1\nb = 2\nc = 3\nd = 4\n"

    lines = changes(source)[1].diff(source, "m.py").splitlines()

    assert [each for each in lines if each[0] in "+-"][2:] == ["-b = 2", "+b = 3"]


def test_the_same_changes_are_chosen_at_each_run() -> None:
    every = [Change(n, n + 1, "x") for n in range(100)]

    first = chosen(every, 10, "m.py")

    assert first == chosen(every, 10, "m.py") == sorted(first, key=lambda each: each.start)
    assert len(first) == 10
    assert chosen(every, 100, "m.py") == every


@pytest.mark.parametrize(
    ("old", "new", "is_good"),
    [("", "", True), ("if not self.cluster.estimates", "if self.cluster.estimates", False)],
)
def test_the_tests_of_a_module_run_with_its_change_and_the_checkout_stays(
    old: str, new: str, is_good: bool
) -> None:
    file = "tidegate/service/prices.py"
    source = Path(ROOT, file).read_text()
    changed = source.replace(old, new) if old else source

    assert passes(file, changed, time_out_s=120.0) is is_good
    assert Path(ROOT, file).read_text() == source


def test_a_change_that_hangs_is_seen() -> None:
    file = "tidegate/service/prices.py"
    source = Path(ROOT, file).read_text()

    assert not passes(file, f"import time\ntime.sleep(60)\n{source}", time_out_s=2.0)


def test_the_modules_and_their_tests_are_there() -> None:
    named = [*MODULES, *(each for tests in MODULES.values() for each in tests)]

    assert [each for each in named if not Path(ROOT, each).exists()] == []
