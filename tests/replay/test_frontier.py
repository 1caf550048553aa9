"""The frontier: cost and wait of the same history, by the price of waiting."""

import json
import re
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from tests.replay.test_replay import EXACT, FILE, cluster, trace
from tidegate.cli.main import app
from tidegate.sim.replay.frontier import PEERS, PRICES_USD, at_price, frontier
from tidegate.sim.replay.frontier_page import LINE, NAMES, as_html
from tidegate.sim.replay.run import replay

# A small job every quarter of an hour for half a day; its node has gone when the next one comes.
REGULAR = trace(*(f"{900 * n} 300 1 1" for n in range(48)))


@pytest.fixture(scope="module")
def points():
    told = []
    found = frontier(REGULAR, cluster(), EXACT, lambda *done: told.append(done), workers=2)
    assert told == [(n + 1, len(found)) for n in range(len(found))]
    return found


def test_jobs_wait_less_the_more_their_waiting_costs(points):
    ours = [each.outcome for each in points if each.outcome.policy == "tidegate"]

    assert [each.name for each in ours] == [f"waiting at {usd:g} USD" for usd in PRICES_USD]
    waits = [each.waits.mean_s for each in ours]
    assert waits == sorted(waits, reverse=True)
    assert waits[-1] < 0.5 * waits[0]
    assert ours[0].cost_usd <= min(each.cost_usd for each in ours)


def test_the_peers_and_the_price_of_the_file_are_shown(points):
    assert tuple(each.outcome.policy for each in points[-len(PEERS) :]) == PEERS
    assert [each.outcome.name for each in points if each.is_own] == ["waiting at 50 USD"]


def test_each_point_is_the_replay_at_that_price(points):
    alone = replay(REGULAR, at_price(cluster(), 20.0), EXACT).outcome

    at_20 = next(each.outcome for each in points if each.outcome.name == "waiting at 20 USD")
    assert (at_20.cost_usd, at_20.waits) == (alone.cost_usd, alone.waits)


def test_the_page_has_a_point_for_each_and_nothing_from_elsewhere(points):
    page = as_html(points, "<a> & b.csv")

    assert page.count("<circle") == len(points)
    assert not re.search(r"https?:|src=|href=|url\(|@import|<script", page)
    assert "<a>" not in page
    ElementTree.fromstring(re.sub(r"<!DOCTYPE html>|<meta[^>]*>", "", page))


def test_no_name_lies_on_another_and_the_axes_are_round(points):
    page = as_html([*points, *points], "twice, so that every point has another below it")

    names = re.findall(r'<text x="([0-9.]+)" y="([0-9.]+)">(?:waiting|like)', page)
    places = sorted((float(y), float(x)) for x, y in names)
    assert len(places) == 2 * len(points)
    for (y, x), (other_y, other_x) in combinations(places, 2):
        assert abs(y - other_y) >= LINE - 1 or abs(x - other_x) >= NAMES
    costs = [float(usd.replace(",", "")) for usd in re.findall(r'"end">([0-9,]+)<', page)]
    steps = {after - before for before, after in pairwise(costs)}
    assert len(steps) == 1
    assert str(int(steps.pop())).rstrip("0") in {"1", "2", "5"}


def test_the_command_shows_which_price_the_file_has(tmp_path):
    extra = "waiting: {usd_per_job_hour: 7}"
    (tmp_path / "lab.yaml").write_text(FILE.replace("MARKET", "on-demand").replace("EXTRA", extra))
    lines = [f"{n},{600 * n},500,1,1,gpu" for n in range(10)]
    head = "job_id,submit_s,duration_s,gpus,nodes,partition"
    (tmp_path / "jobs.csv").write_text("\n".join([head, *lines]))
    files = [str(tmp_path / "jobs.csv"), "--cluster", str(tmp_path / "lab.yaml")]
    out = ["--figures", str(tmp_path / "f.json"), "--report", str(tmp_path / "f.html")]

    done = CliRunner().invoke(app, ["replay", *files, "--frontier", *out])

    assert done.exit_code == 0, done.output
    assert "waiting at 7 USD (this file)" in done.stdout
    assert "like parallelcluster" in done.stdout
    assert len(json.loads((tmp_path / "f.json").read_text())) == len(PRICES_USD) + 1 + len(PEERS)
    assert "<svg" in (tmp_path / "f.html").read_text()


@pytest.mark.parametrize("more", [["--policy", "karpenter"], ["--cluster", "other.yaml"]])
def test_it_takes_one_file_and_no_policy(tmp_path, more):
    files = ["jobs.csv", "--cluster", "lab.yaml", *more]

    done = CliRunner().invoke(app, ["replay", *files, "--frontier"])

    assert done.exit_code == 2
    assert "takes one --cluster and no --policy" in re.sub(r"[\s│]+", " ", done.output)
