"""`tidegate cost --by`: whose jobs nodes were for, by the ledger and the head's sacct."""

import csv
import io
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Town
from tests.make import job
from tidegate.cli.cost_by import Spent, as_data, of_plans, since
from tidegate.core.model.errors import BadConfig
from tidegate.core.model.ledger import Phase
from tidegate.core.model.savings_plans import PlanKind
from tidegate.core.offers.plan_use import PlanUse
from tidegate.core.offers.spend import day_of, ended

NOW_S = 1_795_482_000.0


def bought_node(town: Town) -> Any:
    town.report([job(1, account="vision")])
    town.look()
    (node,) = town.planner.work.control.ledger.view().nodes
    return node


def line(node_id: str, began_s: float, user: str = "ada") -> str:
    start = datetime.fromtimestamp(began_s, UTC).strftime("%FT%T")
    held = "cpu=4,gres/gpu=1,mem=1G"
    return f"1|{user}|vision|gpu|RUNNING|{start}|{start}|Unknown|{held}|{node_id}|1001|train\n"


def test_a_running_job_pays_for_its_node(counted: Town, tmp_path: Path) -> None:
    node = bought_node(counted)
    (tmp_path / "runs").write_text(line(node.instance_id, node.launched_at_s - 5))
    time.sleep(0.2)

    found = json.loads(counted.ask("cost", "--by", "user", "-o", "json").output)

    assert (found["by"], found["cluster"]) == ("user", counted.names.cluster)
    (ada,) = found["rows"]
    assert ada["name"] == "ada"
    assert ada["usd"]["job"] == ada["usd_in_all"] == found["total"]["usd_in_all"] > 0
    shown = counted.ask("cost", "--by", "job").output.splitlines()
    assert shown[0].split("  ")[0] == "job"
    assert "1 train" in shown[2]
    assert "all" in shown[-1]


def test_plans_stand_below_what_was_used_of_them() -> None:
    uses = tuple(
        PlanUse("arn:1", "Savings Plan 1", PlanKind.COMPUTE, day, 24.0, used)
        for day, used in (("2026-11-20", 24.0), ("2026-11-21", 4.5))
    )
    found = Spent("dev", "user", 0.0, 1.0, (), uses)

    assert list(of_plans(found)) == [
        "Savings Plan 1: 48.00 USD committed, of which nodes used 28.50; 19.50 idled"
    ]
    assert as_data(found)["savings_plans"] == [
        {"name": "Savings Plan 1", "usd_committed": 48.0, "usd_used": 28.5}
    ]


def test_gpus_that_idled_stand_beside_the_gpu_hours(counted: Town, tmp_path: Path) -> None:
    node = bought_node(counted)
    began_s = int(node.launched_at_s - 600)
    runs = line(node.instance_id, began_s)
    (tmp_path / "runs").write_text(runs)
    assert "of them idle" not in counted.ask("cost", "--by", "user").output

    # As the head adds it from the shared folder.
    days = {day_of(at_s).name for at_s in (began_s, time.time(), began_s - 90 * 86_400)}
    told = "".join(f"%{day}|1|{node.instance_id}|{began_s}|150|300\n%rubbish\n" for day in days)
    (tmp_path / "runs").write_text(runs + told)
    (ada,) = json.loads(counted.ask("cost", "--by", "user", "-o", "json").output)["rows"]
    assert 0 < ada["idle_gpu_hours"] == ada["seen_gpu_hours"] / 2 < ada["gpu_hours"]
    for by in ("user", "account", "job"):
        assert "of them idle" in counted.ask("cost", "--by", by).output
    (row,) = csv.DictReader(io.StringIO(counted.ask("cost", "--by", "job", "--csv").output))
    assert float(row["idle_gpu_hours"]) == pytest.approx(float(row["seen_gpu_hours"]) / 2)


