"""The section `waiting` of the cluster file: what a price means, and what it is where none is."""

from pathlib import Path

import pytest

from tests.wire.cluster_files import good, load
from tidegate.core.model.waiting import DEFAULT_USD_PER_JOB_HOUR


def notes(tmp_path: Path, waiting: dict[str, object] | None) -> list[str]:
    file = load(tmp_path, good({"waiting": waiting}))
    return [each for each in file.notes if each.startswith("waiting.")]


@pytest.mark.parametrize("waiting", [None, {}, {"by_account": {"staff": 9}}])
def test_who_names_no_price_has_the_default_and_is_told(
    tmp_path: Path, waiting: dict[str, object] | None
) -> None:
    file = load(tmp_path, good({"waiting": waiting}))

    assert file.cluster.waiting.usd_per_job_hour == DEFAULT_USD_PER_JOB_HOUR == 50.0
    (note,) = notes(tmp_path, waiting)
    assert note.startswith("waiting.usd_per_job_hour: 50 when left out: spare nodes are")


@pytest.mark.parametrize("usd", [0, 0.01, 50, 10_000])
def test_a_price_that_stands_there_is_taken_as_it_is(tmp_path: Path, usd: float) -> None:
    found = load(tmp_path, good({"waiting": {"usd_per_job_hour": usd}})).cluster.waiting

    assert (found.usd_per_job_hour, found.most_usd) == (usd, usd)
    assert notes(tmp_path, {"usd_per_job_hour": usd}) == []


def test_who_gives_a_deadline_has_said_how_long_the_job_may_wait(tmp_path: Path) -> None:
    """A price that stands in the file counts all the same."""
    assumed = load(tmp_path, good({"waiting": {"by_account": {"staff": 9}}})).cluster.waiting
    said = load(tmp_path, good({"waiting": {"usd_per_job_hour": 50}})).cluster.waiting

    assert assumed.usd(("gpu",), "", "", has_deadline=True) == 0.0
    assert assumed.usd(("gpu",), "", "staff", has_deadline=True) == 9
    assert said.usd(("gpu",), "", "", has_deadline=True) == 50


def test_an_account_that_nobody_has_is_no_fault_and_changes_nobodys_price(tmp_path: Path) -> None:
    """Accounts are Slurm's; the file is read without it."""
    found = load(tmp_path, good({"waiting": {"by_account": {"nobody": 9}}})).cluster.waiting

    assert found.usd(("gpu",), "", "staff") == DEFAULT_USD_PER_JOB_HOUR
    assert found.usd(("gpu",), "", "") == DEFAULT_USD_PER_JOB_HOUR
    assert found.usd((), "", "nobody") == 9
