"""What requeued jobs lose: counted by looks, kept for the next agent, and waited for by none."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.agent.fakes import NOW_S, FakeBus, FakeClock, FakeSlurm, agent_of
from tests.make import job
from tidegate.agent.heartbeats import Heartbeats
from tidegate.agent.loop import Agent
from tidegate.agent.lost_work import FOLDER, KNOWN, LostWorks
from tidegate.core.interruption.heartbeat import Beat
from tidegate.core.interruption.steps import SAYS_NONE, step
from tidegate.core.model.job_files import Hang, LostWork, ToldStep
from tidegate.core.model.slurm import Job

BEGAN_S = 86_400.0 * 20_000
DAY = "2024-10-04"


def asks(restarts: int = 0, began_s: float = BEGAN_S, state: str = "RUNNING", **more: Any) -> Job:
    comment = "tidegate:heartbeat=/shared/ada/beat@60"
    nodes = ("i-1", "i-2") if state == "RUNNING" else ()
    made = job(7, nodes=2, gpus=4, on=nodes, comment=comment, started_at_s=began_s, **more)
    return replace(made, restarts=restarts, state=state)


def told(text: str, at_s: float) -> dict[str, Beat]:
    return {"7": Beat(at_s, step=step(text))}


@pytest.fixture
def kept(tmp_path: Path) -> LostWorks:
    return begun(tmp_path)


def begun(shared: Path, now_s: float = BEGAN_S) -> LostWorks:
    """As an agent begins it, each step a minute after the one before."""
    made = LostWorks(FakeClock(now_s), shared, _minutes())
    made.step()
    return made


def _minutes() -> Any:
    ticks = iter(range(1, 10_000))
    return lambda: next(ticks) * 60.0


def fails_at_100(works: LostWorks) -> None:
    """A step each ten seconds until 100, and the requeue a minute later."""
    for number in (0, 50, 100):
        at_s = BEGAN_S + 1 + 10 * number
        works([asks()], told(f"step {number}", at_s), at_s + 1)
    works([asks()], told("step 100", BEGAN_S + 1001), BEGAN_S + 1055)
    works([asks(1, state="PENDING")], {}, BEGAN_S + 1061)


def goes_on_at_60(works: LostWorks) -> LostWork:
    again = asks(1, BEGAN_S + 1200)
    return works([again], told("step 60", BEGAN_S + 1210), BEGAN_S + 1212)["7"]


def lines(shared: Path, day: str = DAY) -> list[str]:
    return (shared / FOLDER / day).read_text().splitlines()


def test_lost_work_is_known_when_the_next_run_goes_on(kept: LostWorks) -> None:
    fails_at_100(kept)

    lost = goes_on_at_60(kept)

    assert (lost.gpus, lost.step, lost.resumed_step) == (8, 100.0, 60.0)
    assert (lost.redone_s, lost.stood_s) == (400.0, 60.0)


def test_a_line_for_the_cost_is_written_and_written_anew_when_more_is_known(
    kept: LostWorks, tmp_path: Path
) -> None:
    fails_at_100(kept)
    kept.step()
    first = lines(tmp_path)
    goes_on_at_60(kept)
    kept.step()

    began, stood, end = (round(BEGAN_S + s) for s in (0, 1001, 1061))
    assert first == [f"lost|7|{began}|{stood}|{stood}|{end}|100|"]
    assert lines(tmp_path) == [f"lost|7|{began}|{stood - 400}|{stood}|{end}|100|60"]


def test_the_next_agent_knows_what_the_one_before_had_seen(kept: LostWorks, tmp_path: Path) -> None:
    fails_at_100(kept)
    kept.step()

    lost = goes_on_at_60(begun(tmp_path))

    assert (lost.redone_s, lost.stood_s) == (400.0, 60.0)


def test_an_agent_that_has_not_read_it_yet_counts_nothing_and_forgets_nothing(
    kept: LostWorks, tmp_path: Path
) -> None:
    fails_at_100(kept)
    kept.step()
    late = LostWorks(FakeClock(BEGAN_S), tmp_path, _minutes())

    assert late([asks(1, BEGAN_S + 1200)], told("step 60", BEGAN_S + 1210), BEGAN_S + 1212) == {}
    late.step()

    assert goes_on_at_60(late).redone_s == 400.0


@pytest.mark.parametrize("text", ["", "{", '{"works":{"7":{"run":3}}}', "\x00\xff", "[]"])
def test_what_is_no_record_begins_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / FOLDER).mkdir(parents=True, mode=0o755)
    (tmp_path / FOLDER / KNOWN).write_text(text)

    works = begun(tmp_path)
    fails_at_100(works)

    assert goes_on_at_60(works).redone_s == 400.0


def test_a_folder_that_cannot_be_written_is_told_once_and_stops_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".tidegate").write_text("no folder")
    works = LostWorks(FakeClock(BEGAN_S), tmp_path, _minutes())
    works.step()
    works.step()

    assert len([each for each in caplog.records if "lose cannot be written" in each.message]) == 1


def test_old_days_go(kept: LostWorks, tmp_path: Path) -> None:
    for name in ("2020-01-01", "notes"):
        (tmp_path / FOLDER / name).write_text("x\n")

    kept.step()

    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == [KNOWN, "notes"]


def test_jobs_that_have_ended_are_forgotten(kept: LostWorks, tmp_path: Path) -> None:
    fails_at_100(kept)

    assert kept([], {}, BEGAN_S + 2000) == {}
    assert kept([], {}, BEGAN_S + 2061) == {}
    kept.step()

    assert "step" not in (tmp_path / FOLDER / KNOWN).read_text()


def test_a_job_that_squeue_leaves_out_for_a_moment_is_not_forgotten(kept: LostWorks) -> None:
    """Real Slurm does so while it requeues one."""
    fails_at_100(kept)
    kept([], {}, BEGAN_S + 1070)
    kept([], {}, BEGAN_S + 1075)

    assert goes_on_at_60(kept).redone_s == 400.0


def test_a_job_that_asks_for_nothing_is_not_counted(kept: LostWorks) -> None:
    plain = replace(asks(), comment="")
    kept([plain], told("step 3", BEGAN_S + 5), BEGAN_S + 6)

    assert kept([replace(plain, restarts=1)], {}, BEGAN_S + 9) == {}


# -- files -----------------------------------------------------------------------------------


def looked(shared: Path, *jobs: Job) -> dict[str, Beat]:
    heartbeats = Heartbeats(shared, lambda _: os.geteuid())
    heartbeats(jobs)
    heartbeats.step()
    return dict(heartbeats(jobs))


def of_file(path: Path, job_id: str = "7", **more: Any) -> Job:
    return replace(asks(), job_id=job_id, comment=f"tidegate:heartbeat={path}@60", **more)


def test_a_heartbeat_file_is_touched_and_tells_a_step_at_once(tmp_path: Path) -> None:
    beat = tmp_path / "beat"
    beat.write_text("step 1240\n")
    os.utime(beat, (500.0, 500.0))

    assert looked(tmp_path, of_file(beat)) == {"7": Beat(500.0, step=ToldStep(1240.0))}


@pytest.mark.parametrize("content", [b"\xff\xfe", b"step 3" * 1_000_000, b"1764277000\n"])
def test_what_is_no_step_leaves_the_heartbeat_a_heartbeat(tmp_path: Path, content: bytes) -> None:
    beat = tmp_path / "beat"
    beat.write_bytes(content)
    os.utime(beat, (500.0, 500.0))

    assert looked(tmp_path, of_file(beat)) == {"7": Beat(500.0, step=ToldStep(problem=SAYS_NONE))}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_a_heartbeat_without_a_step(tmp_path: Path) -> None:
    beat = tmp_path / "beat"
    beat.touch(mode=0o000)
    os.utime(beat, (500.0, 500.0))

    assert looked(tmp_path, of_file(beat)) == {"7": Beat(500.0)}


def test_a_file_that_several_jobs_name_tells_no_step_of_any(tmp_path: Path) -> None:
    """As tasks of an array do that share the script's comment."""
    beat = tmp_path / "beat"
    beat.write_text("step 3")
    os.utime(beat, (500.0, 500.0))

    found = looked(tmp_path, of_file(beat, "7_1"), of_file(beat, "7_2"))

    assert {each.touched_at_s for each in found.values()} == {500.0}
    assert {each.step and each.step.problem for each in found.values()} == {
        "jobs 7_1 and 7_2 name one heartbeat file"
    }


