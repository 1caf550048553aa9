"""Savings Plans in a cluster file: what they cover, at which rates, and which are refused."""

from pathlib import Path
from typing import Any

import pytest

from tests.wire.cluster_files import good, load, problems
from tidegate.core.model.savings_plans import PlanKind, PlanRate, SavingsPlan

ARN = "arn:aws:savingsplans::123456789012:savingsplan/0f3a1b2c"
PLAN: dict[str, Any] = {
    "arn": ARN,
    "kind": "compute",
    "usd_per_hour": 1.5,
    "discount_percent": 40,
    "starts_at": "2026-06-01T00:00:00Z",
    "ends_at": "2027-06-01T00:00:00Z",
}


def plans(tmp_path: Path, *of: dict[str, Any], **more: Any) -> tuple[SavingsPlan, ...]:
    return load(tmp_path, good({"savings_plans": list(of), **more})).cluster.savings_plans


def rates_of(found: SavingsPlan) -> tuple[float, float]:
    """Of the only type: what it uses of the plan, and what it costs beyond it."""
    (rate,) = found.rates.values()
    return rate.usd_per_hour, rate.on_demand_usd_per_hour


def wrong(tmp_path: Path, *of: dict[str, Any], **more: Any) -> list[str]:
    return problems(tmp_path, good({"savings_plans": list(of), **more}))


def test_what_it_takes_off_is_off_what_types_cost_on_demand_without_their_disk(
    tmp_path: Path,
) -> None:
    (found,) = plans(tmp_path, PLAN)

    assert (found.arn, found.kind, found.usd_per_hour) == (ARN, PlanKind.COMPUTE, 1.5)
    assert rates_of(found) == pytest.approx((0.6 * 0.526, 0.526))
    assert found.ends_at_s - found.starts_at_s == 365 * 86400


def test_a_rate_that_is_said_counts_and_a_contract_is_off_what_is_beyond(tmp_path: Path) -> None:
    said = {**PLAN, "rates_usd_per_hour": {"g4dn.xlarge": 0.3}, "discount_percent": None}
    del said["discount_percent"]

    (own,) = plans(tmp_path, said)
    (listed,) = plans(tmp_path, PLAN, discount_percent=10, prices_usd_per_hour={})

    assert own.rates == {"g4dn.xlarge": PlanRate(0.3, 0.526)}
    # AWS's list says 0.526 too; the plan's 40 % are off it, and 10 % off what is beyond the plan.
    assert rates_of(listed) == pytest.approx((0.3156, 0.4734))


def test_a_plan_for_instances_covers_its_family_alone(tmp_path: Path) -> None:
    family = {**PLAN, "kind": "ec2-instance", "family": "g4dn"}

    assert plans(tmp_path, family)[0].rates.keys() == {"g4dn.xlarge"}
    assert wrong(tmp_path, {**family, "family": "p5"}) == [
        "savings_plans[0] no pool with on-demand has a type that it covers: it would be paid for"
        " and never used"
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"family": "g4dn"}, "a plan of kind compute covers every family: take family out"),
        ({"kind": "ec2-instance"}, "a plan of kind ec2-instance is for one family"),
        ({"ends_at": "2026-06-01T00:00:00Z"}, "ends_at must be later than starts_at"),
        ({"arn": "sp-1"}, "must be a Savings Plan's ARN, like arn:aws:savingsplans"),
        ({"usd_per_hour": 0}, "must be more than 0, is 0"),
        (
            {"discount_percent": None},
            "has neither discount_percent nor rates_usd_per_hour: it covers none",
        ),
        (
            {"kind": "ec2-instance", "family": "p5", "rates_usd_per_hour": {"g4dn.xlarge": 0.3}},
            "rates_usd_per_hour: g4dn.xlarge is not of the family p5",
        ),
        (
            {"rates_usd_per_hour": {"g4dn.xlarge": 0.6}},
            "rates_usd_per_hour.g4dn.xlarge 0.6, but g4dn.xlarge costs 0.526 on demand",
        ),
    ],
)
def test_what_cannot_be_a_plan_is_refused(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    found = wrong(tmp_path, {name: v for name, v in {**PLAN, **change}.items() if v is not None})

    assert any(said in each for each in found), found


ABROAD = {
    "region": "ap-northeast-1",
    "pools.t4.zones": ["ap-northeast-1a"],
}


def test_a_rate_is_held_against_a_price_of_its_region_alone(tmp_path: Path) -> None:
    # AWS's list says 0.526 in us-east-1, and 0.71 in Tokyo.
    dear = {**PLAN, "rates_usd_per_hour": {"g4dn.xlarge": 0.6}}
    says = "rates_usd_per_hour.g4dn.xlarge 0.6, but g4dn.xlarge costs 0.526 on demand"

    assert any(says in each for each in wrong(tmp_path, dear, prices_usd_per_hour={}))
    own = {"g4dn.xlarge": {"on-demand": 0.526}}
    assert any(says in each for each in wrong(tmp_path, dear, prices_usd_per_hour=own, **ABROAD))
    (found,) = plans(tmp_path, dear, prices_usd_per_hour={}, **ABROAD)

    # Until the market is read it saves nothing; then it is judged by what EC2 asks there.
    assert found.rates == {"g4dn.xlarge": PlanRate(0.6, 0.6)}
    assert found.at({"g4dn.xlarge": 0.71}, 0.0).rates == {"g4dn.xlarge": PlanRate(0.6, 0.71)}
    assert found.at({"g4dn.xlarge": 0.6}, 0.0).rates == {}


def test_a_plan_is_named_once_and_of_what_some_pool_buys_on_demand(tmp_path: Path) -> None:
    spot = {"pools.t4.capacity_types": ["spot"]}

    assert wrong(tmp_path, PLAN, PLAN) == [
        "savings_plans[1].arn is named by savings_plans[0] already"
    ]
    assert "no pool with on-demand has a type that it covers" in wrong(tmp_path, PLAN, **spot)[0]
