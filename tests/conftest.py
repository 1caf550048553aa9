"""What could not run here is said at the end, and is a failure where it must run.

A test that needs real Slurm skips with a reason that starts with "real path:". With
TIDEGATE_REQUIRE_REAL set (CI sets it) such a skip is an error.
"""

import os
from collections.abc import Generator

import pytest

REAL_PATH = "real path:"


# Few tests that take long, and mostly wait: begun first they are over when the others are.
LONG = ("e2e", "boot", "stack", "contracts", "sim", "cdk", "local")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    folder = item.path.parent.name
    return LONG.index(folder) if folder in LONG else len(LONG)


def _skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why the test or file was skipped; "" when it was not."""
    if not report.skipped or not isinstance(report.longrepr, tuple):
        return ""
    return str(report.longrepr[2]).removeprefix("Skipped: ")


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = _skip_reason(report)
    if reason.startswith(REAL_PATH) and os.environ.get("TIDEGATE_REQUIRE_REAL"):
        report.outcome = "failed"
        report.longrepr = f"TIDEGATE_REQUIRE_REAL is set, but this was skipped: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = _skip_reason(report) or "no reason given"
        reasons[reason] = reasons.get(reason, 0) + 1
    lines = [f"{reason} ({count})" for reason, count in sorted(reasons.items())]
    lines += filter(None, [os.environ.get("TIDEGATE_NOT_RUN")])
    if lines:
        terminalreporter.section("not run here")
        for line in lines:
            terminalreporter.line(line)