def test_components_of_one_job_may_name_one_file(tmp_path: Path) -> None:
    beat = tmp_path / "beat"
    beat.write_text("step 3")

    found = looked(tmp_path, of_file(beat, "7", het_job_id="7"), of_file(beat, "8", het_job_id="7"))

    assert [each.step for each in found.values()] == [ToldStep(3.0)] * 2


# -- what the agent makes of it --------------------------------------------------------------


@pytest.fixture
def watched(slurm: FakeSlurm, bus: FakeBus, clock: FakeClock) -> tuple[Agent, dict[str, Beat]]:
    seen = {"1": Beat(NOW_S)}
    agent = agent_of(slurm, bus, clock, beats=lambda jobs: seen)
    runs(slurm)
    return agent, seen


def runs(slurm: FakeSlurm, began_s: float = NOW_S - 100, **more: Any) -> None:
    asked = "tidegate:heartbeat=/shared/beat@60"
    known: dict[str, Any] = {
        "state": "RUNNING",
        "node_names": ("n1",),
        "started_at_s": began_s,
    } | more
    slurm.queue("1", comment=asked, **known)


def newest(bus: FakeBus) -> Job:
    return bus.digests[-1].reading.jobs[0]


def test_steps_travel_with_the_next_digest_and_lost_work_makes_one(
    watched: tuple[Agent, dict[str, Beat]], slurm: FakeSlurm, bus: FakeBus, clock: FakeClock
) -> None:
    agent, seen = watched
    agent.tick()
    for number in (1, 2):
        clock.now += 1
        seen["1"] = Beat(clock.now, step=ToldStep(float(number)))
        agent.tick()
    assert len(bus.digests) == 1

    clock.now += 5
    runs(slurm, state="PENDING", node_names=(), restarts=1)
    agent.tick()
    assert newest(bus).lost == LostWork(1, 1, clock.now, clock.now - 5, step=2.0)

    runs(slurm, clock.now + 10, restarts=1)
    clock.now += 20
    seen["1"] = Beat(clock.now, step=ToldStep(1.0))
    agent.tick()
    lost = newest(bus).lost
    assert lost is not None
    assert (lost.resumed_step, lost.redone_s) == (1.0, 1.0)
    assert newest(bus).step == ToldStep(1.0)


