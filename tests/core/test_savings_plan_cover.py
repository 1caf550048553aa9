"""Which of what runs Savings Plans cover, in AWS's order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.test_savings_plans import ARN, savings_plan
from tests.make import T4, T4_BIG
from tidegate.core.model.savings_plans import Committed, PlanKind, PlanRate, SavingsPlan
from tidegate.core.offers.savings_plans import OnDemand, cover, totals


def test_plans_for_ec2_instances_come_first_and_what_saves_most() -> None:
    compute = savings_plan(0.5)
    family = SavingsPlan(
        "arn:z", PlanKind.EC2_INSTANCE, 0.2, {T4.name: PlanRate(0.2, 0.5)}, 0.0, 1e12
    )
    fleet = [OnDemand("i-big", T4_BIG.name, 1.0), OnDemand("i-b", T4.name, 2.0)]
    fleet += [OnDemand("i-a", T4.name, 2.0)]

    found = cover([compute, family], fleet)

    # 40 % off a T4 and 38 % off the big one; of two alike the older, of equal ages by name.
    assert found.committed == {
        "i-a": Committed("arn:z", 0.2),
        "i-b": Committed(ARN, 0.3),
        "i-big": Committed(ARN, 0.2),
    }
    assert found.left == {"arn:z": 0.0, ARN: pytest.approx(0.0)}
    assert found.committed["i-big"].saved_usd_per_hour == pytest.approx(0.2 / 2.4 * 1.486)


def test_of_two_types_that_one_is_covered_of_which_the_larger_part_is_saved() -> None:
    rates = {T4.name: PlanRate(0.4, 0.5), T4_BIG.name: PlanRate(2.0, 3.9)}
    fleet = [OnDemand("i-1", T4.name, 1.0), OnDemand("i-2", T4_BIG.name, 2.0)]

    found = cover([savings_plan(2.1, rates=rates)], fleet)

    assert {name: each.usd_per_hour for name, each in found.committed.items()} == {
        "i-2": 2.0,
        "i-1": pytest.approx(0.1),
    }


def test_of_equal_discounts_the_lowest_rate_is_covered_first_however_floats_round() -> None:
    # Both save 30 %, which of the second is 0.30000000000000004.
    rates = {T4.name: PlanRate(0.07, 0.1), T4_BIG.name: PlanRate(0.77, 1.1)}
    assert rates[T4.name].saved_share < rates[T4_BIG.name].saved_share
    fleet = [OnDemand("i-big", T4_BIG.name, 1.0), OnDemand("i-small", T4.name, 2.0)]

    found = cover([savings_plan(0.07, rates=rates)], fleet)

    assert found.committed == {"i-small": Committed(ARN, 0.07)}


@given(
    counts=st.tuples(*[st.integers(0, 6)] * 3),
    usd=st.tuples(*[st.floats(0.01, 12.0)] * 3),
    rates=st.lists(st.floats(0.05, 0.95), min_size=9, max_size=9),
)
def test_totals_are_the_sums_of_what_is_covered(
    counts: tuple[int, ...], usd: tuple[float, ...], rates: list[float]
) -> None:
    types = ("a", "b", "c")
    plans = [
        SavingsPlan(
            f"arn:{number}",
            PlanKind.COMPUTE if number else PlanKind.EC2_INSTANCE,
            usd[number],
            {
                each: PlanRate(rates[3 * number + place], 1.0)
                for place, each in enumerate(types)
                if number or each != "b"
            },
            0.0,
            1e12,
        )
        for number in range(3)
    ]
    fleet = [
        OnDemand(f"i-{each}{number}", each, 1.0)
        for each, count in zip(types, counts, strict=True)
        for number in range(count)
    ]

    found = totals(plans, dict(zip(types, counts, strict=True)))

    each = cover(plans, fleet)
    saved = sum(paid.saved_usd_per_hour for paid in each.committed.values())
    assert found.saved == pytest.approx(saved, abs=1e-5)
    assert found.unused == pytest.approx(sum(each.left.values()), abs=1e-5)
