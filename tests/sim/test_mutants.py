"""The list of deliberate faults follows the code; `make mutants` runs it."""

from bench.mutant_list import MUTANTS
from bench.mutants import fits


def test_every_fault_fits_the_code() -> None:
    stale = [(each.name, edit.file) for each in MUTANTS for edit in each.edits if not fits(edit)]

    assert not stale


def test_no_two_faults_have_one_name() -> None:
    names = {each.name for each in MUTANTS}

    assert len(names) == len(MUTANTS) >= 25