def test_a_heartbeat_file_that_was_removed_is_silent_since_it_was_last_touched(
    watched: tuple[Agent, dict[str, Beat]], bus: FakeBus, clock: FakeClock
) -> None:
    agent, seen = watched
    agent.tick()
    seen["1"] = Beat()
    clock.now += 61
    agent.tick()

    hang = newest(bus).hang
    assert hang is not None
    assert hang.since_s == NOW_S


def test_a_clock_that_is_put_ahead_makes_no_job_hang(
    slurm: FakeSlurm, bus: FakeBus, clock: FakeClock
) -> None:
    """And one that really hangs is found all the same, when it was silent from then on."""
    watch_s = [0.0]
    seen = {"1": Beat(NOW_S)}
    agent = agent_of(slurm, bus, clock, beats=lambda jobs: seen, stopwatch=lambda: watch_s[0])
    runs(slurm)
    found = []
    for by_clock_s, by_watch_s in ((0.0, 0.0), (3600.0, 10.0), (50.0, 50.0), (11.0, 11.0)):
        clock.now += by_clock_s
        watch_s[0] += by_watch_s
        agent.tick()
        found.append(newest(bus).hang is not None)

    assert found == [False, False, False, True]


def test_a_slurmctld_that_answers_now_and_then_late_hides_no_hang(
    slurm: FakeSlurm, bus: FakeBus, clock: FakeClock
) -> None:
    """Its answers take 0 and 20 s by turns, which is no clock that somebody puts."""
    seen = {"1": Beat(NOW_S)}
    agent = agent_of(slurm, bus, clock, beats=lambda jobs: seen, stopwatch=lambda: clock.now)
    runs(slurm)

    for late in (False, True) * 4:
        slurm.before_read += [lambda: setattr(clock, "now", clock.now + 20)] * late
        agent.tick()
        clock.now += 5

    assert newest(bus).hang == Hang("/shared/beat", since_s=NOW_S)


