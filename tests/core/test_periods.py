"""Days, weeks and months that are reported on."""

from datetime import UTC, datetime

import pytest

from tidegate.core.offers.periods import Every, before, ended, period_of


def at_s(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("every", "moment", "name", "starts"),
    [
        (Every.DAY, "2026-11-23T23:59:59", "2026-11-23", "2026-11-23"),
        (Every.WEEK, "2026-11-22T23:59:59", "2026-W47", "2026-11-16"),
        (Every.WEEK, "2026-11-23T00:00:00", "2026-W48", "2026-11-23"),
        (Every.WEEK, "2027-01-01T12:00:00", "2026-W53", "2026-12-28"),
        (Every.WEEK, "2027-01-04T00:00:00", "2027-W01", "2027-01-04"),
        (Every.MONTH, "2024-02-29T12:00:00", "2024-02", "2024-02-01"),
    ],
)
def test_a_moment_lies_in_one_period(every: Every, moment: str, name: str, starts: str) -> None:
    found = period_of(every, at_s(moment))

    assert (found.name, found.starts_at_s) == (name, at_s(starts))
    assert found.starts_at_s <= at_s(moment) < found.ends_at_s


@pytest.mark.parametrize("every", Every)
def test_those_that_are_over_follow_each_other_and_sort_by_name(every: Every) -> None:
    now_s = at_s("2027-03-01T00:00:00")

    found = ended(every, now_s, 7)

    assert found[-1] == before(every, period_of(every, now_s))
    assert found[-1].ends_at_s <= now_s < period_of(every, now_s).ends_at_s
    assert [each.ends_at_s for each in found[:-1]] == [each.starts_at_s for each in found[1:]]
    assert sorted(each.name for each in found) == [each.name for each in found]
