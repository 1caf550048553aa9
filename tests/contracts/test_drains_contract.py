"""Who drained a node, as real Slurm tells it: us, a person, or software that found it sick."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from tidegate.agent.release import Pace, release
from tidegate.core.fleet.drains import Hand, hand, told_by
from tidegate.core.fleet.holds import held_by, hold_reason
from tidegate.core.model.orders import Order, OrderKind, OrderOutcome
from tidegate.core.model.slurm import Node, SetBy

HEALTH_REASONS = ("NHC:",)
ANSWERS = "scontrol ping | grep 'is UP' || true"
OURS = "tidegate: idle for 300 s and no pending job needs it"


@pytest.fixture(scope="module")
def hooks() -> Iterator[Path]:
    """Prolog, epilog and health check, each of which fails where a file asks for it."""
    folder = Path(mkdtemp(prefix="tgh", dir="/tmp"))
    folder.chmod(0o755)
    health = "scontrol update nodename=$(hostname) state=drain reason='NHC: check_fs: /tmp is full'"
    for name, fails in (("prolog", "exit 1"), ("epilog", "exit 1"), ("health", health)):
        script = folder / name
        script.write_text(f"#!/bin/sh\n[ -e {folder}/$(hostname).{name} ] || exit 0\n{fails}\n")
        script.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def slurm(hooks: Path) -> Iterator[RealSlurm]:
    with slurm_of_its_own(
        f"Prolog={hooks}/prolog",
        f"Epilog={hooks}/epilog",
        f"HealthCheckProgram={hooks}/health",
        "HealthCheckInterval=7",
    ) as made:
        yield made


def node(slurm: RealSlurm, name: str) -> Node:
    return next(each for each in slurm.port.read().nodes if each.name == name)


def drained(slurm: RealSlurm, name: str) -> Node:
    def is_drained() -> bool:
        found = node(slurm, name)
        if found.state.takes_jobs:
            slurm.port.poke([name])  # else its job may wait for a minute
        return found.state.is_deletable

    eventually(f"{name} is drained", is_drained)
    return node(slurm, name)


@pytest.mark.parametrize(
    ("name", "hook", "reason"),
    [
        ("sick1", "epilog", "Epilog error"),
        ("sick2", "prolog", "Prolog error"),
        ("sick3", "health", "NHC: check_fs: /tmp is full"),
    ],
)
def test_software_that_drains_a_node_is_known_and_a_release_goes_past_it(
    slurm: RealSlurm, hooks: Path, name: str, hook: str, reason: str
) -> None:
    slurm.join(name)
    (hooks / f"{name}.{hook}").touch()
    slurm.submit("-w", name, script="true")

    found = drained(slurm, name)

    assert (found.reason, hand(found, HEALTH_REASONS)) == (reason, Hand.SOFTWARE)
    if waiting := [job.job_id for job in slurm.port.read().jobs]:
        slurm.cancel(*waiting)  # else it waits for this very node
    assert released(slurm, name) is OrderOutcome.KEPT
    assert released(slurm, name, told_by(found)) is OrderOutcome.DONE


def released(slurm: RealSlurm, name: str, despite: str = "") -> OrderOutcome:
    order = Order("o-1", OrderKind.RELEASE, (name,), 0.0, text="x", despite=despite)
    (result,) = release(order, slurm.port, slurm.pause, Pace())
    return result.outcome


@pytest.mark.parametrize("reason", ["Kill task failed", "Kill task failed (JobId=3 StepId=batch)"])
def test_what_slurmstepd_says_of_a_task_that_does_not_end(slurm: RealSlurm, reason: str) -> None:
    """It sends the same request as scontrol, as the same user."""
    name = f"step{len(reason)}"
    slurm.join(name)
    slurm.run("scontrol", "update", f"nodename={name}", "state=drain", f"reason={reason}")

    assert hand(drained(slurm, name)) is Hand.SOFTWARE


def test_a_person_may_begin_with_our_name_and_even_drain_what_we_had_drained(
    slurm: RealSlurm,
) -> None:
    slurm.join("hers1")
    slurm.port.drain(["hers1"], OURS)
    person = "tidegate: leave it to me, ada"
    slurm.run("scontrol", "update", "nodename=hers1", "state=drain", f"reason={person}")

    found = drained(slurm, "hers1")

    assert (found.reason, hand(found, HEALTH_REASONS)) == (person, Hand.PERSON)
    assert released(slurm, "hers1", f"us: {OURS}") is OrderOutcome.KEPT


def test_a_hold_is_a_persons_with_its_end_until_its_time_is_over(slurm: RealSlurm) -> None:
    slurm.join("looked1")
    says = "held by user/ada: GPU 3, #4 (slow)? 100% 'odd' : Lüfter & co. *!*/+@;-_"
    reason = str(hold_reason(says, 1_800_000_000.0))
    slurm.run("scontrol", "update", "NodeName=looked1", "State=DRAIN", f"Reason={reason}")

    found = drained(slurm, "looked1")

    hold = held_by(found)
    assert hold is not None
    assert (hold.sentence, hold.until_s) == (says, 1_800_000_000.0)
    assert hand(found, HEALTH_REASONS) is Hand.PERSON
    assert released(slurm, "looked1") is OrderOutcome.KEPT
    assert released(slurm, "looked1", told_by(found)) is OrderOutcome.DONE


def test_after_an_undrain_no_reason_of_ours_is_left_for_slurm_to_drain_with(
    slurm: RealSlurm, hooks: Path
) -> None:
    slurm.join("again1")
    slurm.port.drain(["again1"], OURS)
    slurm.port.undrain(["again1"])
    eventually("it is open", lambda: "DRAIN" not in slurm.node_words("again1"))
    (hooks / "again1.epilog").touch()
    slurm.submit("-w", "again1", script="true")

    assert hand(drained(slurm, "again1")) is Hand.SOFTWARE


def test_slurm_drains_a_node_that_a_person_has_opened_again(slurm: RealSlurm, hooks: Path) -> None:
    """24.11 shows the person's old words then."""
    slurm.join("reopened1")
    slurm.run("scontrol", "update", "nodename=reopened1", "state=drain", "reason=bad fan")
    assert hand(drained(slurm, "reopened1")) is Hand.PERSON
    slurm.run("scontrol", "update", "nodename=reopened1", "state=resume")
    eventually("it is seen open", lambda: "DRAIN" not in slurm.node_words("reopened1"))
    (hooks / "reopened1.epilog").touch()
    slurm.submit("-w", "reopened1", script="true")

    assert hand(drained(slurm, "reopened1")) is Hand.SOFTWARE


def test_our_own_drain_is_known_by_its_record_also_by_the_next_slurmctld(slurm: RealSlurm) -> None:
    slurm.join("ours1")
    slurm.port.drain(["ours1"], OURS)
    slurm.run("scontrol", "reconfigure")
    slurm.run("scontrol", "shutdown", "slurmctld")
    eventually("slurmctld has saved its state", lambda: not slurm.run("sh", "-c", ANSWERS))
    slurm.start_slurmctld()
    eventually("slurmctld answers", lambda: slurm.run("sh", "-c", ANSWERS))
    eventually("it knows its nodes", lambda: slurm.node_words("ours1"))

    assert node(slurm, "ours1").set_by is SetBy.US
