"""`tidegate cost --spent`: what nodes have cost, by the ledger of a cluster in the local cloud."""

from datetime import UTC, datetime
from typing import Any

import yaml
from rich.console import Console

from tests.cli.conftest import Town
from tests.make import job
from tidegate.cli.spent import screen
from tidegate.core.model.cluster import CLUSTER_SCOPE, account_scope, pool_scope
from tidegate.core.model.ledger import Charge

NOW_S = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()


def rows(*found: Charge) -> list[list[str]]:
    console = Console(width=200, no_color=True)
    with console.capture() as captured:
        console.print(screen(found, NOW_S))
    lines = captured.get().splitlines()
    return [line.split("  ") for line in lines]


def cells(line: list[str]) -> list[str]:
    return [each.strip() for each in line if each.strip()]


def test_what_was_spent_is_told_by_day_and_month_for_the_cluster_pools_and_accounts() -> None:
    head, _, *body = rows(
        Charge("2026-03-01", CLUSTER_SCOPE, 12.0),
        Charge("2026-03-01", pool_scope("a10g"), 2.0),
        Charge("2026-03-01", pool_scope("t4"), 10.0),
        Charge("2026-02-28", CLUSTER_SCOPE, 7.0),
        Charge("2026-03", CLUSTER_SCOPE, 12.0),
        Charge("2026-03", pool_scope("t4"), 10.0),
        Charge("2026-03", pool_scope("a10g"), 2.0),
        Charge("2026-03", account_scope("vision"), 1.5),
        Charge("2026-02", CLUSTER_SCOPE, 1234.5),
        Charge("2025-12", CLUSTER_SCOPE, 1.0),
        Charge("2025-11", CLUSTER_SCOPE, 2.0),
    )

    assert cells(head)[1:] == ["2026-03-01", "2026-02-28", "2026-03", "2026-02", "2025-12"]
    assert [cells(each) for each in body] == [
        ["all", "12.00", "7.00", "12.00", "1,234.50", "1.00"],
        ["pool t4", "10.00", "0.00", "10.00", "0.00", "0.00"],
        ["pool a10g", "2.00", "0.00", "2.00", "0.00", "0.00"],
        ["account vision", "0.00", "0.00", "1.50", "0.00", "0.00"],
    ]


def test_a_cluster_that_has_bought_nothing_says_so(town: Town) -> None:
    result = town.ask("cost", "--spent")

    assert (result.exit_code, result.output.strip()) == (0, "no node has cost anything yet")


def test_nodes_that_live_count_until_now(town: Town) -> None:
    town.report([job(1, account="vision")])
    town.look()

    found: Any = yaml.safe_load(town.ask("cost", "--spent", "-o", "json").output)

    scopes = {each["scope"] for each in found}
    assert {CLUSTER_SCOPE, pool_scope("t4"), account_scope("vision")} <= scopes
    assert all(0 <= each["usd"] < 0.1 for each in found)
    assert "pool t4" in town.ask("cost", "--spent").output


def test_one_question_at_a_time(town: Town) -> None:
    for words in ((), ("--idle", "--spent"), ("--busy", "3", "--spent")):
        result = town.ask("cost", *words)
        assert result.exit_code == 2
        assert "say --spent for what nodes have cost" in result.output
