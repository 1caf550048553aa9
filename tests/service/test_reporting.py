"""One page for each period that is over, told of once, whatever dies in between."""

import pytest

from tests.cli.a_week import two_weeks
from tests.core.test_periods import at_s
from tidegate.core.model.notice import NoticeCode
from tidegate.core.offers.allocation import Accounted
from tidegate.core.offers.periods import Every
from tidegate.service.reporting import Reporter
from tidegate.sim.clock import SimClock
from tidegate.sim.faults import KillAt, Killed
from tidegate.sim.ledger import SimLedger
from tidegate.sim.notices import SimNotices
from tidegate.sim.reports import SimReports
from tidegate.wire.catalogue import load_catalogue

TYPES = {name: row.instance_type for name, row in load_catalogue().items()}
MONDAY_S = at_s("2026-11-23")


class Place:
    """What outlives a function; `reporter()` is one run's."""

    def __init__(self) -> None:
        self.clock = SimClock(MONDAY_S + 1800.0)
        self.ledger = SimLedger(self.clock)
        self.reports = SimReports(self.clock)
        self.notices = SimNotices()

    def hand_in(self, *periods: str) -> None:
        for each in periods:
            self.reports.hand_in(each, Accounted(tuple(two_weeks()[1])))

    def reporter(self, every: Every = Every.WEEK, *, tells: bool = True) -> Reporter:
        return Reporter(
            cluster="dev",
            every=every,
            reports=self.reports,
            ledger=self.ledger,
            clock=self.clock,
            types=TYPES,
            notices=self.notices if tells else None,
        )

    def break_with(self, faults: KillAt) -> None:
        self.reports.faults = self.ledger.faults = self.notices.faults = faults

    @property
    def causes(self) -> list[str]:
        return [each.cause for message in self.notices.sent for each in message.notices]


@pytest.fixture
def place() -> Place:
    return Place()


def test_a_week_that_was_handed_in_has_one_page_and_is_told_of_once(place: Place) -> None:
    assert place.reporter().make() == ()

    place.hand_in("2026-W47")
    assert place.reporter().make() == ("2026-W47",)
    page = place.reports.kept["2026-W47"]
    place.hand_in("2026-W47")
    assert place.reporter().make() == ()

    assert place.reports.kept == {"2026-W47": page}
    assert "2026-11-16 00:00 to 2026-11-23 00:00" in page
    (message,) = place.notices.sent
    assert message.code is NoticeCode.REPORT_READY
    assert "sim:2026-W47" in message.notices[0].sentence
    assert "runs began" in message.notices[0].sentence


def test_what_was_handed_in_before_the_week_was_over_is_no_week(place: Place) -> None:
    place.clock.now = MONDAY_S - 60.0
    place.hand_in("2026-W47")
    place.clock.now = MONDAY_S + 3600.0
    assert place.reporter().make() == ()

    place.hand_in("2026-W47")
    assert place.reporter().make() == ("2026-W47",)


def test_days_that_ended_while_the_head_was_stopped_have_their_pages_too(place: Place) -> None:
    place.hand_in("2026-11-20", "2026-11-21", "2026-11-22", "2025-01-01")

    assert place.reporter(Every.DAY).make() == ("2026-11-20", "2026-11-21", "2026-11-22")
    assert place.causes == ["2026-11-20", "2026-11-21", "2026-11-22"]


def test_where_nobody_is_to_be_told_the_page_alone_is_made(place: Place) -> None:
    place.hand_in("2026-W47")

    assert place.reporter(tells=False).make() == ("2026-W47",)
    assert place.reporter(tells=False).make() == ()
    assert place.notices.sent == []


def dies(place: Place, step: int) -> bool:
    """Whether one run was killed at this of its calls; False: it has not so many."""
    place.break_with(KillAt(step))
    try:
        place.reporter().make()
    except Killed:
        return True
    finally:
        place.break_with(KillAt(None))
    return False


def test_killed_anywhere_the_page_stays_one_and_is_told_of_at_least_once() -> None:
    step = 0
    while dies(place := handed_in(), step):
        pages = dict(place.reports.kept)
        for _ in range(2):
            place.reporter().make()

        assert list(place.reports.kept) == ["2026-W47"]
        assert pages in ({}, place.reports.kept), "a page that was written is not written anew"
        assert 1 <= len(place.causes) <= 2
        step += 1
    assert step > 12, "every call was an end once"


def handed_in() -> Place:
    place = Place()
    place.hand_in("2026-W47")
    return place


def test_of_two_at_once_one_makes_the_page_and_tells(place: Place) -> None:
    place.hand_in("2026-W47")
    rival, was_asked = place.reporter(), list[str]()

    def between(point: str) -> None:
        if point == "before put" and not was_asked:
            was_asked.append(point)
            rival.make()

    place.reports.faults = between
    assert place.reporter().make() == ()

    assert place.causes == ["2026-W47"]
