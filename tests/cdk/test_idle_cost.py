"""What a cluster costs while nothing happens, counted in its own templates."""

import json
import re
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from cdk.schedules import RECONCILE
from tests.cdk.made import CLUSTERS, Stack, dev_file, synthesized
from tests.cdk.variants import WORKSPACE
from tidegate.agent import loop, run
from tidegate.cli import cost
from tidegate.cli.cost import IDLE, Item, Part, bill, busy, total
from tidegate.cli.main import app
from tidegate.wire.config import load_cluster, parse_cluster
from tidegate.wire.deployment import NEEDED_ENDPOINTS
from tidegate.wire.metrics import ALWAYS


def items_of(folder: Any, **changes: Any) -> dict[str, Item]:
    described = dev_file(**changes)
    stacks = synthesized(folder, described)
    file = parse_cluster(yaml.safe_dump(described), "dev")
    return {each.name: each for each in bill(file, [one.template for one in stacks.values()])}


@pytest.fixture(scope="module")
def idle(both: dict[str, Stack]) -> list[Item]:
    file = load_cluster(CLUSTERS / "dev.yaml")
    return bill(file, [each.template for each in both.values()])


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


def test_what_jobs_read_from_the_shared_files_has_its_price_told(idle):
    """The file system is elastic: one that bursts is read for nothing."""
    (files,) = (each for each in idle if each.name == "EFS")

    assert files.how == "by use: 0.30 USD per GB and month, 0.03 per GB read, 0.06 per GB written"


def test_the_control_plane_s_items_are_list_prices_times_what_happens(idle):
    """By hand: 8,760 digests and as many reconciles make 17,520 looks and 26,280 invocations."""
    by_hand = {
        "Lambda": 26_280 * (0.20e-6 + 0.6 * 0.5 * 13.3334e-6),
        # Two queues of five pollers each, three polls a minute; the agent's two; three a look.
        "SQS": 2 * 5 * 43_800 * 3 * 0.5e-6 + 2 * 43_800 * 3 * 0.4e-6 + 3 * 17_520 * 0.5e-6,
        "DynamoDB": 17_520 * (6 * 0.125e-6 + 2 * 0.625e-6),
        "S3": (8_760 + 17_520) * 5.0e-6 + 2 * 17_520 * 0.4e-6,
        "EventBridge": 2 * 8_760 * 1.0e-6,
        "Secrets Manager": 0.40,
    }

    found = {each.name: each.usd for each in idle if each.part is Part.CONTROL}

    assert found == {name: pytest.approx(usd) for name, usd in by_hand.items()}


def test_what_a_thousand_launches_a_day_add(both: dict[str, Stack], idle):
    """By hand: 30.4 days of 1,000 nodes, each of six digests, an event and a notice."""
    file = load_cluster(CLUSTERS / "dev.yaml")
    templates = [each.template for each in both.values()]
    nodes = 1000 * 730 / 24
    digests = 43_800 + 6 * nodes
    looks = digests + 8_760 + nodes
    # Two rounds of a look: 6 units and 0.72 KB for each of the 100 nodes that are up.
    reads = looks * 2 * (6 + 100 * 0.72 / 4)

    found = {each.name: each.usd for each in bill(file, templates, busy(1000))}

    invocations = looks + 8_760 + nodes
    table = reads * 0.125e-6 + (2 * looks + 80 * nodes) * 0.625e-6
    assert found["DynamoDB"] == pytest.approx(table)
    assert found["Lambda"] == pytest.approx(invocations * (0.20e-6 + 1.5 * 0.5 * 13.3334e-6))
    assert found["S3"] == pytest.approx((digests + looks) * 5e-6 + 2 * looks * 0.4e-6)
    ten, thousand = (bill(file, templates, busy(number)) for number in (10, 1000))
    sums = [total(each, Part.CONTROL) for each in (idle, ten, thousand)]
    assert sums == sorted(sums)
    assert sums[-1] < 20
    assert total(thousand, Part.BESIDE) == total(idle, Part.BESIDE)


def test_the_readme_says_these_sums(both: dict[str, Stack], idle):
    file = load_cluster(CLUSTERS / "dev.yaml")
    thousand = bill(file, [each.template for each in both.values()], busy(1000))
    control, watching = total(idle, Part.CONTROL), total(idle, Part.OBSERVABILITY)
    whole = control + watching + total(idle, Part.BESIDE)
    more = total(thousand, Part.CONTROL), total(thousand, Part.OBSERVABILITY)

    said = " ".join((CLUSTERS.parent / "README.md").read_text().split())

    assert f"its control plane costs {control:.2f} USD a month" in said
    assert f"A whole idle cluster as it comes costs about {whole:.0f}, of which 70 are" in said
    assert f"{control:.2f} USD a month for the control plane, {watching:.2f} for alarms" in said
    assert f"a thousand node launches a day make of that: {more[0]:.2f} and {more[1]:.2f}" in said


def test_a_head_with_a_gpu_has_its_price_and_an_unknown_one_says_so():
    def head(name: str) -> Item:
        file = parse_cluster(yaml.safe_dump(dev_file(head={"instance_type": name})), "dev")
        kinds = [{"Type": "AWS::EC2::Instance", "Properties": {"BlockDeviceMappings": []}}]
        items = bill(file, [{"Resources": dict(enumerate(kinds))}])
        (found,) = [each for each in items if each.name == "head"]
        assert not [each for each in items if each.name == "public address"]
        return found

    assert head("g4dn.xlarge").usd == pytest.approx(0.526 * 730)
    assert head("m7i.large").usd == pytest.approx(0.1008 * 730)
    assert head("t8i.small").usd is None
    assert head("t8i.small").how == "the price of t8i.small is not known here"


