"""`node hold` and `node release`, of a cluster in the local cloud whose head notes all orders."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import Town
from tests.make import node, record
from tidegate.core.fleet.holds import held_by, hold_reason
from tidegate.core.model.drain_reason import OPEN
from tidegate.core.model.ledger import LaunchStatus
from tidegate.core.model.slurm import SetBy
from tidegate.ports import Finished

NAME = "i-0123456789abcdef0"
SCONTROL = """#!/bin/sh
[ "$2" != "NodeName=i-0123456789abcdef9" ] || { echo "Invalid node name specified" >&2; exit 1; }
printf '%s\\n' "$@" >>{}/asked
"""


@pytest.fixture
def headed(counted: Town, tmp_path: Path) -> Town:
    """A town with a head and two nodes that are up."""
    (tmp_path / "scontrol").write_text(SCONTROL.replace("{}", str(tmp_path)))
    (tmp_path / "scontrol").chmod(0o755)
    ledger = counted.planner.work.control.ledger
    now_s = time.time()
    made = (replace(record(each), launched_at_s=now_s - 3600) for each in (NAME, NAME[:-1] + "9"))
    ledger.finish_launches(Finished("l-1", LaunchStatus.DONE, list(made)))
    counted.report(nodes=[node(NAME), node(NAME[:-1] + "9")])
    return counted


def asked(town: Town) -> list[str]:
    file = town.file.parent / "asked"
    return file.read_text().splitlines() if file.exists() else []


def test_a_node_is_drained_as_by_a_person_with_a_reason_that_ends(headed: Town) -> None:
    result = headed.ask("node", "hold", NAME, "--for", "2h", "--reason", "  GPU 3: 'slow'\n(ada)? ")

    assert result.exit_code == 0, result.output
    verb, name, state, reason = asked(headed)
    assert (verb, name, state) == ("update", f"NodeName={NAME}", "State=DRAIN")
    found = held_by(node(state="IDLE+DRAIN", reason=reason.removeprefix("Reason=")))
    assert found is not None
    assert found.sentence.startswith("held by ")
    assert found.sentence.endswith(": GPU 3: 'slow' (ada)?")
    assert found.until_s == pytest.approx(time.time() + 7200, abs=30)
    assert "it has cost 0.20 USD and costs 0.20 an hour: 0.40 until then" in result.output
    assert f"tidegate node release {NAME}" in result.output


def test_its_time_is_four_hours_when_nobody_says_another(headed: Town) -> None:
    assert headed.ask("node", "hold", NAME).exit_code == 0
    found = held_by(node(state="IDLE+DRAIN", reason=asked(headed)[3].removeprefix("Reason=")))
    assert found
    assert found.until_s == pytest.approx(time.time() + 4 * 3600, abs=30)


ODD: tuple[tuple[tuple[str, ...], int, str], ...] = (
    (("gpu-1",), 2, "is no node of a cluster: they are named i-..."),
    (("i-00000000000000000",), 1, "has no node i-00000000000000000: tidegate nodes shows"),
    ((NAME, "--for", "soon"), 2, "is no span of time, like 90m, 4h or 1d"),
    ((NAME, "--for", "0h"), 2, "is no span of time"),
    ((NAME, "--for", "2d"), 1, "lets a node be held for 24.0 h at most"),
    ((NAME, "--reason", "a=b"), 2, "holds '=', which Slurm's records cannot carry"),
    ((NAME, "--reason", "x [root@head]"), 2, "holds '['"),
    ((NAME, "--reason", 'say "hi"'), 2, "holds '\"'"),
    ((NAME, "--reason", "bell \x07"), 2, "which Slurm's records cannot carry"),
    ((NAME, "--reason", "x" * 201), 2, "is longer than 200 characters"),
    ((NAME[:-1] + "9",), 1, "scontrol: Invalid node name specified"),
)


def test_what_cannot_be_held_is_a_clear_word_and_nothing_is_asked(headed: Town) -> None:
    for words, code, says in ODD:
        result = headed.ask("node", "hold", *words)

        assert result.exit_code == code, result.output
        assert says in " ".join(result.output.replace("│", " ").split())
    assert asked(headed) == []


def held(town: Town) -> Town:
    reason = str(hold_reason("held by user/ada", time.time() + 3600))
    slow = node(NAME, state="IDLE+DRAIN+DYNAMIC_NORM", reason=reason, set_by=SetBy.ROOT)
    town.report(nodes=[slow])
    return town


def test_a_second_hold_is_refused_and_names_the_first(headed: Town) -> None:
    result = held(headed).ask("node", "hold", NAME)

    assert result.exit_code == 1
    assert f"{NAME} is held by user/ada already, until " in result.output


def test_a_hold_that_is_ended_is_over_at_once(headed: Town) -> None:
    result = held(headed).ask("node", "release", NAME)

    assert result.exit_code == 0, result.output
    assert f"{NAME} is let go; it has cost 0.20 USD and costs 0.20 an hour" in result.output
    found = held_by(node(state="IDLE+DRAIN", reason=asked(headed)[3].removeprefix("Reason=")))
    assert found is not None
    assert (found.until_s or 0.0) <= time.time()


def test_a_node_that_is_well_may_take_jobs_again(headed: Town) -> None:
    result = held(headed).ask("node", "release", NAME, "--resume")

    assert result.output.startswith(f"{NAME} takes jobs again; it has cost 0.20 USD")
    assert asked(headed) == ["update", f"NodeName={NAME}", "State=RESUME", f"Reason={OPEN}"]


def test_a_node_that_nobody_holds_is_not_let_go(headed: Town) -> None:
    result = headed.ask("node", "release", NAME)

    assert (result.exit_code, result.output) == (1, f"nobody holds {NAME}\n")
    assert asked(headed) == []
