"""What of a Savings Plan was used, hour by hour, and what of it idled."""

from dataclasses import replace

import pytest

from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ledger import Bill
from tidegate.core.model.savings_plans import Committed, PlanKind, PlanRate, SavingsPlan
from tidegate.core.offers.plan_use import PlanUse, plan_use

HOUR_S, DAY_S = 3600.0, 86_400.0
MIDNIGHT_S = 1_795_478_400.0  # of 2026-11-24 in UTC
ARN = "arn:aws:savingsplans::123456789012:savingsplan/0f3a"
PLAN = SavingsPlan(ARN, PlanKind.COMPUTE, 1.0, {"g5.xlarge": PlanRate(0.6, 1.0)}, 0.0, 1e12)


def bill(since_h: float, until_h: float, usd: float = 0.6, name: str = "i-1") -> Bill:
    since_s, until_s = MIDNIGHT_S + since_h * HOUR_S, MIDNIGHT_S + until_h * HOUR_S
    on = Offering("g5.xlarge", "us-east-1a", Market.ON_DEMAND)
    made = Bill(name, "gpu", on, "lab", since_s, since_s, since_s, until_s, usd + 0.01)
    return replace(made, committed=Committed(ARN, usd))


def used(*bills: Bill, plan: SavingsPlan = PLAN, until_h: float = 24) -> tuple[PlanUse, ...]:
    return plan_use([plan], bills, MIDNIGHT_S, MIDNIGHT_S + until_h * HOUR_S)


def test_what_idles_in_an_hour_is_lost_whatever_the_next_one_needs() -> None:
    (day,) = used(bill(0, 2), bill(2, 3, 1.0), bill(2.5, 3, 0.4, "i-2"))

    assert (day.plan, day.day, day.name) == (ARN, "2026-11-24", "Savings Plan 0f3a")
    assert day.committed_usd == pytest.approx(24.0)
    # Two hours of 0.6; in the third no more than there is, though 1.2 was noted.
    assert day.used_usd == pytest.approx(2 * 0.6 + 1.0)
    assert day.unused_usd == pytest.approx(24.0 - 2.2)


def test_a_node_over_midnight_is_used_on_both_days_and_a_day_begins_where_it_was_asked() -> None:
    first, second = used(bill(22, 26), until_h=30)

    assert [first.used_usd, second.used_usd] == pytest.approx([1.2, 1.2])
    assert [first.committed_usd, second.committed_usd] == pytest.approx([24.0, 6.0])
    (part,) = plan_use([PLAN], [bill(0, 4)], MIDNIGHT_S + 2.5 * HOUR_S, MIDNIGHT_S + 5 * HOUR_S)
    assert [part.committed_usd, part.used_usd] == pytest.approx([2.5, 0.9])


def test_nothing_is_committed_to_before_its_begin_and_after_its_end() -> None:
    late = replace(PLAN, starts_at_s=MIDNIGHT_S + 23 * HOUR_S, ends_at_s=MIDNIGHT_S + 23.5 * HOUR_S)

    assert [each.committed_usd for each in used(plan=late)] == [pytest.approx(0.5)]
    assert used(plan=replace(PLAN, ends_at_s=MIDNIGHT_S)) == ()


def test_what_another_plan_paid_is_no_use_of_this_one() -> None:
    other = replace(bill(0, 2), committed=Committed("arn:other", 0.6))

    assert used(other)[0].used_usd == 0.0