def test_each_kind_of_login_nodes_is_an_item():
    kinds = {"login": {}, "big": {"instance_type": "m6i.xlarge", "count": "2"}}
    file = parse_cluster(yaml.safe_dump(dev_file(login={"kinds": kinds})), "dev")

    items = {each.name: each for each in bill(file, [{"Resources": {}}])}

    assert items["login nodes"].usd == pytest.approx(0.096 * 730)
    assert items["login nodes big"].usd == pytest.approx(2 * 0.192 * 730)
    assert items["login nodes big"].how == "2 x m6i.xlarge on demand, all day"


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
    kept = items_of(tmp_path / "kept", lustre={**lustre, "kind": "persistent"})
    assert kept["FSx for Lustre"].usd == pytest.approx(174.0)
    assert kept["FSx for Lustre"].how == "1200 GiB PERSISTENT_2"
    assert "data repositories" not in kept


def test_data_repositories_cost_what_s3_takes_and_lustre_no_more(tmp_path):
    links = [{"path": "/a", "s3": "sets/a"}, {"path": "/b", "s3": "sets/b"}]
    items = items_of(tmp_path, lustre={"storage_gib": "1200", "data_repositories": links})

    assert items["FSx for Lustre"].usd == pytest.approx(168.0)
    found = items["data repositories"]
    assert (found.part, found.usd) == (Part.BESIDE, None)
    assert found.how.startswith("2; by use: S3's requests, from 0.0004 USD per 1,000 read")


def test_rates_are_those_of_agent_and_stack():
    """The bill counts with these; a faster heartbeat must not stay unseen."""
    per_hour = 3600 / loop.IDLE_HEARTBEAT_S
    assert per_hour * cost.HOURS == IDLE.digests
    assert RECONCILE == "rate(5 minutes)"
    assert run.LONG_POLL_S == 20


def test_metrics_without_a_value_cost_nothing_and_a_dashboard_is_a_choice(idle, tmp_path):
    full = items_of(tmp_path, metrics="full")

    assert {e.name: e.usd for e in idle}["metrics"] == pytest.approx(len(ALWAYS) * 0.30)
    assert "dashboard" not in {each.name for each in idle}
    assert full["dashboard"].usd == 3.0


def test_command_shows_every_item_and_its_sums(both, idle):
    folder = both["tidegate-dev"].folder
    told = CliRunner().invoke(
        app,
        ["cost", "--cluster", str(CLUSTERS / "dev.yaml"), "--idle", "--assembly", str(folder)],
        env={"COLUMNS": "200"},
    )

    assert told.exit_code == 0
    assert "control plane" in told.output
    assert "Secrets Manager" in told.output
    sums = [line for line in told.output.splitlines() if " sum " in line]
    assert [float(re.findall(r"[\d.]+", line)[0]) for line in sums] == [
        pytest.approx(total(idle, part), abs=0.006) for part in Part
    ]
    assert "by use" in told.output


def test_without_idle_nothing_is_shown(both):
    folder = both["tidegate-dev"].folder
    told = CliRunner().invoke(
        app, ["cost", "--cluster", str(CLUSTERS / "dev.yaml"), "--assembly", str(folder)]
    )

    assert told.exit_code == 2
    assert "--idle or --busy N for all the rest" in " ".join(told.output.replace("│", " ").split())


def test_programs_get_the_items_as_json(both, idle):
    folder = both["tidegate-dev"].folder
    given = [
        "cost",
        "--cluster",
        str(CLUSTERS / "dev.yaml"),
        "--idle",
        "--output",
        "json",
        "--assembly",
        str(folder),
    ]

    told = json.loads(CliRunner().invoke(app, given).output)

    assert [(each["part"], each["name"], each["usd"]) for each in told] == [
        (each.part, each.name, each.usd) for each in idle
    ]


def test_command_tells_the_bill_of_a_busy_cluster(both):
    folder = both["tidegate-dev"].folder
    given = ["cost", "--cluster", str(CLUSTERS / "dev.yaml"), "--assembly", str(folder), "--busy"]

    told = CliRunner().invoke(app, [*given, "1000"], env={"COLUMNS": "200"})

    assert told.exit_code == 0, told.output
    assert "1,000 node launches a day" in told.output
    assert CliRunner().invoke(app, [*given, "0"]).exit_code == 2
    assert CliRunner().invoke(app, [*given, "5", "--idle"]).exit_code == 2


def test_command_says_what_to_do_without_templates(tmp_path):
    told = CliRunner().invoke(
        app,
        ["cost", "--cluster", str(CLUSTERS / "dev.yaml"), "--idle", "--assembly", str(tmp_path)],
    )

    assert told.exit_code == 1
    assert "npx cdk synth" in told.output


def test_metrics_that_go_elsewhere_are_said_to_cost(tmp_path_factory):
    write = {"url": WORKSPACE}
    on = {"prometheus": "true", "remote_write": write}

    found = items_of(tmp_path_factory.mktemp("on"), monitoring=on)["metrics elsewhere"]

    assert (found.usd, found.how[:16]) == (None, "by use: 0.90 USD")
    assert "metrics elsewhere" not in items_of(tmp_path_factory.mktemp("off"))
