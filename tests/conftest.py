"""What could not run here is said at the end, and is a failure where it must run.

A test that needs real Slurm skips with a reason that starts with "real path:". With
TIDEGATE_REQUIRE_REAL set (CI sets it) such a skip is an error.
"""

import gc
import os
import sys
from collections.abc import Generator
from fcntl import LOCK_EX, flock
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.testing
from hypothesis import HealthCheck, settings

# Both are read when aws_cdk is imported, wherever that is first: its own validation doubles the
# time of a synthesis, and node must not be the machine's.
os.environ["CDK_VALIDATION"] = "false"
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

# Time passes on a busy machine, whatever the code does: no example is too slow.
settings.register_profile("tidegate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tidegate")

# A process of its own builds the command line's tree of commands once. So do the tests, which call
# it hundreds of times in one process: to build it takes twenty times as long as to show a help.
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]

REAL_PATH = "real path:"


# What is imported and collected stays to the end: a million objects that the collector of cyclic
# garbage need not look through again and again, for a tenth of all processor time.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def _is_compiled(argument: str) -> bool:
    """Whether pytest has been in the folder of a test, a file or a folder that it is given."""
    given = Path(argument.partition("::")[0])
    folder = given if given.is_dir() else given.parent
    return any(folder.glob("__pycache__/*-pytest-*.pyc"))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Of xdist, before a process starts: whether nothing has been compiled yet."""
    node.workerinput["takes_turns"] = not _is_compiled(node.config.args[0])


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """In a fresh checkout one process goes first: it compiles what all others then only read."""
    given = getattr(session.config, "workerinput", {})
    if not given.get("takes_turns"):
        return (yield)
    assert session.config.cache
    turn = session.config.cache.mkdir("turns") / given["testrunuid"]
    with turn.open("a") as lock:
        flock(lock, LOCK_EX)
        if not turn.stat().st_size:
            collected = yield
            lock.write("collected")
            return collected
    return (yield)


# What takes longest begins first, and so ends before the rest: folders, and files.
LONGEST = (
    "test_together_contract",
    "e2e",
    "boot",
    "stack",
    "contracts",
    "test_remote_write",
    "sim",
    "cdk",
    "local",
)


def _begins(path: Path) -> int:
    """The place of a file in the order of all; those of one place keep theirs."""
    names = (path.parent.name, path.stem)
    return next((at for at, name in enumerate(LONGEST) if name in names), len(LONGEST))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _begins(item.path))


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
