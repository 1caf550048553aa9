"""A skipped real path is never silent (tests/conftest.py)."""

from pathlib import Path

import pytest

CONFTEST = (Path(__file__).parent / "conftest.py").read_text()
ONE_TEST = "import pytest\ndef test_it(): pytest.skip('real path: no root here')"
WHOLE_FILE = "import pytest\npytest.skip('real path: no Slurm', allow_module_level=True)"
OTHER = "import pytest\ndef test_it(): pytest.skip('only on Mondays')"

pytest_plugins = ["pytester"]


def run(pytester: pytest.Pytester, test: str) -> pytest.RunResult:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test)
    return pytester.runpytest_subprocess()


@pytest.mark.parametrize(
    ("test", "reason"),
    [(ONE_TEST, "real path: no root here (1)"), (WHOLE_FILE, "real path: no Slurm (1)")],
)
def test_a_skipped_real_path_is_listed_at_the_end(pytester, monkeypatch, test, reason):
    monkeypatch.delenv("TIDEGATE_REQUIRE_REAL", raising=False)

    result = run(pytester, test)

    result.stdout.fnmatch_lines(["*not run here*", reason, "*1 skipped*"])


@pytest.mark.parametrize("test", [ONE_TEST, WHOLE_FILE])
def test_a_skipped_real_path_fails_where_it_is_required(pytester, monkeypatch, test):
    monkeypatch.setenv("TIDEGATE_REQUIRE_REAL", "1")

    result = run(pytester, test)

    assert result.ret != 0
    result.stdout.fnmatch_lines(["*TIDEGATE_REQUIRE_REAL is set*real path: no *"])


def test_other_skips_stay_skips(pytester, monkeypatch):
    monkeypatch.setenv("TIDEGATE_REQUIRE_REAL", "1")

    result = run(pytester, OTHER)

    assert result.ret == 0
    result.stdout.fnmatch_lines(["*not run here*", "only on Mondays (1)"])
