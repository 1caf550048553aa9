"""What a cluster costs while nothing happens, counted in its own templates."""

import json
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from cdk.schedules import RECONCILE
from tests.cdk.made import CLUSTERS, Stack, dev_file, synthesized
from tidegate.agent import loop, run
from tidegate.cli import cost
from tidegate.cli.cost import Item, Part, idle_items, total
from tidegate.cli.main import app
from tidegate.wire.config import load_cluster, parse_cluster
from tidegate.wire.deployment import NEEDED_ENDPOINTS
from tidegate.wire.metrics import ALWAYS


def items_of(folder: Any, **changes: Any) -> dict[str, Item]:
    described = dev_file(**changes)
    stacks = synthesized(folder, described)
    file = parse_cluster(yaml.safe_dump(described), "dev")
    return {each.name: each for each in idle_items(file, [one.template for one in stacks.values()])}


@pytest.fixture(scope="module")
def idle(both: dict[str, Stack]) -> list[Item]:
    file = load_cluster(CLUSTERS / "dev.yaml")
    return idle_items(file, [each.template for each in both.values()])


def test_control_plane_costs_at_most_two_dollars_a_month(idle):
    assert 0.5 < total(idle, Part.CONTROL) <= 2.0


def test_observability_costs_at_most_five_dollars_a_month(idle):
    assert 1.0 < total(idle, Part.OBSERVABILITY) <= 5.0


def test_what_is_large_is_told_and_not_hidden(idle):
    beside = {each.name: each.usd for each in idle if each.part is Part.BESIDE}

    assert beside == {
        "head": pytest.approx(0.096 * 730),
        "public address": pytest.approx(3.65),
        "EBS": pytest.approx((50 + 30) * 0.08),
        "EFS": None,
        "backups": None,
        "Route 53": 0.5,
    }


def test_nat_and_endpoints_have_their_price(tmp_path):
    nat = items_of(tmp_path / "a", network={"nat": "one"})
    none = items_of(tmp_path / "b", network={"endpoints": list(NEEDED_ENDPOINTS)})

    assert nat["NAT gateway"].usd == pytest.approx(36.5)
    assert none["interface endpoints"].usd == pytest.approx(len(NEEDED_ENDPOINTS) * 7.3)
    assert "public address" not in nat
    assert "public address" not in none


def test_lustre_and_flow_logs_are_beside_it(tmp_path):
    lustre = {"storage_gib": "1200"}
    items = items_of(tmp_path, lustre=lustre, network={"flow_logs": "all"})

    assert items["FSx for Lustre"].usd == pytest.approx(168.0)
    assert items["flow logs"].usd is None


def test_rates_are_those_of_agent_and_stack():
    """The bill counts with these; a faster heartbeat must not stay unseen."""
    per_hour = 3600 / loop.IDLE_HEARTBEAT_S
    assert per_hour * cost.HOURS == cost.DIGESTS
    assert RECONCILE == "rate(5 minutes)"
    assert run.LONG_POLL_S == 20


def test_metrics_without_a_value_cost_nothing_and_a_dashboard_is_a_choice(idle, tmp_path):
    full = items_of(tmp_path, metrics="full")

    assert {e.name: e.usd for e in idle}["metrics"] == pytest.approx(len(ALWAYS) * 0.30)
    assert "dashboard" not in {each.name for each in idle}
    assert full["dashboard"].usd == 3.0


def test_command_shows_every_item_and_its_sums(both):
    folder = both["tidegate-dev"].folder
    told = CliRunner().invoke(
        app,
        ["cost", str(CLUSTERS / "dev.yaml"), "--idle", "--assembly", str(folder)],
        env={"COLUMNS": "200"},
    )

    assert told.exit_code == 0
    assert "control plane" in told.output
    assert "Secrets Manager" in told.output
    assert told.output.count("sum") == 3


def test_programs_get_the_items_as_json(both, idle):
    folder = both["tidegate-dev"].folder
    given = ["cost", str(CLUSTERS / "dev.yaml"), "--idle", "--json", "--assembly", str(folder)]

    told = json.loads(CliRunner().invoke(app, given).output)

    assert [(each["part"], each["name"], each["usd"]) for each in told] == [
        (each.part, each.name, each.usd) for each in idle
    ]


def test_command_says_what_to_do_without_templates(tmp_path):
    told = CliRunner().invoke(
        app, ["cost", str(CLUSTERS / "dev.yaml"), "--idle", "--assembly", str(tmp_path)]
    )

    assert told.exit_code == 1
    assert "npx cdk synth" in told.output
