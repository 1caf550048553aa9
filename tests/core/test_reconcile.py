"""Our bill of nodes beside AWS's, and what only one of the two knows."""

from dataclasses import replace

import pytest

from tests.core.test_allocation import MIDNIGHT_S, START_S, TYPES, line
from tidegate.core.model.ledger import Bill
from tidegate.core.offers.allocation import allocated
from tidegate.core.offers.reconcile import AwsCharge, OneSided, Reconciled, reconciled

FIRST, SECOND = "2026-11-23", "2026-11-24"


def charge(resource: str = "i-1", day: str = FIRST, usd: float = 4.0, pool: str = "") -> AwsCharge:
    """`pool`: of tags that name the cluster."""
    return AwsCharge(day, resource, pool, bool(pool), usd)


def both(charges: list[AwsCharge], *bills: Bill, until_s: float = START_S + 7200) -> Reconciled:
    shares = allocated(bills, (), TYPES, START_S, until_s)
    return reconciled(charges, bills, shares)


def rows(found: Reconciled) -> list[tuple[str, str, float, float]]:
    return [(row.day, row.pool, row.ours_usd, row.aws_usd) for row in found.rows]


def test_a_node_that_lives_over_midnight_is_compared_day_by_day() -> None:
    found = both([charge(), charge(day=SECOND, usd=3.5)], line())

    assert rows(found) == [(FIRST, "a10g", 4.0, 4.0), (SECOND, "a10g", 4.0, 3.5)]
    assert [row.difference_usd for row in found.rows] == [0.0, -0.5]
    assert (found.only_aws, found.only_ours, found.is_tagged) == ((), (), False)


def test_ours_counts_as_far_as_the_report_goes() -> None:
    assert rows(both([charge()], line(), until_s=MIDNIGHT_S)) == [(FIRST, "a10g", 4.0, 4.0)]


def test_disks_and_addresses_with_the_tags_of_a_node_belong_to_its_pool() -> None:
    found = both([charge(), charge("vol-1", usd=0.25, pool="a10g")], line(until_s=MIDNIGHT_S))

    assert rows(found) == [(FIRST, "a10g", 4.0, 4.25)]
    assert found.only_aws == ()


def test_what_is_of_another_cluster_or_no_pool_is_not_ours() -> None:
    head = AwsCharge(FIRST, "i-head", "", True, 2.0)

    found = both([charge(), charge("i-others"), head], line(until_s=MIDNIGHT_S))

    assert rows(found) == [(FIRST, "a10g", 4.0, 4.0)]
    assert found.is_tagged


def test_an_instance_with_our_tags_that_the_ledger_does_not_know_is_named() -> None:
    strange = [charge("i-9", pool="t4", usd=1.0), charge("i-9", SECOND, 2.0, "t4")]

    found = both([*strange, charge("i-8", pool="t4", usd=5.0)])

    assert found.only_aws == (
        OneSided("i-8", "t4", FIRST, 5.0),
        OneSided("i-9", "t4", FIRST, 3.0),
    )
    assert rows(found) == [(FIRST, "t4", 0.0, 6.0), (SECOND, "t4", 0.0, 2.0)]


def test_a_node_that_aws_does_not_charge_for_is_named() -> None:
    other = line(instance_id="i-2", pool="t4", since_s=MIDNIGHT_S)

    found = both([charge(), charge(day=SECOND)], line(), other)

    assert found.only_ours == (OneSided("i-2", "t4", SECOND, 4.0),)


def test_the_pool_of_the_ledger_counts_before_that_of_a_tag() -> None:
    found = both([charge(pool="renamed")], line(until_s=MIDNIGHT_S))

    assert rows(found) == [(FIRST, "a10g", 4.0, 4.0)]


@pytest.mark.parametrize("usd", [0.0, 0.3])
def test_sums_are_those_of_the_rows(usd: float) -> None:
    bills = [line(), replace(line(), instance_id="i-2", pool="t4", usd_per_hour=0.7)]

    found = both([charge(), charge("i-2", usd=usd)], *bills)

    assert found.ours_usd == pytest.approx(8.0 + 1.4)
    assert found.aws_usd == pytest.approx(4.0 + usd)