def test_a_run_that_is_silent_from_its_start_hangs_by_what_the_one_before_took(
    watched: tuple[Agent, dict[str, Beat]], slurm: FakeSlurm, bus: FakeBus, clock: FakeClock
) -> None:
    """Who waits for the others at the rendezvous touches nothing. The first run took 1,000 s."""
    agent, seen = watched
    seen["1"] = Beat()
    runs(slurm, NOW_S - 50)
    agent.tick()
    clock.now = NOW_S + 950
    seen["1"] = Beat(clock.now)
    agent.tick()
    clock.now += 10
    runs(slurm, state="PENDING", node_names=(), restarts=1)
    agent.tick()

    began_s = clock.now + 10
    runs(slurm, began_s, restarts=1)
    found = []
    for after_s in (10, 3_000, 3_059, 3_061):
        clock.now = began_s + after_s
        agent.tick()
        found.append(newest(bus).hang)

    assert found == [None, None, None, Hang("/shared/beat", since_s=began_s)]


def test_a_first_run_may_take_as_long_as_it_likes_to_its_first_touch(
    watched: tuple[Agent, dict[str, Beat]], bus: FakeBus, clock: FakeClock
) -> None:
    agent, seen = watched
    seen["1"] = Beat()
    for _ in range(3):
        clock.now += 40_000
        agent.tick()

    assert newest(bus).hang is None


def test_a_run_whose_forerunner_began_at_once_has_half_an_hour(kept: LostWorks) -> None:
    fails_at_100(kept)
    again = asks(1, BEGAN_S + 1200)
    kept([again], {}, BEGAN_S + 1205)
    assert kept.begins_within_s(again) == 1800.0

    kept([again], told("step 60", BEGAN_S + 1210), BEGAN_S + 1212)
    assert kept.begins_within_s(again) is None


def test_a_run_that_never_touched_its_file_is_lost_as_a_whole(
    kept: LostWorks, tmp_path: Path
) -> None:
    """What the run before lost is not known before one says where it goes on."""
    fails_at_100(kept)
    for now_s in (1205, 3000):
        kept([asks(1, BEGAN_S + 1200)], {}, BEGAN_S + now_s)
    kept([asks(2, state="PENDING")], {}, BEGAN_S + 3010)
    third = asks(2, BEGAN_S + 3100)
    assert kept.begins_within_s(third) == 1800.0
    lost = kept([third], told("step 60", BEGAN_S + 3110), BEGAN_S + 3112)["7"]
    kept.step()

    began, end = round(BEGAN_S + 1200), round(BEGAN_S + 3000)
    assert f"lost|7|{began}|{began}|{began}|{end}||" in lines(tmp_path)
    assert len(lines(tmp_path)) == 2
    assert (lost.restarts, lost.redone_s, lost.stood_s) == (2, 400.0, 60.0)
