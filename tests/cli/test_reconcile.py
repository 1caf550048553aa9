"""`tidegate cost --reconcile`: the ledger's bill beside AWS's report."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.test_cost_report import as_csv
from tests.adapters.test_cost_report import line as said
from tests.cli.conftest import Town
from tests.cli.test_cost_by import bought_node


def today(town: Town, *lines: dict[str, Any]) -> str:
    """A report in which each line is of today, as daily reports have it."""
    begins = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    day = {"start": f"{begins:%FT%TZ}", "end": f"{begins + timedelta(days=1):%FT%TZ}"}
    cluster = town.names.cluster
    return as_csv(0, *(said(**{"cluster": cluster, **each, **day}) for each in lines))


@pytest.fixture
def report(town: Town) -> Path:
    return town.file.parent / "report.csv"


def test_a_day_s_nodes_are_compared(town: Town, report: Path) -> None:
    node = bought_node(town)
    head = {"resource": "i-head", "usd": 9.0}
    report.write_text(today(town, {"resource": node.instance_id, "pool": "t4"}, head))

    done = town.ask("cost", "--reconcile", str(report))

    assert done.exit_code == 0, done.output
    _, _, row, *_ = done.output.splitlines()
    assert row.split()[1:] == ["t4", "0.00", "0.50", "+0.50"]
    assert "!" not in done.output
    (data,) = json.loads(town.ask("cost", "--reconcile", str(report), "-o", "json").output)["rows"]
    assert (data["pool"], data["aws_usd"]) == ("t4", 0.5)
    assert 0 < data["ours_usd"] < 0.01
    assert data["difference_usd"] == pytest.approx(0.5, abs=0.01)


def test_what_the_ledger_does_not_know_needs_a_look(town: Town, report: Path) -> None:
    node = bought_node(town)
    strange = ({"resource": f"i-{number}", "pool": "t4", "usd": number} for number in range(12))
    report.write_text(today(town, *strange))

    done = town.ask("cost", "--reconcile", str(report))

    assert done.exit_code == 3, done.output
    assert "! AWS charges i-11 (t4, 11.00 USD since 20" in done.output
    assert "! AWS charges 2 more (1.00 USD; -o json names them) as a node" in done.output
    assert f"! AWS charges nothing for {node.instance_id} (t4, 0.00 USD since" in done.output


def test_a_report_without_our_tags_says_what_to_activate(town: Town, report: Path) -> None:
    node = bought_node(town)
    report.write_text(today(town, {"resource": node.instance_id, "cluster": ""}))

    done = town.ask("cost", "--reconcile", str(report))

    assert done.exit_code == 0
    assert "! no charge has the tag tidegate:cluster: only nodes that the ledger" in done.output


def test_a_file_that_is_no_report_is_refused(town: Town, report: Path) -> None:
    report.write_text("a,b\n1,2\n")

    done = town.ask("cost", "--reconcile", str(report))

    assert done.exit_code == 1
    assert f"{report}: it has no column line_item_usage_start_date" in done.output
