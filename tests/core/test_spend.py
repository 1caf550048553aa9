"""Budgets: what was spent by day and month, and what a spent one stops."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.core.reading import launches, why
from tests.make import NOW_S, cluster, instance, job, node, placement, pool, record, snapshot
from tidegate.core.explain.overview import overview
from tidegate.core.model.cluster import Cluster, Limits, SpendingBudget
from tidegate.core.model.ledger import Charge, LaunchRecord, NodeRecord, Phase
from tidegate.core.model.plan import Resume
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why
from tidegate.core.offers.limits import Usage
from tidegate.core.offers.spend import (
    all_spent,
    charges,
    day_of,
    ended,
    kept_until_s,
    month_of,
    spent,
    used_up,
)
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
TODAY, MONTH = day_of(NOW_S).name, month_of(NOW_S).name


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def ran(since: str, until: str, account: str = "", user: str = "") -> dict[tuple[str, str], float]:
    """What a node at one USD per hour is charged, by period and scope."""
    begun = replace(record(), launched_at_s=at(since), usd_per_hour=1.0)
    made = replace(begun, account=account, user=user)
    return {(c.period, c.scope): round(c.usd, 6) for c in charges(made, at(until))}


def test_a_node_costs_cluster_pool_account_and_user_by_the_second() -> None:
    assert ran("2026-11-21T10:00:00", "2026-11-21T10:30:36", "nlp", "ada") == {
        (period, scope): 0.51
        for period in ("2026-11-21", "2026-11")
        for scope in ("cluster", "pool t4", "account nlp", "user ada")
    }


def test_a_night_over_the_end_of_a_month_is_split() -> None:
    found = ran("2026-11-30T22:00:00", "2026-12-01T03:00:00")

    assert {period: usd for (period, scope), usd in found.items() if scope == "cluster"} == {
        "2026-11-30": 2.0,
        "2026-12-01": 3.0,
        "2026-11": 2.0,
        "2026-12": 3.0,
    }


def test_a_long_life_is_charged_to_every_month_and_to_the_last_days() -> None:
    found = ran("2026-01-01T00:00:00", "2026-12-01T00:00:00")

    ours = {period: usd for (period, scope), usd in found.items() if scope == "cluster"}
    months = {period: usd for period, usd in ours.items() if len(period) == 7}
    assert sum(months.values()) == 334 * 24
    assert months["2026-02"] == 28 * 24
    assert [period for period in ours if len(period) == 10] == [
        "2026-11-28",
        "2026-11-29",
        "2026-11-30",
    ]


def test_each_day_that_is_charged_is_charged_as_a_whole() -> None:
    found = ran("2026-11-01T00:00:00", "2026-11-20T18:00:00")

    days = {period: usd for (period, scope), usd in found.items() if scope == "cluster"}
    assert {period: usd for period, usd in days.items() if len(period) == 10} == {
        "2026-11-17": 24.0,
        "2026-11-18": 24.0,
        "2026-11-19": 24.0,
        "2026-11-20": 18.0,
    }


def test_days_of_which_the_ledger_knows_a_part_are_not_told() -> None:
    """A node that lives for ten days was charged to the last ones of them; one that ended five days
    ago to that day as well.
    """
    ended = Charge(day_of(NOW_S - 5 * 86_400).name, "cluster", 7.0)
    lives = replace(record(age_s=10 * 86_400.0), usd_per_hour=1.0)

    found = all_spent(replace(snapshot(records=[lives]), spent=(ended,)))

    days = {e.period: e.usd for e in found if len(e.period) == 10 and e.scope == "cluster"}
    assert sorted(days) == [day_of(NOW_S - n * 86_400).name for n in (3, 2, 1, 0)]
    assert [days[each] for each in sorted(days)[:3]] == pytest.approx([24.0] * 3)
    months = [e for e in found if len(e.period) == 7 and e.scope == "cluster"]
    assert sum(each.usd for each in months) == pytest.approx(240.0)


def test_what_is_prepaid_costs_nothing_more() -> None:
    assert charges(replace(record(), usd_per_hour=0.0), NOW_S) == ()


@pytest.mark.parametrize("period", ["2026-11-21", "2026-11"])
def test_counters_outlive_their_period(period: str) -> None:
    end_s = max(day_of(at("2026-11-21")).ends_at_s, month_of(at("2026-11-21")).ends_at_s)

    assert kept_until_s(period) > (end_s if len(period) == 7 else day_of(at(period)).ends_at_s)


def test_another_price_is_charged_from_when_it_began() -> None:
    made = replace(record(age_s=2 * HOUR_S), usd_per_hour=1.0, priced_at_s=NOW_S - HOUR_S / 4)

    assert {each.usd for each in charges(made, NOW_S)} == {0.25}
    assert charges(made, NOW_S - HOUR_S) == ()


def with_budget(scope: str, **budget: float) -> Cluster:
    return replace(
        cluster(pool(), pool("a10g", weight=2)), budgets={scope: SpendingBudget(**budget)}
    )


def seen(of: Cluster, *jobs: Job, usd: float, scope: str, **more: object) -> Snapshot:
    spent = (Charge(TODAY, scope, usd), Charge(MONTH, scope, usd))
    return replace(snapshot(jobs, of=of, **more), spent=spent)  # type: ignore[arg-type]


@pytest.mark.parametrize(("is_shown", "hours"), [(False, 1), (True, 3)])
def test_a_node_that_outlives_its_reclaim_costs_until_it_ends(is_shown: bool, hours: int) -> None:
    """A retirement that had begun when it was announced ends nothing by itself."""
    made = replace(record(), launched_at_s=NOW_S, usd_per_hour=1.0, reclaim_at_s=NOW_S + HOUR_S)

    stretch = ended(made, NOW_S + 3 * HOUR_S, is_shown=is_shown)

    assert stretch.until_s == NOW_S + hours * HOUR_S
    assert stretch.bill is not None
    assert stretch.bill.until_s == stretch.until_s


def test_living_nodes_count_beside_those_that_ended() -> None:
    lives = replace(record(age_s=HOUR_S), usd_per_hour=3.0)
    counted = replace(record("i-2", age_s=HOUR_S, phase=Phase.RELEASED), ended_at_s=NOW_S)
    of = with_budget("cluster", usd_per_day=10.0)

    found = spent(seen(of, usd=2.0, scope="cluster", records=[lives, counted]))

    assert found[TODAY, "cluster"] == pytest.approx(5.0)
    assert found[TODAY, "pool t4"] == pytest.approx(3.0)


def test_what_other_days_cost_does_not_count() -> None:
    of = with_budget("cluster", usd_per_day=10.0)
    before = replace(snapshot(of=of), spent=(Charge("2026-01-01", "cluster", 99.0),))

    assert used_up(before) == {}


def test_below_its_budget_a_cluster_buys() -> None:
    made = plan(seen(with_budget("cluster", usd_per_day=10.0), job(), usd=9.9, scope="cluster"))

    assert launches(made)


def test_a_spent_budget_of_the_cluster_stops_every_launch() -> None:
    made = plan(seen(with_budget("cluster", usd_per_day=10.0), job(), usd=10.0, scope="cluster"))

    assert launches(made) == []
    assert why(made) == (
        "the budget of the cluster, 10.00 USD per day, is spent: nothing is launched for it "
        "until 2027-01-16 00:00 UTC"
    )
    (why_not, *_) = made.unmet[0].why_nots
    assert (why_not.kind, why_not.until_s) == (Why.BUDGET, at("2027-01-16"))


def test_a_spent_budget_of_the_month_lasts_until_the_month_ends() -> None:
    made = plan(seen(with_budget("cluster", usd_per_month=5.0), job(), usd=6.0, scope="cluster"))

    assert "until 2027-02-01 00:00 UTC" in why(made)


def test_a_spent_budget_of_a_pool_leaves_the_others() -> None:
    of = with_budget("pool a10g", usd_per_day=1.0)

    made = plan(seen(of, job(), usd=2.0, scope="pool a10g"))

    assert [each.pool for each in launches(made)] == ["t4"]


PAYERS = pytest.mark.parametrize("scope", ["account nlp", "user bob"])


@PAYERS
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_spent_budget_stops_the_jobs_of_its_account_or_user_alone(nodes: int, scope: str) -> None:
    of = with_budget(scope, usd_per_day=1.0)
    theirs = job(1, nodes=nodes, account="nlp", user="bob")
    others = job(2, nodes=nodes, account="vision")

    made = plan(seen(of, theirs, others, usd=1.0, scope=scope))

    assert [each.for_jobs for each in launches(made)] == [("2",)]
    assert why(made, "1").startswith(f"the budget of {scope}, 1.00 USD per day, is spent")


@PAYERS
def test_jobs_of_a_spent_budget_still_use_what_is_there(scope: str) -> None:
    of = with_budget(scope, usd_per_day=1.0)
    there = {"nodes": [node()], "instances": [instance()], "records": [record()]}

    made = plan(seen(of, job(account="nlp", user="bob"), usd=1.0, scope=scope, **there))

    assert [each.by for each in made.served] == [("i-1",)]


def test_they_use_also_what_a_gang_before_them_has_held_in_vain() -> None:
    of = replace(with_budget("user ada", usd_per_day=1.0), limits=Limits(nodes=1))
    there = {"nodes": [node()], "instances": [instance()], "records": [record()]}
    gang, small = job(1, nodes=2, priority=9), job(2, user="ada")

    made = plan(seen(of, gang, small, usd=2.0, scope="user ada", **there))

    assert {each.job_id: each.by for each in made.served} == {"2": ("i-1",)}
    assert [each.job_id for each in made.unmet] == ["1"]


def test_a_user_with_a_budget_shares_no_gangs_launch_with_one_without() -> None:
    """A launch counts for the first of its jobs alone."""
    of = with_budget("user bob", usd_per_day=1.0)

    made = plan(seen(of, job(1, nodes=2), job(2, nodes=2, user="bob"), usd=0.0, scope="user bob"))

    assert [(each.for_jobs, each.user) for each in launches(made)] == [
        (("1",), "ada"),
        (("2",), "bob"),
    ]


def test_of_two_spent_budgets_the_accounts_is_named() -> None:
    of = replace(
        with_budget("account nlp", usd_per_day=1.0),
        budgets={"account nlp": SpendingBudget(1.0), "user ada": SpendingBudget(1.0)},
    )
    spent = tuple(Charge(TODAY, scope, 2.0) for scope in of.budgets)

    made = plan(replace(snapshot([job(account="nlp")], of=of), spent=spent))

    assert why(made).startswith("the budget of account nlp")


def test_a_launch_in_doubt_of_a_user_whose_budget_is_spent_asks_for_nothing_more() -> None:
    of = with_budget("user bob", usd_per_day=1.0)
    (launch,) = launches(plan(snapshot([job(user="bob")], of=of)))
    doubt = [LaunchRecord(launch, NOW_S - 61, fleet_request(launch, "test", placement(of)))]

    def resumed(usd: float) -> list[bool]:
        made = plan(seen(of, usd=usd, scope="user bob", launches=doubt))
        return [each.may_buy for each in made.actions if isinstance(each, Resume)]

    assert (resumed(0.0), resumed(1.0)) == ([True], [False])


def test_nothing_is_kept_warm_on_a_spent_budget() -> None:
    of = replace(with_budget("pool t4", usd_per_day=1.0), pools=(replace(pool(), min_nodes=1),))

    assert launches(plan(seen(of, usd=0.0, scope="pool t4")))
    assert not launches(plan(seen(of, usd=1.0, scope="pool t4")))


def test_a_pool_whose_budget_is_spent_counts_as_over_its_limits() -> None:
    of = with_budget("pool t4", usd_per_day=1.0)
    usage = Usage(of, used_up(seen(of, usd=1.0, scope="pool t4")))

    assert usage.is_exceeded("t4")
    assert not usage.is_exceeded("a10g")


def test_launches_know_who_pays() -> None:
    (made,) = launches(plan(snapshot([job(account="nlp")])))

    assert (made.account, made.user) == ("nlp", "ada")


def lived(usd: float) -> NodeRecord:
    return replace(record(age_s=HOUR_S), usd_per_hour=usd)


@pytest.mark.parametrize(
    ("usd", "said"),
    [
        (7.9, []),
        (8.0, ["the budget of the cluster, 10.00 USD per day, is spent to 80 %"]),
        (10.0, [
            "the budget of the cluster, 10.00 USD per day, is spent: nothing is launched for it "
            "until 2027-01-16 00:00 UTC"
        ]),
    ],
)  # fmt: skip
def test_status_warns_from_four_fifths_on(usd: float, said: list[str]) -> None:
    of = with_budget("cluster", usd_per_day=10.0)

    found = overview(seen(of, usd=0.0, scope="cluster", records=[lived(usd)]), None)

    assert list(found.needs_a_look) == said
    assert [(each.usd, each.budget_usd) for each in found.budgets] == [(usd, 10.0)]


@pytest.mark.parametrize(("noted", "stops"), [(0, True), (1, False)])
def test_a_launch_in_doubt_counts_in_budgets_as_if_all_of_it_had_come(
    noted: int, stops: bool
) -> None:
    """Two nodes at 0.2 USD per hour cost 0.2 in half an hour; what the ledger has counts there."""
    of = replace(cluster(), budgets={"user ada": SpendingBudget(usd_per_day=0.15)})
    bought = launches(plan(snapshot([job(1), job(2)], of=of)))[0]
    request = fleet_request(bought, "test", placement(of))
    doubted = LaunchRecord(bought, NOW_S - HOUR_S / 2, request)
    free = replace(record(), launch_id=bought.launch_id, usd_per_hour=0.0)
    waiting = [job(3, gpus=4), job(4, gpus=4, user="bob")]

    seen = snapshot(waiting, of=of, launches=[doubted], records=[free] * noted)
    made = plan(seen)

    assert bought.count == 2
    assert {each.job_id for each in made.unmet} == ({"3"} if stops else set())
    assert not stops or why(made, "3") == (
        "the budget of user ada, 0.15 USD per day, would be spent by launches of which EC2 has not"
        " said yet what they brought: nothing is launched for it before"
    )
