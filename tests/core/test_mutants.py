"""The list of deliberate breaks stays true to the code; running it is `tests.core.mutants`."""

import pytest

from tests.core.mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: f"{each.file}-{each.seen_by[:60]}")
def test_each_break_fits_the_code_and_names_a_test(mutant: Mutant) -> None:
    text = (ROOT / "tidegate" / "core" / mutant.file).read_text()
    file, test = mutant.seen_by.split("::")

    assert text.count(mutant.old) == 1
    assert f"def {test}(" in (ROOT / "tests" / "core" / file).read_text()
