"""`keep-up`, `stop` and `schedule`, of a cluster in the local cloud."""

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
import typer

from tests.cli.conftest import Town
from tests.make import job
from tidegate.cli.moments import moment_s

TOKYO = "Asia/Tokyo"
HOURS = 'schedules: {time_zone: Asia/Tokyo, start: "0 8 * * *", stop: "0 20 * * *"}\n'


def at(when: str) -> float:
    return datetime.fromisoformat(when).replace(tzinfo=ZoneInfo(TOKYO)).timestamp()


def test_a_stopped_cluster_buys_nothing_and_says_who_stopped_it(town: Town) -> None:
    result = town.ask("stop", "now", "--until", "2h", "--jobs", "requeue", "--why", "a fire drill")

    assert result.exit_code == 0, result.output
    assert re.search(
        r"stopped by \S+ \(a fire drill\), running jobs end by .* UTC \(override \w{8}\)$",
        result.output.strip(),
    )
    assert [one.split()[0] for one in town.invoked] == ["stop"]

    town.report([job(1)])
    town.look()

    assert "a fire drill" in town.ask("status").output.splitlines()[0]
    assert town.ask_json("nodes") == []
    assert "a fire drill" in town.ask("why", "1").output


def test_keep_up_is_younger_and_wins_and_cancelled_it_is_over(town: Town) -> None:
    town.ask("stop", "now", "--until", "1d")
    kept = town.ask("keep-up", "--until", "3h", "--why", "we need it")
    first, *_ = town.ask_json("schedule")
    listed = town.ask("schedule").output

    assert "kept up by" in kept.output
    assert first["wanted"]["is_up"]
    assert "we need it" in listed
    assert "keep-up" in listed

    override_id = re.search(r"override (\w{8})", kept.output)
    assert override_id
    town.ask("schedule", "--cancel", override_id[1])
    first, *_ = town.ask_json("schedule")

    assert not first["wanted"]["is_up"]
    assert [one.split()[0] for one in town.invoked] == ["stop", "keep-up", "keep-up"]


def test_without_an_end_a_stop_ends_when_the_schedules_start_the_cluster(town: Town) -> None:
    town.file.write_text(HOURS + town.file.read_text())

    result = town.ask("stop", "now")

    assert result.exit_code == 0, result.output
    assert re.search(r"stopped until \w+ \d+ \w+ 08:00 Asia/Tokyo: stopped by", result.output)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("stop", "now"), "no schedule starts the cluster again"),
        (("stop", "soon", "--until", "3h"), "'soon' is not now, a time like 23:00"),
        (("stop", "3h", "--until", "2h"), "it would end before it begins"),
        (("keep-up", "--until", "now"), "it would end before it begins"),
        (("keep-up", "--until", "99d"), "longer than 14 days"),
        (("schedule", "--next", "week"), "--next week is not a span"),
        (("schedule", "--cancel", "1a2b3c4d"), "there is no override 1a2b3c4d"),
    ],
)
def test_what_cannot_be_meant_changes_nothing(
    town: Town, words: tuple[str, ...], complaint: str
) -> None:
    result = town.ask(*words)

    said = " ".join(result.output.replace("│", " ").split())
    assert result.exit_code != 0
    assert complaint in said
    assert town.invoked == []
    assert town.planner.work.control.ledger.view().overrides == ()


def test_schedule_by_the_file_alone_asks_nobody(town: Town) -> None:
    town.file.write_text(HOURS + town.file.read_text())
    town.variables = {}

    result = town.ask("schedule", "--offline", "--next", "2d")

    assert result.exit_code == 0
    assert len(re.findall(r"stopped until", result.output)) >= 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2026-11-21T22:30"),
        ("23:00", "2026-11-21T23:00"),
        ("22:30", "2026-11-22T22:30"),
        ("08:00", "2026-11-22T08:00"),
        ("3h", "2026-11-22T01:30"),
        ("2026-12-01T08:00", "2026-12-01T08:00"),
        ("2026-12-01T08:00+00:00", "2026-12-01T17:00"),
    ],
)
def test_moments_are_of_the_clusters_time_zone(text: str, expected: str) -> None:
    assert moment_s(text, at("2026-11-21T22:30"), TOKYO) == at(expected)


@pytest.mark.parametrize("text", ["9999-12-31T23:59", "1970-01-01T00:00", "0001-01-01"])
def test_a_moment_that_nobody_means_is_told(text: str) -> None:
    """Schedules are worked out from there: the calendar has an end."""
    with pytest.raises(typer.BadParameter, match="more than ten years away"):
        moment_s(text, at("2026-11-21T22:30"), TOKYO)


@pytest.mark.parametrize("text", ["", "25:00", "soon", "-1h", "tomorrow"])
def test_what_is_no_moment_is_told(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not now, a time like"):
        moment_s(text, at("2026-11-21T22:30"), TOKYO)
