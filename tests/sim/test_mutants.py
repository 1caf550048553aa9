"""The list of deliberate faults follows the code; `make faults` runs it."""

import pytest

from bench.mutant_list import MUTANTS
from bench.mutants import copy_with, fits

ORDERS_ARE_LOST = next(each for each in MUTANTS if each.name == "orders are lost")


def test_every_fault_fits_the_code() -> None:
    stale = [(each.name, edit.file) for each in MUTANTS for edit in each.edits if not fits(edit)]

    assert not stale


def test_no_two_faults_have_one_name() -> None:
    names = {each.name for each in MUTANTS}

    assert len(names) == len(MUTANTS) >= 25


@pytest.mark.parametrize("more", [(), ("--shrink",)])
def test_the_command_that_a_failure_prints_repeats_it(more: tuple[str, ...]) -> None:
    with copy_with(ORDERS_ARE_LOST) as run:
        first = run("simulate", "--seeds", "0:20", "--size", "small", *more)
        lines = first.stdout.splitlines()
        again = next(line for line in lines if line.startswith("again: tidegate "))
        second = run(*again.removeprefix("again: tidegate ").split())

    failure = lines[: lines.index(again) + 1]
    assert first.returncode == second.returncode == 1
    assert len(failure) > 5
    assert second.stdout.splitlines()[: len(failure)] == failure