def test_what_a_node_without_a_job_was_for_has_columns_of_its_own(
    counted: Town, tmp_path: Path
) -> None:
    node = bought_node(counted)
    began_s, now_s = node.launched_at_s, time.time()
    ledger = counted.planner.work.control.ledger
    ledger.advance_nodes({node.instance_id: Phase.JOINED})
    time.sleep(3.2)
    name, since_s = node.instance_id, int(began_s)
    # As the head adds it from the shared folder: whole seconds, one use after the other.
    uses = ("kept", "waiting", "drained")
    told = "".join(
        f"%{day_of(now_s).name}|{name}|{since_s + n}|{since_s + n + 1}|{use}\n"
        for n, use in enumerate(uses, start=1)
    )
    (tmp_path / "runs").write_text(told)

    result = counted.ask("cost", "--by", "pool", "--csv").output
    (row,) = csv.DictReader(io.StringIO(result))
    by_use = {use: float(row[f"usd_{use}"]) for use in (*uses, "idle", "boot")}
    assert all(by_use[use] > 0 for use in uses)
    assert sum(by_use.values()) == pytest.approx(float(row["usd"]))
    data = json.loads(counted.ask("cost", "--by", "pool", "-o", "json").output)
    assert data["total"]["usd"]["kept"] == pytest.approx(by_use["kept"])
    rows = csv.DictReader(io.StringIO(counted.ask("cost", "--focus").output))
    assert {*uses} < {each["x_Use"] for each in rows}


def test_the_jobs_of_a_user_who_was_deleted_meanwhile_are_not_nobodys(
    counted: Town, tmp_path: Path
) -> None:
    node = bought_node(counted)
    (tmp_path / "runs").write_text(line(node.instance_id, node.launched_at_s - 5, user=""))

    found = json.loads(counted.ask("cost", "--by", "user", "-o", "json").output)

    assert [row["name"] for row in found["rows"]] == ["uid 1001"]


def test_a_node_without_a_job_is_nobodys_and_what_ended_stays_on_the_bill(counted: Town) -> None:
    node = bought_node(counted)
    ledger = counted.planner.work.control.ledger
    # A bill is kept under the day of its end, of which days to come are not read.
    in_an_hour_s = node.launched_at_s + 3600
    later_today_s = min(in_an_hour_s, day_of(node.launched_at_s).ends_at_s - 0.001)
    ledger.charge([ended(node, later_today_s)])
    ledger.advance_nodes({node.instance_id: Phase.TERMINATED})

    result = counted.ask("cost", "--by", "pool", "--since", "30d", "--csv")
    (row,) = csv.DictReader(io.StringIO(result.output))

    # What lies in the future has not been yet.
    assert row["pool"] == "t4"
    assert float(row["usd"]) == pytest.approx(float(row["usd_boot"]), abs=1e-9)


def test_a_cluster_that_bought_nothing_says_so(counted: Town) -> None:
    result = counted.ask("cost", "--by", "account")

    assert (result.exit_code, result.output.strip()) == (0, "no node has cost anything since then")


def test_without_accounting_the_remedy_is_told(town: Town) -> None:
    result = town.ask("cost", "--by", "user")

    assert result.exit_code == 1
    assert "add accounting: true to slurm" in result.output


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--by", "planet"), 2, "it is one of job, user, account"),
        (("--by", "user", "--spent"), 2, "--by WHAT"),
        (("--by", "user", "--since", "yesterday"), 1, "neither a span like 7d nor a day"),
        (("--by", "user", "--since", "2001-01-01"), 1, "400 days"),
        (("--by", "user", "--since", "2199-01-01"), 1, "400 days"),
        (("--by", "user", "--since", "0s"), 1, "400 days"),
    ],
)
def test_what_cannot_be_asked_is_refused(counted: Town, words, code, says) -> None:
    result = counted.ask("cost", *words)

    assert (result.exit_code, says in result.output) == (code, True), result.output


def test_a_moment_is_a_span_back_or_a_day_in_utc() -> None:
    assert since("7d", NOW_S) == NOW_S - 7 * 86_400
    assert since("2026-11-24", NOW_S) == NOW_S - 3600
    assert since("2026-11-24T01:00:00+09:00", NOW_S) == NOW_S - 9 * 3600
    with pytest.raises(BadConfig):
        since("soon", NOW_S)
