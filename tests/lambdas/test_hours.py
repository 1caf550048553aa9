"""The handlers of schedule and reconcile: the calendar decides, not the event."""

from typing import Any

import pytest

from lambdas.reconcile import on_time
from lambdas.schedule import on_schedule
from tests.lambdas.conftest import Context, Deployed
from tests.make import ZONE, at_estimates, cluster
from tidegate.core.model.calendar import Wanted
from tidegate.core.model.errors import Throttled
from tidegate.core.model.market import Quote
from tidegate.wiring.function import serve


class Stopped:
    def wanted(self, now_s: float, overrides: object = ()) -> Wanted:
        return Wanted(False, "stopped until 8:00")


STOP = {"schedule": "stop", "at": "2026-01-06T20:00:00Z"}
START = {"schedule": "start", "at": "2026-01-06T20:00:00Z"}


@pytest.mark.parametrize("event", [STOP, START])
def test_the_head_stops_when_the_calendar_says_so_whatever_the_event_says(event: Any) -> None:
    of = Deployed(Stopped())

    answer = on_schedule(of.hours, event)

    assert answer["did"] == "stopped"
    assert of.head.num_stops == 1
    (line,) = of.lines()
    assert line["hours"] == answer
    assert line["why"] == f"{event['schedule']} schedule of 2026-01-06T20:00:00+00:00"
    assert of.world.bus.take_looks() == (line["why"],)
    assert of.figures() == {"HeadStarted": 0, "HeadStopped": 1}


@pytest.mark.parametrize(
    "event",
    [
        {},
        [],
        None,
        "stop",
        {"schedule": "pause", "at": STOP["at"]},
        {"schedule": "stop", "at": "soon"},
    ],
)
def test_an_event_of_a_wrong_shape_is_said_and_the_hours_are_kept(event: Any) -> None:
    of = Deployed(Stopped())

    on_schedule(of.hours, event)

    assert of.head.num_stops == 1
    assert of.lines()[0]["level"] == "WARNING"
    assert of.figures()["BadEvents"] == 1
    assert of.world.bus.take_looks() == ("schedule",)


def test_reconcile_keeps_the_hours_and_asks_for_a_look() -> None:
    of = Deployed(Stopped())

    assert on_time(of.reconcile, {})["did"] == "stopped"
    assert of.world.bus.take_looks() == ("reconcile",)


def test_reconcile_without_schedules_asks_for_a_look_only(deployed: Deployed) -> None:
    assert on_time(deployed.reconcile, {})["did"] == "nothing"
    assert deployed.world.bus.take_looks() == ("reconcile",)
    assert deployed.head.num_stops == 0


def test_reconcile_reads_the_market_and_says_what_it_does_not_believe() -> None:
    of = Deployed(file=at_estimates(cluster()))
    of.feed.sold = [Quote("g4dn.xlarge", 0.3, ZONE), Quote("g4dn.12xlarge", 1e9, ZONE)]
    of.feed.listed = None

    on_time(of.reconcile, {})

    assert of.world.ledger.seen_market.spot == (Quote("g4dn.xlarge", 0.3, ZONE),)
    (warned,) = (each for each in of.lines() if each["message"] == "prices")
    assert "1e+09 USD per hour for spot g4dn.12xlarge" in warned["reason"]


def test_prices_that_cannot_be_kept_hinder_nothing() -> None:
    of = Deployed(Stopped(), file=at_estimates(cluster()))
    of.feed.sold = [Quote("g4dn.xlarge", 0.3, ZONE)]

    def throttle(point: str) -> None:
        if point == "before see_market":
            raise Throttled("slow down")

    of.break_with(throttle)

    assert on_time(of.reconcile, {})["did"] == "stopped"
    assert any(each["message"] == "prices cannot be kept" for each in of.lines())


def test_trouble_reaches_lambda_which_tries_again() -> None:
    of = Deployed(Stopped())

    def throttle(point: str) -> None:
        if point == "before stop":
            raise Throttled("slow down")

    of.break_with(throttle)

    with pytest.raises(Throttled):
        serve(on_time, of.reconcile)({}, Context())
