"""`rollout`: how far a deployment has come, and a person's word about it."""

import time
from dataclasses import replace
from typing import Any

import pytest

from tests.cli.conftest import Town
from tests.cli.test_retry import Busy, ledger_of, looks
from tidegate.cli.live import ask_rollout
from tidegate.core.model.ec2 import Template
from tidegate.core.model.errors import Throttled
from tidegate.core.model.pool_history import FailedLaunch, PoolHistory
from tidegate.core.model.rollout import Rollout, RolloutCode
from tidegate.wire.config import load_cluster

GOOD = Template("lt-before", "1", "before-1")


def history(town: Town, rollout: Rollout | None = None) -> PoolHistory:
    found = PoolHistory("t4", good=GOOD, rollout=rollout)
    ledger_of(town).learn(found)
    return found


def known(town: Town) -> PoolHistory:
    return next(each for each in ledger_of(town).view().pool_history if each.pool == "t4")


def deployed(town: Town) -> Template:
    return town.planner.work.control.placement.templates["t4"]


def test_each_pool_tells_what_it_makes_nodes_from(town: Town) -> None:
    history(town)

    (ours,) = [each for each in town.ask_json("rollout", "status") if each["pool"] == "t4"]

    assert (ours["template"], ours["good"], ours["state"]) == ("aa-1", "before-1", "canary")
    shown = town.ask("rollout", "status").output
    assert "a first node made from it has to join well" in shown
    assert "all new nodes are made from it" in shown


WORDS = {
    "pause": (RolloutCode.PAUSED, "no more nodes are made from template aa-1"),
    "resume": (RolloutCode.RESUMED, "template aa-1 is rolled out again"),
    "finish": (RolloutCode.DONE, "all new nodes are made from template aa-1"),
    "abort": (RolloutCode.ABORTED, "template aa-1 is given up, its nodes go once their jobs have"),
}


@pytest.mark.parametrize("word", WORDS)
def test_a_persons_word_is_noted_with_who_said_it_and_done_at_once(town: Town, word: str) -> None:
    code, says = WORDS[word]
    history(town)
    before = looks(town)

    result = town.ask("rollout", word, "t4")

    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"pool t4: {says}")
    asked = known(town).rollout
    assert asked is not None
    assert (asked.asked, bool(asked.by), asked.template) == (code, True, deployed(town))
    assert looks(town) == before + 1


def test_the_next_look_obeys_and_retry_takes_it_back(town: Town) -> None:
    history(town)
    town.ask("rollout", "abort", "t4")
    town.report()
    town.look()

    given_up = known(town).rollout
    assert given_up is not None
    assert given_up.given_up is RolloutCode.ABORTED
    events = town.ask("events", "--pool", "t4").output
    assert "template aa-1 is given up: by the word of" in events
    assert "! pool t4: template aa-1 is given up" in town.ask("status").output
    again = town.ask("rollout", "abort", "t4")
    assert (again.exit_code, "was given up before" in again.output) == (1, True)

    assert "template aa-1 was given up and is tried once more" in town.ask("retry", "t4").output
    assert known(town) == PoolHistory("t4", good=GOOD)


def test_what_is_on_no_roll_out_is_neither_paused_nor_aborted(town: Town) -> None:
    result = town.ask("rollout", "pause", "t4")

    assert result.exit_code == 1
    assert "pool t4 rolls nothing out" in result.output
    history(town, Rollout(replace(GOOD, digest="older"), time.time()))
    assert town.ask("rollout", "pause", "t44").exit_code == 2


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_persons_word_stands_beside_what_planners_note_at_that_moment(
    town: Town, is_busy: bool
) -> None:
    """`is_busy`: they note news each time that it is tried."""
    history(town)
    failed = [FailedLaunch(f"l-{n}", 0.0, 0.0) for n in range(9)]

    def clients(service: str) -> Any:
        # Who speaks is asked between reading and writing.
        count = len(known(town).failed)
        if service == "sts" and not count:
            note(count)
        return busy if is_busy and service == "dynamodb" else town.client(service)

    def note(count: int) -> None:
        assert ledger_of(town).learn(replace(known(town), failed=tuple(failed[: count + 1])))

    busy = Busy(town.client("dynamodb"), lambda: note(len(known(town).failed)))
    file = load_cluster(town.file)
    if is_busy:
        with pytest.raises(Throttled, match="all the time"):
            ask_rollout(file, "t4", RolloutCode.PAUSED, clients)
        return
    ask_rollout(file, "t4", RolloutCode.PAUSED, clients)

    found = known(town)
    assert (len(found.failed), found.rollout and found.rollout.asked) == (1, RolloutCode.PAUSED)


def test_an_alarm_that_there_is_not_is_told_by_the_status_and_by_the_next_look(town: Town) -> None:
    history(town)
    town.file.write_text(f"{town.file.read_text()}\nrollout: {{alarms: [no-such-alarm]}}\n")
    says = "CloudWatch has no alarm no-such-alarm in this account and region: make it, or take it"

    (ours,) = [each for each in town.ask_json("rollout", "status") if each["pool"] == "t4"]

    assert (ours["state"], ours["most"]) == ("rollout-held", 0)
    assert f"its first nodes: {says}" in ours["sentence"]
    assert says in town.ask("status").output.replace("\n", " ")
