"""The HTML report: whole in one file, well formed, and true to the figures."""

import re
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from tests.replay.test_replay import EXACT, FILE, cluster, drawn, trace
from tidegate.cli.main import app
from tidegate.sim.replay.draw import as_html
from tidegate.sim.replay.run import replay


@pytest.fixture(scope="module")
def ended():
    return [
        replay(trace("0 3600 1 1", "90000 600 8 1"), cluster(), EXACT, policy, "<lab>")
        for policy in ("tidegate", "parallelcluster")
    ]


def test_the_report_needs_nothing_from_elsewhere_and_escapes_names(ended):
    page = as_html(ended, "a & b.csv")

    assert not re.search(r"https?:|src=|href=|url\(|@import|<script", page)
    assert "<lab>" not in page
    assert "&lt;lab&gt;" in page
    ElementTree.fromstring(re.sub(r"<!DOCTYPE html>|<meta[^>]*>", "", page))


def test_the_report_shows_what_was_paid_and_when(ended):
    page = as_html(ended, "jobs.csv")

    assert f"{ended[0].outcome.cost_usd:,.2f}" in page
    assert f"{ended[1].outcome.cost_usd:,.2f}" in page
    assert page.count("day 0: ") == page.count("day 1: ") == 2
    assert "gpu g5.48xlarge us-east-1a on-demand" in page


def test_the_curves_rise_and_fall_with_demand(ended):
    """One GPU in use for an hour near the start of 25 hours, eight at the end."""
    curves = re.findall(r'points="([^"]+)"', as_html(ended[:1], "jobs.csv"))
    paid, asked, used = ([point.split(",") for point in c.split()] for c in curves[:3])

    tops = [min(float(y) for _, y in each) for each in (paid, asked, used)]
    floor = max(float(y) for _, y in used)
    assert tops[0] <= tops[1] <= tops[2] < floor
    assert float(used[len(used) // 2][1]) == floor


def test_the_command_writes_the_report(tmp_path):
    (tmp_path / "lab.yaml").write_text(FILE.replace("MARKET", "on-demand").replace("EXTRA", ""))
    (tmp_path / "jobs.csv").write_text(drawn(10))
    report = tmp_path / "report.html"
    command = ["replay", str(tmp_path / "jobs.csv"), "--cluster", str(tmp_path / "lab.yaml")]
    done = CliRunner().invoke(app, [*command, "--report", str(report)])

    assert done.exit_code == 0
    assert report.read_text().startswith("<!DOCTYPE html>")
