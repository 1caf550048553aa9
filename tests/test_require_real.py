"""A skipped real path is never silent (tests/conftest.py)."""

from pathlib import Path

import pytest

CONFTEST = (Path(__file__).parent / "conftest.py").read_text()
ONE_TEST = "import pytest\ndef test_it(): pytest.skip('real path: no root here')"
WHOLE_FILE = "import pytest\npytest.skip('real path: no Slurm', allow_module_level=True)"
OTHER = "import pytest\ndef test_it(): pytest.skip('only on Mondays')"

pytest_plugins = ["pytester"]


def run(pytester: pytest.Pytester) -> pytest.RunResult:
    """All of them in one process, which takes a second to come that far."""
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_one=ONE_TEST, test_whole=WHOLE_FILE, test_other=OTHER)
    return pytester.runpytest_subprocess("--continue-on-collection-errors")


def test_a_skipped_real_path_is_listed_at_the_end(pytester, monkeypatch):
    monkeypatch.delenv("TIDEGATE_REQUIRE_REAL", raising=False)

    result = run(pytester)

    assert result.ret == 0
    real_paths = [f"real path: no {each} (1)" for each in ("Slurm", "root here")]
    result.stdout.fnmatch_lines(
        ["*not run here*", "only on Mondays (1)", *real_paths, "*3 skipped*"]
    )


def test_a_skipped_real_path_fails_where_it_is_required_and_other_skips_stay_skips(
    pytester, monkeypatch
):
    monkeypatch.setenv("TIDEGATE_REQUIRE_REAL", "1")

    result = run(pytester)

    assert result.ret != 0
    result.assert_outcomes(failed=1, errors=1, skipped=1)
    told = "*TIDEGATE_REQUIRE_REAL is set*real path: no "
    result.stdout.fnmatch_lines_random([f"{told}root here*", f"{told}Slurm*"])
    result.stdout.fnmatch_lines(["*not run here*", "only on Mondays (1)"])
